//! What this process has claimed and not yet visited: a slot a host, a queue of tasks in each, and which slot is next.
//!
//! No I/O and no clock of its own: moments come in, decisions go out.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use crate::{
    canon::HostKey,
    clock::Boottime,
    fetch::Validators,
    frontier::{ClaimedTask, HostId},
    robots::Robots,
};

/// Names a slot for as long as it lives; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SlotId(u64);

/// A task in stock.
#[derive(Clone, Debug)]
pub(super) struct Stocked {
    pub(super) task: ClaimedTask,
    /// Until when it may be fetched.
    pub(super) deadline: Boottime,
    /// What is known of its last answer.
    pub(super) validators: Option<Validators>,
}

/// What is known of a slot's robots.txt.
#[derive(Clone, Debug)]
pub(super) enum Rules {
    Known(Arc<Robots>),
    /// It must be fetched first.
    Due,
    /// It is being fetched.
    Loading,
}

/// A claimed host.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) host: HostId,
    pub(super) key: HostKey,
    pub(super) delay: Duration,
    /// The hold's version. None: the host is shared, and so is this slot by all claims of it.
    pub(super) hold: Option<i32>,
    pub(super) rules: Rules,
    pub(super) given_up: Option<Arc<str>>,
    pub(super) ailing: bool,
    pub(super) tasks: VecDeque<Stocked>,
    pub(super) in_flight: usize,
    /// Nothing more is started: the host is in trouble, or the deadline near.
    pub(super) closed: bool,
    pub(super) next_at: Boottime,
    pub(super) last_fetch: Option<Fetched>,
    pub(super) answered: bool,
    queued: bool,
}

impl Slot {
    /// A fetch ended: the host rests, a slow one for as long as it worked. If the rest outlasts the deadline of what is left, that goes back
    /// now and not then.
    pub(super) fn rest_from(&mut self, fetched: Fetched, budget: Duration) {
        self.last_fetch = self.last_fetch.max(Some(fetched));
        self.next_at = fetched.ended
            + match self.delay.is_zero() {
                true => Duration::ZERO,
                false => self.delay.max(fetched.took),
            };
        let fits = |stocked: &Stocked| self.next_at + budget <= stocked.deadline;
        self.closed |= !self.tasks.front().is_none_or(fits);
    }

    fn has_work(&self) -> bool {
        !self.closed && !self.tasks.is_empty() && !matches!(self.rules, Rules::Loading)
    }

    /// How many fetches may be under way: one where the host is polite or its robots.txt is not there yet.
    fn width(&self, per_host: usize) -> usize {
        if self.delay.is_zero() && matches!(self.rules, Rules::Known(_)) {
            per_host
        } else {
            1
        }
    }

    /// Nothing is left to do or to wait for.
    fn is_over(&self) -> bool {
        self.in_flight == 0 && (self.tasks.is_empty() || self.closed)
    }
}

/// A fetch that is over; the later end is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fetched {
    pub(super) ended: Boottime,
    pub(super) took: Duration,
}

/// A claimed host that comes into stock.
pub(super) struct Arrival {
    pub(super) host: HostId,
    pub(super) key: HostKey,
    pub(super) delay: Duration,
    pub(super) hold: Option<i32>,
    pub(super) rules: Rules,
    pub(super) given_up: Option<Arc<str>>,
    pub(super) ailing: bool,
    pub(super) tasks: Vec<Stocked>,
}

/// All slots.
#[derive(Debug)]
pub(super) struct Stock {
    slots: HashMap<SlotId, Slot>,
    /// Slots of hosts that are not held, so that a further claim of the host joins its slot.
    shared: HashMap<HostId, SlotId>,
    ready: BinaryHeap<Reverse<(Boottime, SlotId)>>,
    per_host: usize,
    next: u64,
    tasks: usize,
    shared_tasks: usize,
}

impl Stock {
    pub(super) fn new(per_host: usize) -> Stock {
        Stock {
            slots: HashMap::new(),
            shared: HashMap::new(),
            ready: BinaryHeap::new(),
            per_host: per_host.max(1),
            next: 0,
            tasks: 0,
            shared_tasks: 0,
        }
    }

    /// Tasks in all slots.
    pub(super) fn tasks(&self) -> usize {
        self.tasks
    }

    /// Slots, those with nothing but a fetch under way included.
    pub(super) fn hosts(&self) -> usize {
        self.slots.len()
    }

    /// No slot is there.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn get(&self, id: SlotId) -> Option<&Slot> {
        self.slots.get(&id)
    }

    /// Changes a slot, and queues it if that made it startable.
    pub(super) fn change<T>(
        &mut self,
        id: SlotId,
        change: impl FnOnce(&mut Slot) -> T,
    ) -> Option<T> {
        let slot = self.slots.get_mut(&id)?;
        let before = slot.tasks.len();
        let result = change(slot);
        let after = slot.tasks.len();
        self.tasks = self.tasks - before + after;
        if slot.hold.is_none() {
            self.shared_tasks = self.shared_tasks - before + after;
        }
        self.queue(id);
        Some(result)
    }

    /// Takes a claimed host in. Tasks of a host that is not held join its slot.
    pub(super) fn add(&mut self, arrival: Arrival, now: Boottime) {
        self.tasks += arrival.tasks.len();
        if arrival.hold.is_none() {
            self.shared_tasks += arrival.tasks.len();
        }
        if arrival.hold.is_none()
            && let Some(&id) = self.shared.get(&arrival.host)
            && let Some(slot) = self.slots.get_mut(&id)
            && !slot.closed
        {
            slot.tasks.extend(arrival.tasks);
            slot.given_up = arrival.given_up.or(slot.given_up.take());
            slot.ailing |= arrival.ailing;
            self.queue(id);
            return;
        }
        let id = SlotId(self.next);
        self.next += 1;
        if arrival.hold.is_none() {
            self.shared.insert(arrival.host, id);
        }
        self.slots.insert(
            id,
            Slot {
                host: arrival.host,
                key: arrival.key,
                delay: arrival.delay,
                hold: arrival.hold,
                rules: arrival.rules,
                given_up: arrival.given_up,
                ailing: arrival.ailing,
                tasks: arrival.tasks.into(),
                in_flight: 0,
                closed: false,
                next_at: now,
                last_fetch: None,
                answered: false,
                queued: false,
            },
        );
        self.queue(id);
    }

    /// The slot that may be started by now, longest ready first. It is the caller's to start it.
    pub(super) fn pop_ready(&mut self, now: Boottime) -> Option<SlotId> {
        while let Some(&Reverse((at, id))) = self.ready.peek() {
            if at > now {
                return None;
            }
            self.ready.pop();
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            slot.queued = false;
            if slot.has_work() && slot.in_flight < slot.width(self.per_host) {
                if slot.next_at <= now {
                    return Some(id);
                }
                self.queue(id);
            }
        }
        None
    }

    /// When the next slot may be started.
    pub(super) fn next_at(&self) -> Option<Boottime> {
        self.ready.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a slot out if nothing is left to do or to wait for in it.
    pub(super) fn take_over(&mut self, id: SlotId) -> Option<Slot> {
        if !self.slots.get(&id)?.is_over() {
            return None;
        }
        self.take(id)
    }

    /// Makes a held slot a shared one: its host has no delay after all. Answers the version of the hold, which is to be released.
    pub(super) fn share(&mut self, id: SlotId) -> Option<(HostId, i32)> {
        let slot = self.slots.get_mut(&id)?;
        let hold = slot.hold.take()?;
        self.shared.insert(slot.host, id);
        self.shared_tasks += slot.tasks.len();
        Some((slot.host, hold))
    }

    /// Whether a slot of this host is there that a further claim of it joins.
    pub(super) fn shares(&self, host: HostId) -> bool {
        self.shared.contains_key(&host)
    }

    /// Tasks of hosts that are not held.
    pub(super) fn shared_tasks(&self) -> usize {
        self.shared_tasks
    }

    /// Closes all slots; answers those that are over at once.
    pub(super) fn close_all(&mut self) -> Vec<Slot> {
        let ids: Vec<SlotId> = self.slots.keys().copied().collect();
        for slot in self.slots.values_mut() {
            slot.closed = true;
        }
        ids.into_iter()
            .filter_map(|id| self.take_over(id))
            .collect()
    }

    /// Forgets everything: nothing of it is ours any more.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.shared.clear();
        self.ready.clear();
        self.tasks = 0;
        self.shared_tasks = 0;
    }

    fn take(&mut self, id: SlotId) -> Option<Slot> {
        let slot = self.slots.remove(&id)?;
        self.tasks -= slot.tasks.len();
        if slot.hold.is_none() {
            self.shared_tasks -= slot.tasks.len();
        }
        if self.shared.get(&slot.host) == Some(&id) {
            self.shared.remove(&slot.host);
        }
        Some(slot)
    }

    fn queue(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if !slot.queued && slot.has_work() && slot.in_flight < slot.width(self.per_host) {
            slot.queued = true;
            self.ready.push(Reverse((slot.next_at, id)));
        }
    }
}
