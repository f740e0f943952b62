//! When the frontier is asked for more.
//!
//! No I/O and no clock of its own: moments come in.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use rand::RngExt as _;

use crate::clock::Boottime;

/// Rest after a claim that answered nothing: at first, and at most.
const REST: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Where many processes wait for one moment, they come within so much of their wait after it, and at most so long.
const SPREAD: (f64, Duration) = (0.2, Duration::from_millis(50));

/// How much later than this process knows of the database lets a released host be claimed: it counts from when the release reached it,
/// and the milliseconds until then are rounded down. Where that was not enough the claim says how long is left.
const RELEASED: Duration = Duration::from_millis(5);

/// The moments at which a claim may bring something.
#[derive(Debug)]
pub(super) struct Agenda {
    rest: Duration,
    next: Boottime,
    /// When hosts that were released from here are ready. Who polls for what only others know of need not wait for his next poll then.
    expected: BinaryHeap<Reverse<Boottime>>,
}

impl Default for Agenda {
    fn default() -> Agenda {
        Agenda {
            rest: REST.0,
            next: Boottime::BEGINNING,
            expected: BinaryHeap::new(),
        }
    }
}

impl Agenda {
    /// The moment of the next claim.
    pub(super) fn next(&self) -> Boottime {
        match self.expected.peek() {
            Some(Reverse(expected)) => self.next.min(*expected),
            None => self.next,
        }
    }

    /// Whether a claim is due; what led to it is then ticked off.
    pub(super) fn take_due(&mut self, now: Boottime) -> bool {
        let due = self.next() <= now;
        while self.expected.peek().is_some_and(|Reverse(at)| *at <= now) {
            self.expected.pop();
        }
        due
    }

    /// There is work: it is looked for at once, and soon again.
    pub(super) fn work_is_there(&mut self) {
        self.rest = REST.0;
        self.look_now();
    }

    /// Worth a look, and no reason to look more often after it.
    pub(super) fn look_now(&mut self) {
        self.next = Boottime::BEGINNING;
    }

    /// Hosts were released and may be claimed from these moments on.
    pub(super) fn expect(&mut self, ready: impl IntoIterator<Item = Boottime>) {
        let ready = ready.into_iter().map(|at| Reverse(at + RELEASED));
        self.expected.extend(ready);
    }

    /// A claim brought nothing new. The next one comes when the next host is ready, and in a while that doubles each time if nobody knows of
    /// one. `alone`: no other process waits for the same moment.
    pub(super) fn rest(&mut self, next_ready: Option<Duration>, alone: bool, now: Boottime) {
        // Something is due and cannot be had, since it is not promoted yet: it is not asked for faster and faster.
        let wait = match next_ready.filter(|next| !next.is_zero()) {
            Some(next) => next.min(self.rest),
            None => self.rest,
        };
        let spread = match alone {
            true => Duration::ZERO,
            false => wait
                .mul_f64(rand::rng().random_range(0.0..SPREAD.0))
                .min(SPREAD.1),
        };
        self.next = now + wait + spread;
        self.rest = (self.rest * 2).min(REST.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Boottime = Boottime::BEGINNING;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// An agenda that has found nothing for so long that it rests for the longest time.
    fn weary() -> Agenda {
        let mut agenda = Agenda::default();
        for _ in 0..10 {
            agenda.rest(None, true, NOW);
        }
        assert_eq!(agenda.next(), NOW + REST.1);
        agenda
    }

    #[test]
    fn a_released_host_is_claimed_when_it_is_ready_however_long_the_rest_is() {
        let mut agenda = weary();
        agenda.expect([NOW + ms(900), NOW + ms(300)]);
        assert!(!agenda.take_due(NOW + ms(300)), "the database counts later");
        assert!(agenda.take_due(NOW + ms(305)));
        // A claim under way meanwhile found nothing, and rests: the other one counts all the same.
        agenda.rest(None, true, NOW + ms(310));
        assert_eq!(agenda.next(), NOW + ms(905));
        assert!(agenda.take_due(NOW + ms(905)));
        assert_eq!(agenda.next(), NOW + ms(2_310));
    }

    #[test]
    fn who_is_alone_comes_at_the_moment_and_others_soon_after_it() {
        let mut agenda = weary();
        agenda.rest(Some(ms(980)), true, NOW);
        assert_eq!(agenda.next(), NOW + ms(980));
        for _ in 0..100 {
            agenda.rest(Some(ms(980)), false, NOW);
            assert!((NOW + ms(980)..=NOW + ms(1_030)).contains(&agenda.next()));
            agenda.rest(Some(ms(10)), false, NOW);
            assert!((NOW + ms(10)..=NOW + ms(12)).contains(&agenda.next()));
        }
    }

    #[test]
    fn what_is_due_and_cannot_be_had_is_not_asked_for_faster_and_faster() {
        let mut agenda = Agenda::default();
        agenda.rest(Some(Duration::ZERO), true, NOW);
        assert_eq!(agenda.next(), NOW + REST.0);
        agenda.rest(Some(Duration::ZERO), true, NOW);
        assert_eq!(agenda.next(), NOW + REST.0 * 2);
    }

    #[test]
    fn new_work_is_looked_for_at_once_and_a_hint_does_not_shorten_the_rest_after_it() {
        let mut agenda = weary();
        agenda.look_now();
        assert!(agenda.take_due(NOW));
        agenda.rest(None, true, NOW);
        assert_eq!(agenda.next(), NOW + REST.1);
        agenda.work_is_there();
        assert!(agenda.take_due(NOW));
        agenda.rest(None, true, NOW);
        assert_eq!(agenda.next(), NOW + REST.0);
    }
}
