//! Whose connections are kept after an answer.
//!
//! A client's pool has a bound for each host and none for all of them: a crawl of ten thousand
//! hosts would hold as many sockets. So a host has a place here while it was asked lately, there are
//! only so many places, and who has none is asked by a client that keeps nothing.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

/// How long an idle connection is kept: a polite host is asked again after its delay, which
/// robots.txt may put to a minute and more. Most servers close theirs after 5 to 75 seconds; whether
/// one did is seen when it is used (`reuse`).
pub(super) const IDLE_FOR: Duration = Duration::from_secs(75);

/// Places for hosts that were asked lately.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    keys: RandomState,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// When each was asked last.
    places: HashMap<u64, Instant>,
    /// Before this moment no place is free again: until then nobody looks.
    full_until: Option<Instant>,
}

impl Places {
    /// So many, at least one.
    pub(super) fn new(most: usize) -> Places {
        Places {
            most: most.max(1),
            keys: RandomState::new(),
            taken: Mutex::default(),
        }
    }

    /// Whether the connection of a request that starts now may be kept. `way` is the index of its proxy, since each has connections of
    /// its own. Two hosts that share a place by their hash cost one socket more than was meant.
    pub(super) fn take(&self, way: Option<usize>, url: &Url, now: Instant) -> bool {
        let key = (way, url.scheme(), url.host_str(), url.port());
        let key = self.keys.hash_one(key);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Taken { places, full_until } = &mut *taken;
        if places.len() >= self.most && !places.contains_key(&key) {
            if full_until.is_some_and(|until| now < until) {
                return false;
            }
            places.retain(|_, last| now.duration_since(*last) < IDLE_FOR);
            if places.len() >= self.most {
                // Each of them can only be asked again, and later.
                *full_until = places.values().min().map(|oldest| *oldest + IDLE_FOR);
                return false;
            }
        }
        places.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_place_while_it_was_asked_lately_and_others_wait_for_one() {
        let (places, now) = (Places::new(2), Instant::now());
        let take = |host: &str, after| {
            let url = Url::parse(&format!("http://{host}/p")).unwrap();
            places.take(None, &url, now + Duration::from_secs(after))
        };
        assert!(take("a", 0) && take("b", 0));
        assert!(!take("c", 60) && !take("a:81", 60));
        assert!(take("a", 60));
        assert!(take("c", 80), "b was not asked for 75 seconds");
        assert!(take("a", 80) && !take("b", 80));
    }

    #[test]
    fn a_host_takes_a_place_for_each_proxy_through_which_it_is_asked() {
        let (places, now) = (Places::new(2), Instant::now());
        let url = Url::parse("http://a/").unwrap();
        let take = |way| places.take(way, &url, now);
        assert!(take(Some(0)) && take(Some(1)) && take(Some(0)));
        assert!(!take(Some(2)) && !take(None));
    }
}
