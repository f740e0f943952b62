//! The loop of one process: claim ahead, start what may be started, let go of what is used up.
//!
//! It alone owns the stock. Everything else happens in tasks of their own that report back by [`Event`]s: so no database work is ever
//! cancelled half way, and the loop never waits for one thing only.

mod events;
mod start;
mod travel;

pub(super) use travel::rest_for_its_address;

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt as _;

use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::task::TaskTracker;

use super::{
    commit::Loaded,
    context::Context,
    ending::{End, Stop},
    letting_go::LettingGo,
    robots::RobotsNews,
    stock::{Fetched, SlotId, Stock},
    supply::Supply,
    visit::HostNews,
};
use crate::{
    clock::Boottime,
    frontier::{FrontierError, Giving, Identity},
};

/// Rest after a claim that answered nothing: at first, and at most.
const REST: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Hosts that one claim asks for at most.
const CLAIM_HOSTS: usize = 256;

/// Longest wait for the rate.
const LINE: Duration = Duration::from_secs(20);

/// How often a process looks whether its heartbeat got through, while it may not fetch.
const UNLICENSED: Duration = Duration::from_millis(50);

/// What the tasks of the loop report.
pub(super) enum Event {
    /// A claim came back.
    Claimed(Result<Supply, FrontierError>),
    /// A visit ended.
    Ended {
        slot: SlotId,
        giving: Giving,
        host_news: HostNews,
        fetched: Option<Fetched>,
        visited: bool,
    },
    /// robots.txt was asked for.
    Robots { slot: SlotId, news: RobotsNews },
    /// The crawl's settings changed.
    Resettled,
    /// A budget of the crawl is used up, this one.
    UsedUp(String),
    /// An operator paused the crawl.
    Paused,
    /// The frontier failed for good.
    Trouble(FrontierError),
    /// A part of the crawl that is not one visit panicked.
    Panicked(Box<dyn std::any::Any + Send>),
}

/// Runs a part of the crawl; a panic in it is reported, so that nobody waits for what it would have said.
pub(super) async fn guarded<T>(
    events: &mpsc::UnboundedSender<Event>,
    part: impl Future<Output = T>,
) -> Option<T> {
    match AssertUnwindSafe(part).catch_unwind().await {
        Ok(value) => Some(value),
        Err(panic) => {
            let _ = events.send(Event::Panicked(panic));
            None
        }
    }
}

pub(super) struct Dispatcher {
    cx: Arc<Context>,
    me: Identity,
    stock: Stock,
    visits: mpsc::Sender<Loaded>,
    goings: mpsc::UnboundedSender<LettingGo>,
    events: mpsc::UnboundedSender<Event>,
    inbox: mpsc::UnboundedReceiver<Event>,
    tracker: TaskTracker,
    in_flight: usize,
    claiming: bool,
    rest: Duration,
    next_claim: Instant,
    /// Fetches that this run may still make.
    left: u64,
    /// No more claims: the run ends so, once nothing is under way.
    closing: Option<End>,
    trouble: Option<FrontierError>,
}

impl Dispatcher {
    pub(super) fn new(
        cx: Arc<Context>,
        me: Identity,
        visits: mpsc::Sender<Loaded>,
        goings: mpsc::UnboundedSender<LettingGo>,
        tracker: TaskTracker,
    ) -> Dispatcher {
        let (events, inbox) = mpsc::unbounded_channel();
        Dispatcher {
            stock: Stock::new(cx.settings.per_host),
            left: cx.settings.max_pages.unwrap_or(u64::MAX),
            rest: REST.0,
            next_claim: Instant::now(),
            cx,
            me,
            visits,
            goings,
            events,
            inbox,
            tracker,
            in_flight: 0,
            claiming: false,
            closing: None,
            trouble: None,
        }
    }

    /// A handle by which other tasks report trouble.
    pub(super) fn reporter(&self) -> mpsc::UnboundedSender<Event> {
        self.events.clone()
    }

    /// Runs until the crawl is finished, a limit is reached, or it is told to stop. When it returns, nothing is under way.
    pub(super) async fn run(mut self, stop: Stop) -> Result<End, FrontierError> {
        let cx = Arc::clone(&self.cx);
        let over = cx
            .settings
            .max_duration
            .map(|longest| Instant::now() + longest);
        let mut grace: Option<Instant> = None;
        loop {
            self.start_ready();
            self.claim_if_short();
            if self.in_flight == 0 && !self.claiming && self.closing.is_some() {
                return match self.trouble.take() {
                    Some(error) => Err(error),
                    None => Ok(self.closing.take().unwrap_or(End::Finished)),
                };
            }
            let timer = self.timer();
            tokio::select! {
                biased;
                () = stop.abort.cancelled(), if !cx.abort.is_cancelled() => {
                    self.close(End::Interrupted);
                    cx.frontier.hurry();
                    cx.abort.cancel();
                }
                () = stop.drain.cancelled(), if grace.is_none() => {
                    self.close(End::Interrupted);
                    grace = Some(Instant::now() + cx.settings.grace);
                }
                () = at(grace), if grace.is_some() && !cx.abort.is_cancelled() => {
                    tracing::info!(visits = self.in_flight, "the grace is over; visits under way are given back");
                    cx.frontier.hurry();
                    cx.abort.cancel();
                }
                () = at(over), if over.is_some() && self.closing.is_none() => {
                    tracing::info!("the longest duration is reached");
                    self.close(End::Limit);
                }
                () = cx.licence.died.notified() => self.register_anew().await,
                Some(event) = self.inbox.recv() => {
                    self.handle(event);
                    while let Ok(event) = self.inbox.try_recv() {
                        self.handle(event);
                    }
                }
                () = cx.fresh.notified() => {
                    self.rest = REST.0;
                    self.next_claim = Instant::now();
                }
                // A hint of others: worth a look, and no reason to look more often after it.
                () = cx.heard.notified() => self.next_claim = Instant::now(),
                () = sleep(timer) => {}
            }
        }
    }

    /// Longest wait for a turn in the rate that leaves time for the fetch.
    fn line(&self) -> Duration {
        let lease = self.cx.frontier.settings().lease;
        LINE.min(lease.saturating_sub(self.cx.settings.visit_budget) / 2)
    }

    /// Fetches that may be under way at once.
    fn most_flights(&self) -> usize {
        let settings = &self.cx.settings;
        let workers = self.cx.workers.load(Ordering::Relaxed);
        most_flights(settings.concurrency, settings.rate, workers, self.line())
    }

    /// How long the loop may sleep if nothing happens.
    fn timer(&self) -> Duration {
        const LONG: Duration = Duration::from_secs(60);
        let may_start =
            self.in_flight < self.most_flights() && self.left > 0 && self.closing.is_none();
        let next_start = match self.stock.next_at() {
            Some(at) if may_start => at - Boottime::now(),
            _ => LONG,
        };
        let next_claim = if self.wants_to_claim() {
            self.next_claim.saturating_duration_since(Instant::now())
        } else {
            LONG
        };
        // Without a licence the next heartbeat decides; nobody tells of it.
        let next_start = if self.cx.licensed() {
            next_start
        } else {
            next_start.max(UNLICENSED)
        };
        // The clock of deadlines and the timer's are two: never a busy loop between them.
        next_start
            .min(next_claim.max(Duration::from_millis(1)))
            .max(Duration::from_micros(200))
    }

    /// No more claims and starts; what is under way ends by itself.
    fn close(&mut self, end: End) {
        if self.closing.is_none() {
            self.closing = Some(end);
        }
        self.give_all_back();
    }

    /// What is in stock goes back; what is under way ends by itself.
    fn give_all_back(&mut self) {
        for slot in self.stock.close_all() {
            self.let_go(LettingGo::of(&slot));
        }
    }

    /// This worker was declared dead: what it held was given to others. Its late finishes are refused; it drops its stock and starts anew.
    async fn register_anew(&mut self) {
        tracing::warn!(
            "this process was declared dead, paused for too long perhaps; it drops its stock and registers anew"
        );
        self.stock.clear();
        let sent = Boottime::now();
        match self.cx.frontier.join(&self.me).await {
            Ok(worker) => {
                self.cx
                    .licence
                    .renew_as(worker, sent + self.cx.frontier.settings().dead_after);
                // Told again meanwhile, of the worker that it was.
                let _ = self.cx.licence.died.notified().now_or_never();
                self.next_claim = Instant::now();
            }
            Err(error) => self.fail(error),
        }
    }
}

/// Who takes off and then waits for the rate must not wait for longer than its deadline allows: a low rate lets few take off, of each of so
/// many processes.
fn most_flights(concurrency: usize, rate: Option<f64>, workers: usize, line: Duration) -> usize {
    let Some(rate) = rate else { return concurrency };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a saturating count"
    )]
    let in_line = (rate * line.as_secs_f64()) as usize / workers.max(1);
    in_line.clamp(1, concurrency)
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_rate_lets_few_take_off_and_never_none() {
        assert_eq!(most_flights(64, None, 8, LINE), 64);
        assert_eq!(most_flights(64, Some(100.0), 1, LINE), 64);
        assert_eq!(most_flights(64, Some(0.5), 1, LINE), 10);
        assert_eq!(most_flights(64, Some(0.5), 2, LINE), 5);
        assert_eq!(most_flights(64, Some(0.01), 1, LINE), 1);
        assert_eq!(most_flights(64, Some(2.0), 1, LINE / 4), 10);
    }
}
