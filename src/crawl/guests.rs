//! Visits of a redirected robots.txt to a host that nobody holds for it.
//!
//! The hold of such a host may be another process's for minutes, so it is not waited for: one request a day is little. But a provider may send
//! the crawlers of ten thousand hosts to one file of his; so the guests of this process come one by one, the crawl's delay apart.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::clock::Boottime;

/// Longest wait for a turn, within the time of one fetch.
const WORTH_WAITING: Duration = Duration::from_secs(5);

/// Hosts that are remembered; those whose last guest came long enough ago are forgotten above that.
const REMEMBERED: usize = 10_000;

/// When the next guest may come, by authority.
#[derive(Debug, Default)]
pub(super) struct Guests(Mutex<HashMap<String, Boottime>>);

impl Guests {
    /// Takes the next turn at a host, `delay` after the one before it.
    ///
    /// # Errors
    /// How long it is until then, where that is too long to wait for; no turn is taken.
    pub(super) fn turn(
        &self,
        authority: &str,
        delay: Duration,
        now: Boottime,
    ) -> Result<Boottime, Duration> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = next.get(authority).map_or(now, |at| now.max(*at));
        if at - now > WORTH_WAITING {
            return Err(at - now);
        }
        if next.len() >= REMEMBERED {
            next.retain(|_, at| *at > now);
        }
        next.insert(authority.to_owned(), at + delay);
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_of_a_host_come_one_by_one_and_who_would_wait_for_long_comes_back() {
        let (guests, now) = (Guests::default(), Boottime::now());
        let delay = Duration::from_secs(2);
        for n in 0..3 {
            assert_eq!(guests.turn("http://h", delay, now), Ok(now + delay * n));
        }
        assert_eq!(guests.turn("http://other", delay, now), Ok(now));
        for _ in 0..2 {
            assert_eq!(guests.turn("http://h", delay, now), Err(delay * 3));
        }
        let later = now + delay * 3;
        assert_eq!(guests.turn("http://h", delay, later), Ok(later));
    }
}
