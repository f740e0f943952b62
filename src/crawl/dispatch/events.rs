//! What the dispatcher makes of each report.

use std::sync::atomic::Ordering;

use rand::RngExt as _;
use tokio::time::Instant;

use super::{Dispatcher, Event, REST};
use crate::{
    clock::Boottime,
    crawl::{
        ending::End,
        letting_go::LettingGo,
        robots::RobotsNews,
        stock::{Arrival, Fetched, Rules, SlotId},
        supply::Supply,
        visit::HostNews,
    },
    frontier::{FrontierError, Giving, Release},
};

impl Dispatcher {
    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Claimed(Ok(supply)) => self.claimed(supply),
            Event::Claimed(Err(error)) => {
                self.claiming = false;
                self.fail(error);
            }
            Event::Ended {
                slot,
                giving,
                host_news,
                fetched,
                visited,
            } => self.ended(slot, giving, &host_news, fetched, visited),
            Event::Robots { slot, news } => self.robots(slot, news),
            Event::Paused => self.give_all_back(),
            Event::Resettled => {
                if self.closing.is_none() {
                    tracing::info!(
                        "the crawl's settings changed; this process joins anew under them"
                    );
                }
                self.close(End::Resettled);
            }
            Event::UsedUp(which) => self.used_up(&which),
            Event::Trouble(error) => self.fail(error),
            // Nothing is lost by it: what this process has claimed is recycled, as after any death.
            Event::Panicked(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn claimed(&mut self, supply: Supply) {
        self.claiming = false;
        if supply.worker != self.cx.licence.worker() {
            // Declared dead meanwhile: what it claimed is recycled.
            return;
        }
        if let Some(which) = &supply.used_up {
            self.used_up(which);
        }
        if supply.finished
            && self.stock.is_empty()
            && self.in_flight == 0
            && self.cx.uncommitted() == 0
        {
            self.close(End::Finished);
        }
        // More of the same hosts is no news while there is enough of them.
        let news = supply
            .arrivals
            .iter()
            .any(|arrival| !self.stock.shares(arrival.host));
        if supply.arrivals.is_empty() || !news {
            let next = supply.next_ready.unwrap_or(REST.1);
            // Something is ready and cannot be had, since somebody else has it locked: then it is not asked for faster and faster.
            let wait = if next.is_zero() {
                self.rest
            } else {
                next.min(self.rest)
            };
            // Many processes that wait for one moment should not come together.
            let jitter = rand::rng().random_range(1.0..1.2);
            self.next_claim = Instant::now() + wait.mul_f64(jitter);
            self.rest = (self.rest * 2).min(REST.1);
        }
        let scarce = self.stock.tasks() < self.cx.settings.concurrency;
        if news || (scarce && !supply.arrivals.is_empty()) {
            self.rest = REST.0;
            self.next_claim = Instant::now();
        }
        let now = Boottime::now();
        for arrival in supply.arrivals {
            self.arrive(arrival, now);
        }
    }

    /// Nothing more is begun: what is in flight is finished.
    fn used_up(&mut self, which: &str) {
        if self.closing.is_none() {
            tracing::info!("the crawl's budget is used up: {which}");
        }
        self.close(End::Limit);
    }

    fn arrive(&mut self, arrival: Arrival, now: Boottime) {
        if self.closing.is_none() {
            self.stock.add(arrival, now);
            return;
        }
        self.let_go(LettingGo::unused(&arrival));
    }

    fn ended(
        &mut self,
        id: SlotId,
        giving: Giving,
        news: &HostNews,
        fetched: Option<Fetched>,
        visited: bool,
    ) {
        self.landed();
        if fetched.is_none() {
            // Nothing was asked for.
            self.left += 1;
        }
        if !visited {
            self.let_go(LettingGo {
                givings: vec![giving],
                ..LettingGo::default()
            });
        }
        let budget = self.cx.settings.visit_budget;
        self.stock.change(id, |slot| {
            slot.in_flight -= 1;
            if let Some(fetched) = fetched {
                slot.rest_from(fetched, budget);
            }
            match news {
                HostNews::Answered => slot.answered = true,
                HostNews::Failed { .. } | HostNews::Patience { .. } => {
                    // Let go after each failure, so that the breaker decides about the next try.
                    slot.ailing = true;
                    slot.answered = false;
                    slot.closed = true;
                }
                HostNews::Unasked { .. } => slot.closed = true,
                HostNews::NotAsked | HostNews::Asked => slot.closed |= !visited,
            }
        });
        self.let_go_if_over(id);
    }

    fn robots(&mut self, id: SlotId, news: RobotsNews) {
        self.landed();
        let budget = self.cx.settings.visit_budget;
        let mut shared = None;
        match news {
            RobotsNews::Known {
                robots,
                delay,
                fetched,
            } => {
                self.stock.change(id, |slot| {
                    slot.in_flight -= 1;
                    slot.rules = Rules::Known(robots);
                    slot.delay = delay;
                    slot.answered = true;
                    slot.rest_from(fetched, budget);
                });
                if delay.is_zero() {
                    shared = self.stock.share(id).map(|(host, hold)| Release {
                        host,
                        hold,
                        last_fetch: Some(fetched.ended),
                        took: fetched.took,
                        answered: true,
                        goes_on: true,
                    });
                }
            }
            RobotsNews::Deferred { fetched } => self.close_slot(id, Some(fetched)),
            RobotsNews::NotAsked => self.close_slot(id, None),
            RobotsNews::Trouble(error) => {
                self.close_slot(id, None);
                self.fail(error);
            }
        }
        if let Some(release) = shared {
            self.let_go(LettingGo {
                releases: vec![release],
                ..LettingGo::default()
            });
        }
        self.let_go_if_over(id);
    }

    fn close_slot(&mut self, id: SlotId, fetched: Option<Fetched>) {
        self.stock.change(id, |slot| {
            slot.in_flight -= 1;
            slot.closed = true;
            slot.last_fetch = slot.last_fetch.max(fetched);
        });
    }

    fn landed(&mut self) {
        self.in_flight -= 1;
        let shown = &self.cx.tally.in_flight;
        shown.store(self.in_flight, Ordering::Relaxed);
    }

    pub(super) fn let_go_if_over(&mut self, id: SlotId) {
        if let Some(slot) = self.stock.take_over(id) {
            self.let_go(LettingGo::of(&slot));
        }
    }

    pub(super) fn let_go(&self, going: LettingGo) {
        // Its receiver lives until the dispatcher is gone; if it failed, it has said so by an event.
        let _ = self.goings.send(going);
    }

    pub(super) fn fail(&mut self, error: FrontierError) {
        if self.trouble.is_none() {
            self.trouble = Some(error);
        }
        self.cx.abort.cancel();
        self.close(End::Interrupted);
    }
}
