//! The loop of one process: claim ahead, start what may be started, let go of what is used up.
//!
//! It alone owns the stock. Everything else happens in tasks of their own that report back by [`Event`]s: so no database work is ever
//! cancelled half way, and the loop never waits for one thing only.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rand::RngExt as _;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::task::TaskTracker;

use super::{
    context::Context,
    ending::{End, Stop},
    letting_go::LettingGo,
    robots::{self, RobotsNews},
    stock::{Arrival, Rules, SlotId, Stock, Stocked},
    supply::{self, Supply},
    visit::{self, Ended, HostNews, Job, Visit},
};
use crate::{
    clock::Boottime,
    frontier::{Appetite, FrontierError, Giving, Identity, Release},
    robots::Robots,
};

/// Rest after a claim that answered nothing: at first, and at most.
const REST: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Hosts that one claim asks for at most.
const CLAIM_HOSTS: usize = 256;

/// What the tasks of the loop report.
pub(super) enum Event {
    /// A claim came back.
    Claimed(Result<Supply, FrontierError>),
    /// A visit ended.
    Ended {
        slot: SlotId,
        giving: Giving,
        host_news: HostNews,
        fetched: Option<Boottime>,
        visited: bool,
    },
    /// robots.txt was asked for.
    Robots { slot: SlotId, news: RobotsNews },
    /// The frontier failed for good.
    Trouble(FrontierError),
}

pub(super) struct Dispatcher {
    cx: Arc<Context>,
    me: Identity,
    stock: Stock,
    visits: mpsc::Sender<Box<Visit>>,
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
        visits: mpsc::Sender<Box<Visit>>,
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
                    cx.abort.cancel();
                }
                () = stop.drain.cancelled(), if self.closing.is_none() => {
                    self.close(End::Interrupted);
                    grace = Some(Instant::now() + cx.settings.grace);
                }
                () = at(grace), if grace.is_some() && !cx.abort.is_cancelled() => {
                    tracing::info!(visits = self.in_flight, "the grace is over; visits under way are given back");
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
                () = sleep(timer) => {}
            }
        }
    }

    /// Starts whatever may be started now.
    fn start_ready(&mut self) {
        let cx = Arc::clone(&self.cx);
        while self.in_flight < cx.settings.concurrency && self.left > 0 && self.closing.is_none() {
            let Some(id) = self.stock.pop_ready(Boottime::now()) else {
                break;
            };
            self.start(id);
        }
        if self.left == 0 && self.in_flight == 0 && self.closing.is_none() {
            tracing::info!("the greatest number of pages is reached");
            self.close(End::Limit);
        }
    }

    fn start(&mut self, id: SlotId) {
        let cx = Arc::clone(&self.cx);
        let Some(slot) = self.stock.get(id) else {
            return;
        };
        let Some(deadline) = slot.tasks.front().map(|stocked| stocked.deadline) else {
            return;
        };
        if slot.given_up.is_none() && !cx.fits(deadline) {
            // Too near: what is left goes back uncounted, to be claimed with a new lease.
            self.stock.change(id, |slot| slot.closed = true);
            self.let_go_if_over(id);
            return;
        }
        let (host, key) = (slot.host, slot.key.clone());
        let events = self.events.clone();
        self.in_flight += 1;
        cx.tally.in_flight.store(self.in_flight, Ordering::Relaxed);
        let rules = slot.rules.clone();
        match rules {
            Rules::Due if slot.given_up.is_none() => {
                self.stock.change(id, |slot| {
                    slot.in_flight += 1;
                    slot.rules = Rules::Loading;
                });
                self.tracker.spawn(async move {
                    let news = robots::ask(&cx, host, &key, deadline).await;
                    let _ = events.send(Event::Robots { slot: id, news });
                });
            }
            rules => {
                let robots = match rules {
                    Rules::Known(robots) => robots,
                    _ => Arc::new(Robots::allow_all()),
                };
                let given_up = slot.given_up.clone();
                let Some(Stocked { task, deadline }) = self
                    .stock
                    .change(id, |slot| {
                        slot.in_flight += 1;
                        slot.tasks.pop_front()
                    })
                    .flatten()
                else {
                    return;
                };
                self.left -= 1;
                let visits = self.visits.clone();
                let job = Job {
                    task,
                    host,
                    deadline,
                    robots,
                    given_up,
                };
                self.tracker.spawn(travel(cx, id, job, visits, events));
            }
        }
    }

    /// Claims if what can be started soon would not last.
    fn claim_if_short(&mut self) {
        let (concurrency, per_host) = (self.cx.settings.concurrency, self.cx.settings.per_host);
        if self.claiming || self.closing.is_some() || self.left == 0 {
            return;
        }
        let idle = concurrency.saturating_sub(self.in_flight);
        // Twice what runs at once, and a quarter of a second of what was done lately.
        let pace = usize::try_from(self.cx.tally.last_minute()).unwrap_or(0) / 60 / 4;
        let target = (2 * concurrency).max(pace).min(4_000);
        // With delays, most of the stock is resting, and more hosts are wanted for as long as fetches could run.
        let startable_now = self.stock.next_at().is_some_and(|at| at <= Boottime::now());
        let short = self.stock.tasks() < target / 2
            || (idle > 0 && !startable_now && self.stock.hosts() < 16 * concurrency);
        if !short || self.stock.tasks() >= 64 * concurrency {
            return;
        }
        if idle > 0 && !startable_now {
            self.cx.hungry.notify_one();
        }
        if Instant::now() < self.next_claim {
            return;
        }
        let wanted = target
            .saturating_sub(self.stock.tasks())
            .max(concurrency)
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let appetite = Appetite {
            hosts: u32::try_from(wanted.min(CLAIM_HOSTS)).unwrap_or(u32::MAX),
            tasks: u32::try_from(wanted).unwrap_or(u32::MAX),
            tasks_per_host: u32::try_from(per_host.saturating_mul(8).max(16).min(wanted))
                .unwrap_or(u32::MAX),
        };
        self.claiming = true;
        let (cx, events) = (Arc::clone(&self.cx), self.events.clone());
        let idle = self.stock.is_empty() && self.in_flight == 0;
        self.tracker.spawn(async move {
            let _ = events.send(Event::Claimed(supply::claim(&cx, appetite, idle).await));
        });
    }

    /// How long the loop may sleep if nothing happens.
    fn timer(&self) -> Duration {
        let next_start = match self.stock.next_at() {
            Some(at) if self.in_flight < self.cx.settings.concurrency => at - Boottime::now(),
            _ => Duration::from_secs(60),
        };
        let next_claim = if self.claiming || self.closing.is_some() {
            Duration::from_secs(60)
        } else {
            self.next_claim.saturating_duration_since(Instant::now())
        };
        // The clock of deadlines and the timer's are two: never a busy loop between them.
        next_start
            .min(next_claim.max(Duration::from_millis(1)))
            .max(Duration::from_micros(200))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Claimed(claimed) => self.claimed(claimed),
            Event::Ended {
                slot,
                giving,
                host_news,
                fetched,
                visited,
            } => self.ended(slot, giving, &host_news, fetched, visited),
            Event::Robots { slot, news } => self.robots(slot, news),
            Event::Trouble(error) => self.fail(error),
        }
    }

    fn claimed(&mut self, claimed: Result<Supply, FrontierError>) {
        self.claiming = false;
        let supply = match claimed {
            Ok(supply) => supply,
            Err(error) => return self.fail(error),
        };
        if supply.worker != self.cx.licence.worker() {
            return; // declared dead meanwhile: it is recycled
        }
        let idle = self.stock.is_empty() && self.in_flight == 0 && self.cx.uncommitted() == 0;
        if supply.finished && idle {
            self.close(End::Finished);
        }
        if supply.arrivals.is_empty() {
            let wait = supply
                .next_ready
                .unwrap_or(REST.1)
                .clamp(Duration::from_millis(1), self.rest);
            // Many processes that wait for one moment should not come together.
            let jitter = rand::rng().random_range(1.0..1.2);
            self.next_claim = Instant::now() + wait.mul_f64(jitter);
            self.rest = (self.rest * 2).min(REST.1);
        } else {
            self.rest = REST.0;
            self.next_claim = Instant::now();
        }
        let now = Boottime::now();
        for arrival in supply.arrivals {
            self.arrive(arrival, now);
        }
    }

    fn arrive(&mut self, arrival: Arrival, now: Boottime) {
        if self.closing.is_none() {
            self.stock.add(arrival, now);
            return;
        }
        let givings = arrival
            .tasks
            .iter()
            .map(|stocked| Giving {
                task: stocked.task.id,
                claim_version: stocked.task.claim_version,
            })
            .collect();
        let releases = arrival
            .hold
            .map(|hold| Release {
                host: arrival.host,
                hold,
                last_fetch: None,
                answered: false,
            })
            .into_iter()
            .collect();
        self.let_go(LettingGo {
            givings,
            releases,
            answered: Vec::new(),
        });
    }

    fn ended(
        &mut self,
        id: SlotId,
        giving: Giving,
        news: &HostNews,
        fetched: Option<Boottime>,
        visited: bool,
    ) {
        self.landed();
        if fetched.is_none() {
            self.left += 1; // nothing was asked for
        }
        if !visited {
            self.let_go(LettingGo {
                givings: vec![giving],
                ..LettingGo::default()
            });
        }
        self.stock.change(id, |slot| {
            slot.in_flight -= 1;
            if let Some(end) = fetched {
                slot.last_fetch = slot.last_fetch.max(Some(end));
                slot.next_at = end + slot.delay;
            }
            match news {
                HostNews::Answered => slot.answered = true,
                HostNews::Patience { .. } => {
                    slot.answered = true;
                    slot.closed = true;
                }
                HostNews::Failed { .. } => {
                    slot.ailing = true;
                    slot.answered = false;
                    // A polite host is let go after each failure, so that the breaker decides about the next try.
                    slot.closed = true;
                }
                HostNews::NotAsked | HostNews::Asked => slot.closed |= !visited,
            }
        });
        self.let_go_if_over(id);
        if self.closing.is_none()
            && matches!(news, HostNews::Failed { .. } | HostNews::Patience { .. })
        {
            self.next_claim = self.next_claim.max(Instant::now());
        }
    }

    fn robots(&mut self, id: SlotId, news: RobotsNews) {
        self.landed();
        let mut share = None;
        match news {
            RobotsNews::Known {
                robots,
                delay,
                ended,
            } => {
                self.stock.change(id, |slot| {
                    slot.in_flight -= 1;
                    slot.rules = Rules::Known(robots);
                    slot.delay = delay;
                    slot.last_fetch = Some(ended);
                    slot.next_at = ended + delay;
                    slot.answered = true;
                });
                if delay.is_zero() {
                    share = self
                        .stock
                        .share(id)
                        .zip(self.stock.get(id).map(|slot| slot.host))
                        .map(|(hold, host)| Release {
                            host,
                            hold,
                            last_fetch: Some(ended),
                            answered: true,
                        });
                }
            }
            RobotsNews::Deferred { ended } => {
                self.stock.change(id, |slot| {
                    slot.in_flight -= 1;
                    slot.closed = true;
                    slot.last_fetch = Some(ended);
                });
            }
            RobotsNews::NotAsked => {
                self.stock.change(id, |slot| {
                    slot.in_flight -= 1;
                    slot.closed = true;
                });
            }
            RobotsNews::Trouble(error) => {
                self.stock.change(id, |slot| {
                    slot.in_flight -= 1;
                    slot.closed = true;
                });
                self.fail(error);
            }
        }
        if let Some(release) = share {
            self.let_go(LettingGo {
                releases: vec![release],
                ..LettingGo::default()
            });
        }
        self.let_go_if_over(id);
    }

    fn landed(&mut self) {
        self.in_flight -= 1;
        self.cx
            .tally
            .in_flight
            .store(self.in_flight, Ordering::Relaxed);
    }

    fn let_go_if_over(&mut self, id: SlotId) {
        if let Some(slot) = self.stock.take_over(id) {
            self.let_go(LettingGo::of(&slot));
        }
    }

    fn let_go(&self, going: LettingGo) {
        // Its receiver lives until the dispatcher is gone; if it failed, it has said so by an event.
        let _ = self.goings.send(going);
    }

    /// No more claims and starts; what is under way ends by itself.
    fn close(&mut self, end: End) {
        if self.closing.is_none() {
            self.closing = Some(end);
        }
        for slot in self.stock.close_all() {
            self.let_go(LettingGo::of(&slot));
        }
    }

    fn fail(&mut self, error: FrontierError) {
        if self.trouble.is_none() {
            self.trouble = Some(error);
        }
        self.cx.abort.cancel();
        self.close(End::Interrupted);
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
                self.next_claim = Instant::now();
            }
            Err(error) => self.fail(error),
        }
    }
}

/// A visit as a task of its own: the journey, the host's news, the hand-over to the commit, the report.
async fn travel(
    cx: Arc<Context>,
    slot: SlotId,
    job: Job,
    visits: mpsc::Sender<Box<Visit>>,
    events: mpsc::UnboundedSender<Event>,
) {
    let giving = Giving {
        task: job.task.id,
        claim_version: job.task.claim_version,
    };
    let host = job.host;
    let event = match visit::travel(&cx, job).await {
        Ended::Visited(visit, host_news, fetched) => {
            if let Err(error) = tell_host(&cx, host, &host_news).await {
                let _ = events.send(Event::Trouble(error));
            }
            cx.uncommitted.fetch_add(1, Ordering::AcqRel);
            // Waits here while the commit is behind: that is the back-pressure.
            let visited = visits.send(visit).await.is_ok();
            Event::Ended {
                slot,
                giving,
                host_news,
                fetched,
                visited,
            }
        }
        Ended::NotBegun => Event::Ended {
            slot,
            giving,
            host_news: HostNews::NotAsked,
            fetched: None,
            visited: false,
        },
        Ended::Aborted => Event::Ended {
            slot,
            giving,
            host_news: HostNews::Asked,
            fetched: Some(Boottime::now()),
            visited: false,
        },
    };
    let _ = events.send(event);
}

/// Trouble of a host moves its one row, not thousands of tasks.
async fn tell_host(
    cx: &Context,
    host: crate::frontier::HostId,
    news: &HostNews,
) -> Result<(), FrontierError> {
    let retry = &cx.settings.retry;
    match news {
        HostNews::Patience { wait, note } => cx.frontier.defer(host, *wait, note).await,
        HostNews::Failed { note } => {
            let given_up = cx
                .frontier
                .host_failed(host, retry.breaker_failures, &retry.breaker_pauses, note)
                .await?;
            if given_up {
                tracing::info!(host.id = host.0, "{note}; the host is given up");
            }
            Ok(())
        }
        HostNews::NotAsked | HostNews::Answered | HostNews::Asked => Ok(()),
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
