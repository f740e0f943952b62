//! The gate of addresses, where the crawl keeps a delay per address (`politeness.ip_delay`).
//!
//! One address may serve thousands of hosts, so it is asked for leave last, right before the fetch. Where it is taken for longer than is worth
//! waiting, the task goes back, and its host waits for a random while: a queue of hosts in front of one address is not claimed again and again.

use std::{sync::Arc, time::Duration};

use rand::RngExt as _;
use url::Url;

use super::context::Context;
use crate::{
    clock::Boottime,
    frontier::{AddressHold, AddressLeave, FrontierError, WorkerId},
};

/// Longest wait for an address, with a flight that others could use.
const WORTH_WAITING: Duration = Duration::from_secs(2);

/// Leave to ask an address; to be given back by [`Leave::end`]. Dropped before, it ends by itself.
#[derive(Debug)]
pub(super) struct Leave {
    held: Option<(WorkerId, AddressHold)>,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Others ask it; the host is worth a look after this long.
    Busy(Duration),
    /// The frontier failed.
    Trouble(FrontierError),
}

impl Leave {
    /// Waits for leave to ask the address of a URL. At once where the crawl keeps no delay per address, or a proxy is asked.
    pub(super) async fn wait(cx: &Arc<Context>, url: &Url) -> Result<Leave, Refusal> {
        let delay = cx.settings.ip_delay;
        if delay.is_zero() {
            return Ok(Leave { held: None });
        }
        let Some(ip) = cx.fetcher.address(url).await else {
            return Ok(Leave { held: None });
        };
        let (worker, began) = (cx.licence.worker(), Boottime::now());
        loop {
            let (frontier, longest) = (cx.frontier.clone(), cx.settings.visit_budget);
            // A task of its own: a statement is not cut off when the visit is.
            let asked =
                tokio::spawn(
                    async move { frontier.hold_address(worker, ip, longest, delay).await },
                );
            let free_in = match asked.await {
                Ok(Ok(AddressLeave::Held(hold))) => {
                    return Ok(Leave {
                        held: Some((worker, hold)),
                    });
                }
                Ok(Ok(AddressLeave::Busy { free_in })) => free_in,
                Ok(Err(error)) => return Err(Refusal::Trouble(error)),
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            };
            // While another fetches, `free_in` is how long that may last at most; it is over much sooner.
            if began.elapsed() > WORTH_WAITING {
                let wait = free_in.clamp(delay, WORTH_WAITING);
                return Err(Refusal::Busy(
                    wait.mul_f64(rand::rng().random_range(1.0..4.0)),
                ));
            }
            let jitter = rand::rng().random_range(0.5..1.0);
            tokio::time::sleep(free_in.min(delay.max(MOMENT)).mul_f64(jitter).max(MOMENT)).await;
        }
    }

    /// The fetch is over.
    pub(super) async fn end(self, cx: &Context, ended: Boottime) -> Result<(), FrontierError> {
        match self.held {
            Some((worker, hold)) => {
                let delay = cx.settings.ip_delay;
                cx.frontier
                    .release_address(worker, hold, ended, delay)
                    .await
            }
            None => Ok(()),
        }
    }
}

/// Shortest time between two looks.
const MOMENT: Duration = Duration::from_millis(10);
