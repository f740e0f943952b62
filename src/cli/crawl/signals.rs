//! Ctrl-C, SIGTERM and SIGHUP: the first drains, the second leaves at once, the third does not even say so to the database.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::super::{Exit, output};
use crate::crawl::Stop;

/// Watches for signals from its start until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Watching(OnceLock<JoinHandle<()>>);

impl Watching {
    /// Starts, if it has not.
    pub(super) fn start(&self, stop: &Stop, grace: Duration) {
        self.0.get_or_init(|| watch(stop.clone(), grace));
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(task) = self.0.get() {
            task.abort();
        }
    }
}

fn watch(stop: Stop, grace: Duration) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Ok(mut signals) = Signals::new() else {
            return;
        };
        signals.next().await;
        output::say(format_args!(
            "finishing what is in flight, for at most {}; again to leave at once",
            humantime::format_duration(grace)
        ));
        stop.drain.cancel();
        signals.next().await;
        stop.abort.cancel();
        signals.next().await;
        // As after a kill -9, nothing has to be repaired.
        std::process::exit(Exit::Interrupted.code().into());
    })
}

/// The signals that ask a process to end.
#[cfg(unix)]
pub(in crate::cli) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(in crate::cli) fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // The terminal was closed.
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub(in crate::cli) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// The signals that ask a process to end.
#[cfg(not(unix))]
pub(in crate::cli) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(in crate::cli) fn new() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    /// Waits for the next one.
    pub(in crate::cli) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
