//! What is started, and when more is claimed.

use std::sync::{Arc, atomic::Ordering};

use tokio::time::Instant;

use super::{CLAIM_HOSTS, Dispatcher, Event, guarded, travel::travel};
use crate::{
    clock::Boottime,
    crawl::{
        ending::End,
        robots,
        stock::{Rules, SlotId, Stocked},
        supply,
        visit::Job,
    },
    frontier::Appetite,
    robots::Robots,
};

/// Tasks in stock at most, for each fetch that may run at once: what waits longer than a lease goes back unused.
const STOCK_PER_FLIGHT: usize = 64;

/// Hosts in stock at most, for each fetch that may run at once. A polite host is busy for a small part of its time.
const HOSTS_PER_FLIGHT: usize = 16;

impl Dispatcher {
    /// Starts whatever may be started now.
    pub(super) fn start_ready(&mut self) {
        let cx = Arc::clone(&self.cx);
        while self.in_flight < self.most_flights()
            && self.left > 0
            && self.closing.is_none()
            && cx.licensed()
        {
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
        let Some(slot) = self.stock.get(id) else {
            return;
        };
        let Some(deadline) = slot.tasks.front().map(|stocked| stocked.deadline) else {
            return;
        };
        if slot.given_up.is_none() && !self.cx.fits(deadline) {
            // Too near: what is left goes back uncounted, to be claimed with a new lease.
            self.stock.change(id, |slot| slot.closed = true);
            self.let_go_if_over(id);
            return;
        }
        match slot.rules.clone() {
            Rules::Due if slot.given_up.is_none() => self.ask_for_robots(id, deadline),
            Rules::Known(robots) => self.visit(id, robots),
            // Given up: nothing will be asked for.
            Rules::Due | Rules::Loading => self.visit(id, Arc::new(Robots::allow_all())),
        }
    }

    fn ask_for_robots(&mut self, id: SlotId, deadline: Boottime) {
        let asked = self.stock.change(id, |slot| {
            slot.in_flight += 1;
            slot.rules = Rules::Loading;
            (slot.host, slot.key.clone(), slot.delay)
        });
        let Some((host, key, delay)) = asked else {
            return;
        };
        self.took_off();
        let (cx, events) = (Arc::clone(&self.cx), self.events.clone());
        self.tracker.spawn(async move {
            if let Some(news) =
                guarded(&events, robots::ask(&cx, host, &key, delay, deadline)).await
            {
                let _ = events.send(Event::Robots { slot: id, news });
            }
        });
    }

    fn visit(&mut self, id: SlotId, robots: Arc<Robots>) {
        // The stock is this worker's: it is dropped when the process registers anew.
        let worker = self.cx.licence.worker();
        let taken = self.stock.change(id, |slot| {
            let Stocked {
                task,
                deadline,
                validators,
            } = slot.tasks.pop_front()?;
            slot.in_flight += 1;
            Some(Job {
                task,
                validators,
                worker,
                host: slot.host,
                delay: slot.delay,
                deadline,
                robots,
                given_up: slot.given_up.clone(),
                shared: slot.hold.is_none(),
                answered: slot.answered,
            })
        });
        let Some(job) = taken.flatten() else { return };
        self.took_off();
        self.left -= 1;
        let (cx, visits, events) = (
            Arc::clone(&self.cx),
            self.visits.clone(),
            self.events.clone(),
        );
        self.tracker.spawn(travel(cx, id, job, visits, events));
    }

    fn took_off(&mut self) {
        self.in_flight += 1;
        let shown = &self.cx.tally.in_flight;
        shown.store(self.in_flight, Ordering::Relaxed);
    }

    /// How many tasks should be in stock: twice what runs at once, and a quarter of a second of what was done lately.
    fn target(&self) -> usize {
        let pace = usize::try_from(self.cx.tally.last_minute()).unwrap_or(0) / 60 / 4;
        (2 * self.cx.settings.concurrency).max(pace).min(4_000)
    }

    /// Whether a claim is due as soon as the last one has rested.
    pub(super) fn wants_to_claim(&self) -> bool {
        !self.claiming && self.closing.is_none() && self.left > 0 && self.is_short(self.target())
    }

    /// Claims if what can be started soon would not last.
    pub(super) fn claim_if_short(&mut self) {
        if !self.wants_to_claim() {
            return;
        }
        let (concurrency, per_host) = (self.cx.settings.concurrency, self.cx.settings.per_host);
        let target = self.target();
        if self.stock.tasks() == 0 {
            // What waits for a fuller batch may be what we are waiting for.
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
            hosts: count(wanted.min(CLAIM_HOSTS)),
            tasks: count(wanted),
            // Few of each host, so that many hosts are crawled side by side; all that a host can take, where there is but one.
            tasks_per_host: count(per_host.saturating_mul(4).max(4).min(wanted)),
        };
        self.claiming = true;
        let idle = self.stock.is_empty() && self.in_flight == 0;
        let (cx, events) = (Arc::clone(&self.cx), self.events.clone());
        self.tracker.spawn(async move {
            if let Some(claimed) = guarded(&events, supply::claim(&cx, appetite, idle)).await {
                let _ = events.send(Event::Claimed(claimed));
            }
        });
    }

    /// Either the stock runs out, or fetches could run and nothing in stock may be started: then other hosts are wanted.
    fn is_short(&self, target: usize) -> bool {
        let concurrency = self.cx.settings.concurrency;
        if self.stock.tasks() >= STOCK_PER_FLIGHT * concurrency {
            return false;
        }
        let idle = self.in_flight < self.most_flights();
        let startable = self.stock.next_at().is_some_and(|at| at <= Boottime::now());
        self.stock.tasks() < target / 2
            || (idle
                && !startable
                && self.stock.hosts() < HOSTS_PER_FLIGHT * concurrency
                && self.stock.shared_tasks() < 4 * target)
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
