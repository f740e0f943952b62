//! What this run of this process came to, for people who watch it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{canon::HostKey, frontier::Report};

/// Hosts whose times are kept one by one; a broader crawl keeps the first of them.
const HOSTS: usize = 10_000;

/// Claims whose time is kept for the percentiles of the last minute.
const CLAIMS: usize = 2_000;

/// Counts of one run. Reading them costs the crawl nothing.
#[derive(Debug, Default)]
pub struct Tally {
    pub(super) done: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) excluded: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) in_flight: AtomicUsize,
    hosts: Mutex<HashMap<HostKey, HostTally>>,
    minute: Mutex<VecDeque<(Instant, u32)>>,
    claims: Mutex<VecDeque<(Instant, Duration)>>,
}

/// One host in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostTally {
    /// Fetches that had an answer.
    pub answers: u64,
    /// Fetches that had none.
    pub failures: u64,
    /// Time that the answers took, together.
    pub time: Duration,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Visits that recorded an answer.
    pub done: u64,
    /// Tasks that were given up.
    pub failed: u64,
    /// Visits that will be tried again.
    pub retried: u64,
    /// Tasks that robots.txt or another rule excluded when they were claimed.
    pub excluded: u64,
    /// Visits whose lease was lost.
    pub refused: u64,
    /// Payload bytes received.
    pub bytes: u64,
    /// Visits under way.
    pub in_flight: usize,
}

impl Tally {
    /// The counts now.
    pub fn counts(&self) -> Counts {
        Counts {
            done: self.done.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            retried: self.retried.load(Ordering::Relaxed),
            excluded: self.excluded.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed),
        }
    }

    /// Visits that ended in the last minute.
    pub fn last_minute(&self) -> u32 {
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        trim(&mut minute);
        minute.iter().map(|(_, visits)| visits).sum()
    }

    /// Hosts by some measure, the greatest first.
    pub fn top_hosts(
        &self,
        n: usize,
        measure: impl Fn(&HostTally) -> Option<f64>,
    ) -> Vec<(HostKey, HostTally)> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ranked: Vec<(f64, HostKey, HostTally)> = hosts
            .iter()
            .filter_map(|(key, tally)| Some((measure(tally)?, key.clone(), *tally)))
            .collect();
        ranked.sort_by(|a, b| {
            b.0.total_cmp(&a.0)
                .then_with(|| a.1.as_str().cmp(b.1.as_str()))
        });
        ranked
            .into_iter()
            .take(n)
            .map(|(_, key, tally)| (key, tally))
            .collect()
    }

    pub(super) fn committed(&self, visits: u32) {
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        // A second's visits are one entry, so that the queue has sixty.
        match minute.back_mut() {
            Some((at, n)) if at.elapsed() < Duration::from_secs(1) => *n += visits,
            _ => minute.push_back((Instant::now(), visits)),
        }
        trim(&mut minute);
    }

    pub(super) fn claimed(&self, took: Duration) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.push_back((Instant::now(), took));
        if claims.len() > CLAIMS {
            claims.pop_front();
        }
        trim(&mut claims);
    }

    pub(super) fn fetched(&self, host: &HostKey, answered: bool, took: Duration) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= HOSTS && !hosts.contains_key(host) {
            return;
        }
        let tally = hosts.entry(host.clone()).or_default();
        if answered {
            tally.answers += 1;
            tally.time += took;
        } else {
            tally.failures += 1;
        }
    }

    pub(super) fn report(&self) -> Report {
        let mut times: Vec<Duration> = {
            let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            trim(&mut claims);
            claims.iter().map(|(_, took)| *took).collect()
        };
        times.sort_unstable();
        let at = |part: f32| {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a rank among 2,000"
            )]
            let rank = ((times.len() as f32 - 1.0) * part).round() as usize;
            times.get(rank).map(|took| took.as_secs_f32() * 1e3)
        };
        Report {
            in_flight: i32::try_from(self.counts().in_flight).unwrap_or(i32::MAX),
            visits_last_minute: i32::try_from(self.last_minute()).unwrap_or(i32::MAX),
            claim_p50_ms: at(0.5),
            claim_p99_ms: at(0.99),
        }
    }
}

fn trim<T>(queue: &mut VecDeque<(Instant, T)>) {
    while queue
        .front()
        .is_some_and(|(at, _)| at.elapsed() > Duration::from_secs(60))
    {
        queue.pop_front();
    }
}
