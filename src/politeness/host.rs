//! Requests in flight to one host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::canon::HostKey;

type Table = Arc<Mutex<HashMap<HostKey, Entry>>>;

/// One semaphore for each host that somebody uses or waits for, and none for the others.
#[derive(Debug)]
pub(super) struct Hosts {
    per_host: usize,
    table: Table,
}

#[derive(Debug)]
struct Entry {
    flights: Arc<Semaphore>,
    /// Guards and waiters; at zero the entry goes.
    users: usize,
}

impl Hosts {
    pub(super) fn new(per_host: u32) -> Hosts {
        Hosts {
            per_host: per_host as usize,
            table: Table::default(),
        }
    }

    pub(super) async fn permit(&self, host: &HostKey) -> HostPermit {
        let (place, flights) = self.enter(host);
        let flight = flights
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        HostPermit {
            _flight: flight,
            _place: place,
        }
    }

    pub(super) fn try_permit(&self, host: &HostKey) -> Option<HostPermit> {
        let (place, flights) = self.enter(host);
        let flight = flights.try_acquire_owned().ok()?;
        Some(HostPermit {
            _flight: flight,
            _place: place,
        })
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.table).len()
    }

    fn enter(&self, host: &HostKey) -> (Place, Arc<Semaphore>) {
        let mut table = lock(&self.table);
        let entry = table.entry(host.clone()).or_insert_with(|| Entry {
            flights: Arc::new(Semaphore::new(self.per_host)),
            users: 0,
        });
        entry.users += 1;
        let place = Place {
            table: Arc::clone(&self.table),
            host: host.clone(),
        };
        (place, Arc::clone(&entry.flights))
    }
}

/// The table is consistent between any two statements that change it, so a panic elsewhere while
/// it was locked does no harm.
fn lock(table: &Table) -> std::sync::MutexGuard<'_, HashMap<HostKey, Entry>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leave for one request to one host; given back when dropped.
#[must_use = "dropping a permit gives it back"]
#[derive(Debug)]
pub struct HostPermit {
    // Dropped in this order: the flight is free before the entry may go.
    _flight: OwnedSemaphorePermit,
    _place: Place,
}

/// Somebody's use of an entry, waiting or in flight.
#[derive(Debug)]
struct Place {
    table: Table,
    host: HostKey,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        if let Some(entry) = table.get_mut(&self.host) {
            entry.users -= 1;
            if entry.users == 0 {
                table.remove(&self.host);
            }
        }
    }
}
