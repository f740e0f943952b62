//! From where a claim looks for ready hosts.
//!
//! Each claim and each release moves a host in the index of ready hosts and leaves a dead entry behind, which stays while somebody holds an old
//! snapshot (a backup, a report). They are all at its head, where each claim begins. Hosts are taken in order of readiness and never become
//! ready in the past, so what a claim saw first is where the next may begin. That is a hint: every few seconds, and after an empty answer, a claim
//! looks from the start and finds what was locked in passing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Boottime;

/// How long what was seen is trusted.
const TRUSTED: Duration = Duration::from_secs(5);

/// Moments are of microseconds, and travel through a floating-point number.
const SLACK_US: i64 = 1_000;

/// Classes of hosts.
const CLASSES: usize = 3;

/// Where the next claim begins, of each class, in microseconds of the database's clock since 1970.
#[derive(Debug, Default)]
pub(super) struct Bound(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    seen: [Option<i64>; CLASSES],
    /// When a claim last looked from the start.
    whole: Option<Boottime>,
}

impl Bound {
    /// Where to begin; `None`: from the start.
    pub(super) fn next(&self, now: Boottime) -> [Option<i64>; CLASSES] {
        let mut state = self.lock();
        let trusted = state.whole.is_some_and(|whole| now - whole < TRUSTED);
        if !trusted {
            *state = State {
                seen: [None; CLASSES],
                whole: Some(now),
            };
        }
        state.seen
    }

    /// Takes what a claim answered: the class of each host, and since when it was ready.
    pub(super) fn note(&self, hosts: impl Iterator<Item = (i16, i64)>) {
        let mut first = [None::<i64>; CLASSES];
        for (class, ready_us) in hosts {
            if let Some(first) = usize::try_from(class)
                .ok()
                .and_then(|class| first.get_mut(class))
            {
                *first = Some(first.map_or(ready_us, |least| least.min(ready_us)));
            }
        }
        let mut state = self.lock();
        if first == [None; CLASSES] {
            *state = State::default();
            return;
        }
        for (seen, first) in state.seen.iter_mut().zip(first) {
            *seen = first.map(|first| first - SLACK_US).or(*seen);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_claim_begins_where_the_last_one_found_something() {
        let bound = Bound::default();
        let now = Boottime::now();
        assert_eq!(bound.next(now), [None; 3]);
        bound.note([(1, 9_000), (1, 5_000), (0, 7_000)].into_iter());
        assert_eq!(bound.next(now), [Some(6_000), Some(4_000), None]);
        // A class of which nothing was seen keeps its place.
        bound.note([(1, 20_000)].into_iter());
        assert_eq!(bound.next(now), [Some(6_000), Some(19_000), None]);
    }

    #[test]
    fn an_empty_answer_and_a_few_seconds_make_it_begin_from_the_start() {
        let bound = Bound::default();
        let now = Boottime::now();
        bound.next(now);
        bound.note([(1, 9_000)].into_iter());
        bound.note(std::iter::empty());
        assert_eq!(bound.next(now), [None; 3]);
        bound.note([(1, 9_000)].into_iter());
        assert_eq!(bound.next(now + TRUSTED), [None; 3]);
    }
}
