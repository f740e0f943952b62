//! The gate of addresses, where the crawl keeps a delay per address (`politeness.ip_delay`).
//!
//! One address may serve thousands of hosts, so it is asked for leave last, right before the fetch, and within a process by one visit at a time.
//! Where it is taken for longer than is worth waiting, the task goes back, and its host waits for about as long as all that were sent back take
//! one after the other: a queue of hosts in front of one address is not claimed again and again.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rand::RngExt as _;
use tokio::time::Instant;
use url::Url;

use super::context::Context;
use crate::{
    clock::Boottime,
    frontier::{AddressHold, AddressLeave, FrontierError, WorkerId},
};

/// Longest wait for an address, with a flight that others could use.
const WORTH_WAITING: Duration = Duration::from_secs(2);

/// Shortest time between two looks.
const MOMENT: Duration = Duration::from_millis(10);

/// Longest rest of a host whose address is taken.
const LONGEST: Duration = Duration::from_secs(3600);

/// Addresses that are remembered; those that nobody waits for are forgotten above that.
const REMEMBERED: usize = 10_000;

/// Who waits for which address in this process.
#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<HashMap<IpAddr, Arc<Queue>>>);

#[derive(Debug, Default)]
struct Queue {
    /// The first in line asks the database.
    first: tokio::sync::Mutex<()>,
    /// Hosts that were sent away since one got leave, about.
    sent_away: AtomicU32,
}

impl Queues {
    fn of(&self, ip: IpAddr) -> Arc<Queue> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() > REMEMBERED {
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        Arc::clone(queues.entry(ip).or_default())
    }
}

/// Leave to ask an address; to be given back by [`Leave::end`]. Dropped before, it ends by itself.
#[derive(Debug)]
pub(super) struct Leave {
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    worker: WorkerId,
    ip: IpAddr,
    hold: AddressHold,
    /// The hold lasts until then at least, and the delay beyond.
    until: Boottime,
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
        let queue = cx.queues.of(ip);
        let over = Instant::now() + WORTH_WAITING;
        let Ok(_first) = tokio::time::timeout_at(over, queue.first.lock()).await else {
            return Err(Refusal::Busy(queue.rest(delay)));
        };
        loop {
            let free_in = match ask(cx, ip).await? {
                Ok(held) => {
                    queue.sent_away.store(0, Ordering::Relaxed);
                    return Ok(Leave { held: Some(held) });
                }
                Err(free_in) => free_in,
            };
            if Instant::now() >= over {
                return Err(Refusal::Busy(queue.rest(delay)));
            }
            // While another fetches, `free_in` is how long that may last at most; it is over much sooner.
            let jitter = rand::rng().random_range(0.5..1.0);
            let wait = free_in.min(delay).mul_f64(jitter).max(MOMENT);
            tokio::time::sleep(wait).await;
        }
    }

    /// Passes on to the URL that a redirect leads to: where it has the same address, after the address's delay; else by a leave of its own.
    pub(super) async fn pass_on(
        self,
        cx: &Arc<Context>,
        url: &Url,
        ended: Boottime,
    ) -> Result<Leave, Refusal> {
        let Some(held) = &self.held else {
            return Leave::wait(cx, url).await;
        };
        if cx.fetcher.address(url).await == Some(held.ip) {
            let rested = ended + cx.settings.ip_delay;
            tokio::time::sleep(rested - Boottime::now()).await;
            return Ok(self);
        }
        self.end(cx, ended).await.map_err(Refusal::Trouble)?;
        Leave::wait(cx, url).await
    }

    /// Whether a fetch of the longest duration fits into the hold.
    pub(super) fn fits(&self, cx: &Context) -> bool {
        self.held.as_ref().is_none_or(|held| cx.fits(held.until))
    }

    /// The address that it is for; none where any may be asked.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.held.as_ref().map(|held| held.ip)
    }

    /// The fetch is over.
    pub(super) async fn end(self, cx: &Context, ended: Boottime) -> Result<(), FrontierError> {
        match self.held {
            Some(held) => {
                let delay = cx.settings.ip_delay;
                cx.frontier
                    .release_address(held.worker, held.hold, ended, delay)
                    .await
            }
            None => Ok(()),
        }
    }
}

impl Queue {
    /// How long a host that is sent away rests: as long as those before it take, one delay each.
    fn rest(&self, delay: Duration) -> Duration {
        let before = self.sent_away.fetch_add(1, Ordering::Relaxed);
        let turn = delay.saturating_mul(before).max(WORTH_WAITING).min(LONGEST);
        turn.mul_f64(rand::rng().random_range(0.5..1.5))
    }
}

/// Asks once; if another has the address, for how long at most.
async fn ask(cx: &Arc<Context>, ip: IpAddr) -> Result<Result<Held, Duration>, Refusal> {
    // Twice the longest fetch: its beginning must not depend on how soon the answer comes.
    let longest = cx.settings.visit_budget * 2;
    let (frontier, worker) = (cx.frontier.clone(), cx.licence.worker());
    let (sent, delay) = (Boottime::now(), cx.settings.ip_delay);
    // A task of its own: a statement is not cut off when the visit is.
    let asked =
        tokio::spawn(async move { frontier.hold_address(worker, ip, longest, delay).await });
    match asked.await {
        Ok(Ok(AddressLeave::Held(hold))) => Ok(Ok(Held {
            worker,
            ip,
            hold,
            until: sent + longest,
        })),
        Ok(Ok(AddressLeave::Busy { free_in })) => Ok(Err(free_in)),
        Ok(Err(error)) => Err(Refusal::Trouble(error)),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_hosts_wait_for_an_address_the_longer_each_rests() {
        let queue = Queue::default();
        let delay = Duration::from_secs(1);
        assert!(queue.rest(delay) <= WORTH_WAITING * 3 / 2);
        for _ in 0..999 {
            queue.rest(delay);
        }
        let rest = queue.rest(delay);
        assert!(
            rest >= Duration::from_secs(500) && rest <= Duration::from_secs(1_500),
            "{rest:?}"
        );
        queue.sent_away.store(1_000_000, Ordering::Relaxed);
        assert!(queue.rest(delay) <= LONGEST * 3 / 2);
    }
}
