//! Leave to fetch: it runs from the last heartbeat that succeeded, counted from before it was sent.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Boottime,
    frontier::{Frontier, WorkerId},
};

/// Shortest time between two heartbeats.
const SOONEST: Duration = Duration::from_millis(50);

/// Shortest wait after a heartbeat that failed; it is tried again until the licence is over, and after.
const AGAIN: Duration = Duration::from_secs(1);

/// This process's standing in the frontier, shared by all that act on it.
#[derive(Debug)]
pub(super) struct Licence {
    worker: AtomicI32,
    until: Mutex<Boottime>,
    /// Told when this worker was declared dead.
    pub(super) died: Notify,
}

impl Licence {
    pub(super) fn new(worker: WorkerId, until: Boottime) -> Arc<Licence> {
        Arc::new(Licence {
            worker: AtomicI32::new(worker.0),
            until: Mutex::new(until),
            died: Notify::new(),
        })
    }

    /// The worker that this process is at present.
    pub(super) fn worker(&self) -> WorkerId {
        WorkerId(self.worker.load(Ordering::Acquire))
    }

    /// Until when it may fetch at all.
    pub(super) fn until(&self) -> Boottime {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It registered anew: what the old worker had claimed is not its own any more.
    pub(super) fn renew_as(&self, worker: WorkerId, until: Boottime) {
        self.worker.store(worker.0, Ordering::Release);
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    fn extend(&self, worker: WorkerId, until: Boottime) {
        let mut current = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if worker == self.worker() && until > *current {
            *current = until;
        }
    }
}

/// Renews the heartbeat until told to stop. Runs as a task of its own, on a connection of its own, so that nothing can hold it up.
///
/// Often enough that a fetch of `longest` always fits into what is left of the licence: the heartbeat of the settings, or sooner.
pub(super) async fn keep(
    licence: Arc<Licence>,
    heart: Frontier,
    longest: Duration,
    stop: CancellationToken,
) {
    let dead_after = heart.settings().dead_after;
    let every = heart
        .settings()
        .heartbeat
        .min(dead_after.saturating_sub(longest) / 2)
        .max(SOONEST);
    let mut wait = every;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        let (worker, sent) = (licence.worker(), Boottime::now());
        wait = every;
        match heart.beat(worker).await {
            Ok(true) => licence.extend(worker, sent + dead_after),
            Ok(false) if worker == licence.worker() => licence.died.notify_one(),
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(%error, "the heartbeat did not get through");
                wait = AGAIN.min(every);
            }
        }
    }
}
