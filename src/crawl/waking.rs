//! Wake-ups between processes: who makes new tasks says so now and then, and who is idle hears it before its next poll.
//!
//! A hint and no more. A listener that is dead, a nudge that is lost, a pooler that passes none: the poll finds the work, up to two seconds later.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rand::RngExt as _;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use crate::frontier::{Ear, Ears};

/// Shortest time between two nudges of a process: four a second wake as well as four thousand, and each commit of one takes a lock of the whole
/// server.
const SELDOM: Duration = Duration::from_millis(250);

/// Wait before a new connection for an ear: at first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Says that there are new tasks, when there are some and somebody else is there to hear it.
pub(super) async fn tell(cx: Arc<Context>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = cx.news.notified() => {}
        }
        if cx.workers.load(Ordering::Relaxed) > 1
            && let Err(error) = cx.frontier.nudge().await
        {
            tracing::debug!(%error, "nobody was woken");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SELDOM) => {}
        }
    }
}

/// Hears of new tasks, and lets this process claim.
pub(super) async fn listen(cx: Arc<Context>, ears: Ears, stop: CancellationToken) {
    let mut wait = AGAIN.0;
    while !stop.is_cancelled() {
        match ears.open().await {
            Ok(ear) => {
                wait = AGAIN.0;
                hear(&cx, ear, &stop).await;
            }
            Err(error) => {
                tracing::debug!(%error, "no wake-ups for now; new tasks are found by looking");
                wait = (wait * 2).min(AGAIN.1);
            }
        }
        let jitter = rand::rng().random_range(0.5..1.5);
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(wait.mul_f64(jitter)) => {}
        }
    }
}

/// Until the connection is gone.
async fn hear(cx: &Context, mut ear: Ear, stop: &CancellationToken) {
    loop {
        let heard = tokio::select! {
            () = stop.cancelled() => return,
            heard = ear.hear() => heard,
        };
        match heard {
            Ok(()) => {
                cx.heard.notify_one();
                // What comes meanwhile is one with this; and not all that listen come at the same moment.
                let jitter = rand::rng().random_range(0.5..1.5);
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(SELDOM.mul_f64(jitter)) => {}
                }
                ear.forget();
            }
            Err(error) => {
                tracing::debug!(%error, "the connection for wake-ups is gone");
                return;
            }
        }
    }
}
