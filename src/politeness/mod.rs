//! Leave to fetch: the ceilings of one process.
//!
//! # Who is authoritative
//!
//! How gently a *host* is treated is not decided here. The host's row in Postgres is the gate: a
//! claim takes a host only when its `ready_at` has come and moves that moment, under the row's lock,
//! so that any number of machines together keep one delay. Within a held host its holder waits for
//! the end of the last fetch plus the delay. Both live with `frontier` and `crawl`.
//!
//! What the database cannot know is how much *this process* is doing right now. That is this room:
//!
//! | ceiling | unit | guard |
//! |---|---|---|
//! | `concurrency` | visits in flight, in all | [`Permit`] |
//! | [`Rate`] | requests a second, within the time that the whole crawl's rate leaves to this process | the wait |
//! | `per_host` | in flight to one host whose delay is 0 | [`HostPermit`] |
//!
//! A host with a delay is held by one worker, who fetches one page at a time: it needs no
//! [`HostPermit`]. A host without one is shared, by several machines even, each with its own
//! `per_host`: such hosts are the operator's own, and it is the operator who counts the machines.
//!
//! # Order, and what may go wrong
//!
//! Take the host's permit first, then the process's: the other way round, visits that wait for a
//! busy host would fill the process. Guards give back when dropped, so a visit that is cancelled or
//! panics leaks nothing. Waiters are served in the order they came. A permit is leave to *begin*: the
//! deadline of the claim may be over by then, so whoever waited looks at it afterwards.
//!
//! governor's own waiting sleeps on a timer that tokio's pause does not move; so it is only asked
//! (`check`), on tokio's clock, and the sleeping is tokio's.

mod host;
mod rate;

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use host::HostPermit;
use host::Hosts;
pub use rate::Rate;

use crate::canon::HostKey;

/// The ceilings of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Requests in flight to one host whose delay is 0, at least 1. Default 1.
    pub per_host: u32,
    /// Visits in flight, at least 1. Default 64.
    pub concurrency: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            per_host: 1,
            concurrency: 64,
        }
    }
}

/// Hands out leave to fetch. Clones share their ceilings.
#[derive(Clone, Debug)]
pub struct Ceilings {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    flights: Arc<Semaphore>,
    hosts: Hosts,
}

impl Ceilings {
    /// Ceilings at these limits; zeros count as 1.
    pub fn new(limits: &Limits) -> Ceilings {
        let flights = limits.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Ceilings {
            inner: Arc::new(Inner {
                flights: Arc::new(Semaphore::new(flights)),
                hosts: Hosts::new(limits.per_host.max(1)),
            }),
        }
    }

    /// Waits for leave to make a request: for a free flight.
    pub async fn permit(&self) -> Permit {
        let flight = Arc::clone(&self.inner.flights).acquire_owned().await;
        Permit {
            _flight: flight.expect("the semaphore is never closed"),
        }
    }

    /// Waits until fewer than `per_host` requests to this host are in flight. For hosts whose delay
    /// is 0; before [`Ceilings::permit`].
    pub async fn host_permit(&self, host: &HostKey) -> HostPermit {
        self.inner.hosts.permit(host).await
    }

    /// A host's permit if one is free now.
    pub fn try_host_permit(&self, host: &HostKey) -> Option<HostPermit> {
        self.inner.hosts.try_permit(host)
    }

    /// Flights that are free now.
    pub fn free(&self) -> usize {
        self.inner.flights.available_permits()
    }

    /// Hosts with a request in flight or waiting for leave; what the memory of this room grows with.
    pub fn busy_hosts(&self) -> usize {
        self.inner.hosts.len()
    }
}

/// Leave to make one request; the flight is free again when it is dropped.
#[must_use = "dropping a permit gives it back"]
#[derive(Debug)]
pub struct Permit {
    _flight: OwnedSemaphorePermit,
}

#[cfg(test)]
mod tests;
