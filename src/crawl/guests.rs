//! Visits of a redirected robots.txt to a host that nobody holds for it.
//!
//! The hold of such a host may be another process's for minutes, so it is not waited for: one request a day is little. But a provider may send
//! the crawlers of ten thousand hosts to one file of his. So what a process was answered lately is not asked for again, and its guests of one
//! host come one by one, a delay after the answer to the one before; who would wait for long is sent away for as long as those before him take.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use quick_cache::{Weighter, sync::Cache};
use rand::RngExt as _;
use tokio::{sync::OwnedMutexGuard, time::Instant};
use url::Url;

use crate::{canon::HostKey, clock::Boottime, fetch::RobotsFetch};

/// Longest wait for a turn, within the time of one fetch.
const WORTH_WAITING: Duration = Duration::from_secs(5);

/// Longest rest of a host that is sent away, where the host that it leads to is free by then.
const LONGEST: Duration = Duration::from_secs(3600);

/// How long a host's place in a redirect is remembered after it could go on.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Hosts that are remembered; those that nobody waits for, and whose last guest came long enough ago, are forgotten above that.
const REMEMBERED: usize = 10_000;

/// Answers that are kept: this many, and this many bytes of them.
const ANSWERS: usize = 2_000;
const ANSWER_BYTES: u64 = 16 << 20;

/// The lines in front of hosts, by authority, and what was answered lately, by URL.
#[derive(Debug)]
pub(super) struct Guests {
    lines: Mutex<HashMap<String, Arc<Line>>>,
    answers: Cache<Url, Arc<Answer>, ByBytes>,
    pending: Cache<HostKey, Pending>,
}

/// Where the question for a host's robots.txt had come to when it had to wait.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) url: Url,
    pub(super) hops: u8,
    until: Boottime,
}

/// Who waits for a host.
#[derive(Debug, Default)]
struct Line {
    /// When the next guest may come; locked by him until he has his answer.
    free: Arc<tokio::sync::Mutex<Option<Boottime>>>,
    /// Guests that were sent away since one had his turn, about.
    sent_away: AtomicU32,
}

/// What a request for a robots.txt was answered lately.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
    /// Where it came from in the end.
    pub(super) url: Url,
    pub(super) retry_after: Option<Duration>,
    pub(super) ended: Boottime,
    until: Boottime,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<Url, Arc<Answer>> for ByBytes {
    fn weight(&self, url: &Url, answer: &Arc<Answer>) -> u64 {
        (answer.body.len() + url.as_str().len() + answer.url.as_str().len() + 500) as u64
    }
}

/// What becomes of a guest.
#[derive(Debug)]
pub(super) enum Welcome {
    /// He may ask.
    Turn(Turn),
    /// He need not: this was the answer to another.
    Known(Arc<Answer>),
    /// He should come back after this long.
    Later(Duration),
}

/// Leave to ask a host as its guest, until dropped.
#[derive(Debug)]
pub(super) struct Turn {
    free: OwnedMutexGuard<Option<Boottime>>,
    authority: String,
    delay: Duration,
    ended: Option<Boottime>,
}

impl Default for Guests {
    fn default() -> Guests {
        Guests {
            lines: Mutex::default(),
            answers: Cache::with_weighter(ANSWERS, ANSWER_BYTES, ByBytes),
            pending: Cache::new(REMEMBERED),
        }
    }
}

impl Guests {
    /// Takes the next turn to ask for a URL, `delay` after the end of the one before at its host.
    pub(super) async fn come(&self, url: &Url, delay: Duration) -> Welcome {
        let authority = url.origin().ascii_serialization();
        let line = self.line(&authority);
        let over = Instant::now() + WORTH_WAITING;
        if let Some(answer) = self.known(url) {
            return Welcome::Known(answer);
        }
        let free = Arc::clone(&line.free);
        let Ok(free) = tokio::time::timeout_at(over, free.lock_owned()).await else {
            return Welcome::Later(line.rest(delay, WORTH_WAITING));
        };
        // The one before may have been told.
        if let Some(answer) = self.known(url) {
            return Welcome::Known(answer);
        }
        let wait = free.map_or(Duration::ZERO, |at| at - Boottime::now());
        if wait > over.saturating_duration_since(Instant::now()) {
            return Welcome::Later(line.rest(delay, wait));
        }
        tokio::time::sleep(wait).await;
        line.sent_away.store(0, Ordering::Relaxed);
        Welcome::Turn(Turn {
            free,
            authority,
            delay,
            ended: None,
        })
    }

    /// What a URL was answered, if that is not long ago.
    pub(super) fn known(&self, url: &Url) -> Option<Arc<Answer>> {
        let answer = self.answers.get(url)?;
        (answer.until > Boottime::now()).then_some(answer)
    }

    /// Keeps an answer for a while, under all URLs that led to it. No answer, and one that was not waited for, is not kept.
    pub(super) fn keep(&self, asked: &[Url], fetched: &RobotsFetch, span: Duration) {
        let (Some(status), None) = (fetched.status, &fetched.error) else {
            return;
        };
        let answer = Arc::new(Answer {
            status,
            body: fetched.body.clone(),
            url: fetched.final_url.clone(),
            retry_after: fetched.retry_after,
            ended: fetched.ended,
            until: fetched.ended + span,
        });
        for url in asked {
            self.answers.insert(url.clone(), Arc::clone(&answer));
        }
    }

    /// Remembers where the question of a host has come to, which goes on after this long: what redirected it is not asked again.
    pub(super) fn wait(&self, host: HostKey, url: Url, hops: u8, wait: Duration) {
        let until = Boottime::now() + wait.saturating_add(PATIENCE);
        self.pending.insert(host, Pending { url, hops, until });
    }

    /// Where it had come to; asked once.
    pub(super) fn pending(&self, host: &HostKey) -> Option<Pending> {
        let (_, pending) = self.pending.remove(host)?;
        (pending.until > Boottime::now()).then_some(pending)
    }

    fn line(&self, authority: &str) -> Arc<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= REMEMBERED {
            let now = Boottime::now();
            lines.retain(|_, line| {
                let is_free = |free: &Option<Boottime>| free.is_none_or(|at| at <= now);
                Arc::strong_count(line) > 1 || !line.free.try_lock().is_ok_and(|at| is_free(&at))
            });
        }
        Arc::clone(lines.entry(authority.to_owned()).or_default())
    }
}

impl Line {
    /// How long a host that is sent away rests: until the host is free, and as long as those before it take, one delay each.
    fn rest(&self, delay: Duration, until_free: Duration) -> Duration {
        let before = self.sent_away.fetch_add(1, Ordering::Relaxed);
        let turn = delay.saturating_mul(before).saturating_add(until_free);
        let turn = turn.min(LONGEST.max(until_free));
        turn.mul_f64(rand::rng().random_range(1.0..1.5))
    }
}

impl Turn {
    /// Goes on to another URL after an answer that ended then, if it is of the same host, and that may be asked soon.
    pub(super) async fn go_on(mut self, url: &Url, ended: Boottime) -> Option<Turn> {
        self.ended = Some(ended);
        let wait = ended + self.delay - Boottime::now();
        if url.origin().ascii_serialization() != self.authority || wait > WORTH_WAITING {
            return None;
        }
        tokio::time::sleep(wait).await;
        self.ended = None;
        Some(self)
    }

    /// The answer ended then.
    pub(super) fn over(mut self, ended: Boottime) {
        self.ended = Some(ended);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.free = Some(self.ended.unwrap_or_else(Boottime::now) + self.delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn answer(at: &Url, ended: Boottime) -> RobotsFetch {
        RobotsFetch {
            status: Some(200),
            body: Bytes::from_static(b"x"),
            final_url: at.clone(),
            hops: 1,
            error: None,
            retry_after: None,
            ended,
        }
    }

    async fn turn(guests: &Guests, url: &Url, delay: Duration) -> Turn {
        match guests.come(url, delay).await {
            Welcome::Turn(turn) => turn,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn guests_of_a_host_come_one_by_one_a_delay_after_the_answer_to_the_one_before() {
        let (guests, delay) = (Guests::default(), Duration::from_millis(100));
        let first = turn(&guests, &url("http://h/1"), delay).await;
        let (first_url, other_url) = (url("http://h/2"), url("http://other/"));
        let mut second = std::pin::pin!(turn(&guests, &first_url, delay));
        // It waits for the first one's answer, and another host does not.
        tokio::select! {
            biased;
            _ = &mut second => panic!("two at once"),
            turn = turn(&guests, &other_url, delay) => turn.over(Boottime::now()),
        }
        let ended = Boottime::now();
        first.over(ended);
        let second = second.await;
        assert!(Boottime::now() - ended >= delay);
        let ended = Boottime::now();
        let second = second.go_on(&url("http://h/3"), ended).await.unwrap();
        assert!(Boottime::now() - ended >= delay);
        assert!(second.go_on(&other_url, Boottime::now()).await.is_none());
    }

    #[tokio::test]
    async fn who_would_wait_for_long_is_sent_away_behind_those_before_him() {
        let (guests, delay) = (Guests::default(), Duration::from_secs(100));
        let place = url("http://h/");
        turn(&guests, &place, delay).await.over(Boottime::now());
        for before in 0..20 {
            let Welcome::Later(wait) = guests.come(&place, delay).await else {
                panic!("a turn before the delay is over");
            };
            let turn = Duration::from_secs(99) + delay * before;
            assert!(wait >= turn && wait <= (turn + delay) * 3 / 2, "{wait:?}");
        }
        let line = guests.line("http://h");
        line.sent_away.store(1_000_000, Ordering::Relaxed);
        assert!(line.rest(delay, delay) <= LONGEST * 3 / 2);
    }

    #[tokio::test]
    async fn what_one_was_told_is_told_to_those_who_wait_and_who_come_soon_after() {
        let (guests, delay) = (Arc::new(Guests::default()), Duration::from_secs(1_000));
        let (place, end) = (url("http://h/robots.txt"), url("https://h/r"));
        let first = turn(&guests, &place, delay).await;
        let others: Vec<_> = (0..50)
            .map(|_| {
                let (guests, place) = (Arc::clone(&guests), place.clone());
                tokio::spawn(async move { guests.come(&place, delay).await })
            })
            .collect();
        tokio::task::yield_now().await;
        let asked = [place.clone(), end.clone()];
        guests.keep(&asked, &answer(&end, Boottime::now()), delay);
        first.over(Boottime::now());
        for other in others {
            assert!(matches!(other.await.unwrap(), Welcome::Known(answer) if answer.url == end));
        }
        assert!(guests.known(&end).is_some());
        let old = Boottime::now().saturating_sub(delay);
        guests.keep(&asked, &answer(&end, old), delay);
        assert!(guests.known(&place).is_none());
        let host = HostKey::parse("http://a").unwrap();
        guests.wait(host.clone(), place.clone(), 2, delay);
        let pending = guests.pending(&host).unwrap();
        assert_eq!((pending.url, pending.hops), (place.clone(), 2));
        assert!(guests.pending(&host).is_none());
        assert!(matches!(
            guests.come(&place, delay).await,
            Welcome::Later(_)
        ));
    }
}
