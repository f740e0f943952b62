//! Whether a proxy is fit: a pure state, to which the time is passed in.
//!
//! Healthy until it fails; then it rests, longer after each failure in a row; then one request is let
//! through as a probe, and what comes of that decides. A proxy that works but reaches no host is not
//! told apart from hosts that are gone by one request; hosts of several sites in a row without one that it
//! reached are a failure, too.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// So many sites in a row that it did not reach, for a reason that may be its own, are its failure.
const DOUBTS: usize = 5;

/// A probe that nobody has heard of for so long is over.
const PROBE_LASTS: Duration = Duration::from_secs(120);

/// What a request that finds a probe under way is told to wait.
const PROBE_WAIT: Duration = Duration::from_secs(2);

/// How a proxy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyState {
    /// It takes requests.
    Healthy,
    /// It failed, and takes none for a while.
    Resting,
    /// Its rest is over: the next request shows whether it is fit.
    Probing,
}

impl ProxyState {
    /// The word of the column `proxies.state`.
    pub fn as_str(self) -> &'static str {
        match self {
            ProxyState::Healthy => "healthy",
            ProxyState::Resting => "resting",
            ProxyState::Probing => "probing",
        }
    }
}

/// A proxy as it stands, and what it did since the start of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyReport {
    /// Its label.
    pub label: Arc<str>,
    /// How it stands.
    pub state: ProxyState,
    /// Failures in a row.
    pub failures: u32,
    /// How long it still rests.
    pub rests_for: Option<Duration>,
    /// Why it failed the last time; kept when it is fit again.
    pub last_error: Option<Arc<str>>,
    /// Requests that were sent through it.
    pub requests: u64,
    /// Those of them that failed by its own fault.
    pub failed: u64,
    /// Payload bytes that came through it.
    pub bytes: u64,
}

impl ProxyReport {
    /// Adds another one of the same label; the one with more failures in a row tells how they stand.
    pub(super) fn add(&mut self, other: ProxyReport) {
        let (requests, failed, bytes) = (
            self.requests + other.requests,
            self.failed + other.failed,
            self.bytes + other.bytes,
        );
        if other.failures > self.failures {
            *self = other;
        }
        (self.requests, self.failed, self.bytes) = (requests, failed, bytes);
    }
}

/// The number of a request.
pub(super) type Ticket = u64;

#[derive(Debug, Default)]
pub(super) struct Health {
    failures: u32,
    rests_until: Option<Instant>,
    /// Requests that had begun when the rest did: what becomes of them is old news.
    before_rest: Ticket,
    probe: Option<(Ticket, Instant)>,
    last_reached: Option<Instant>,
    /// Whether it reached a host since it started or failed.
    has_reached: bool,
    /// Sites that it did not reach since it last reached one, as hashes.
    doubts: Vec<u64>,
    last_error: Option<Arc<str>>,
    requests: u64,
    failed: u64,
    bytes: u64,
}

impl Health {
    /// How long it takes no request; none if it may be asked now.
    pub(super) fn rests(&self, now: Instant) -> Option<Duration> {
        let until = self.rests_until?;
        if now < until {
            return Some(until - now);
        }
        let probing = self
            .probe
            .is_some_and(|(_, began)| now < began + PROBE_LASTS);
        probing.then_some(PROBE_WAIT)
    }

    /// A request goes through it.
    pub(super) fn begin(&mut self, now: Instant) -> Ticket {
        self.requests += 1;
        if self.rests_until.is_some() {
            self.probe = Some((self.requests, now));
        }
        self.requests
    }

    /// The request ended, and says nothing of the proxy.
    pub(super) fn end(&mut self, ticket: Ticket) {
        self.probe = self.probe.filter(|(probe, _)| *probe != ticket);
    }

    fn is_old_news(&self, ticket: Ticket) -> bool {
        self.rests_until.is_some() && ticket <= self.before_rest
    }

    /// Something came from beyond it. Answers whether that is news: it had failed before. An answer to
    /// a request that began before the failure is none.
    pub(super) fn reached(&mut self, ticket: Ticket, now: Instant, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.is_old_news(ticket) {
            return false;
        }
        self.end(ticket);
        self.failures = 0;
        self.doubts.clear();
        self.last_reached = Some(now);
        self.has_reached = true;
        self.rests_until.take().is_some()
    }

    /// Whether it reached a host since it started, or since it last failed.
    pub(super) fn has_reached(&self) -> bool {
        self.has_reached
    }

    /// When it last reached a host.
    pub(super) fn last_reached(&self) -> Option<Instant> {
        self.last_reached
    }

    /// It failed; answers how long it rests. Requests that failed together with one that began the
    /// rest do not make it longer, nor do those that began before it.
    pub(super) fn failed(
        &mut self,
        ticket: Ticket,
        now: Instant,
        rests: &[Duration],
        reason: &str,
    ) -> Duration {
        self.failed += 1;
        self.last_error = Some(reason.into());
        let is_old_news = self.is_old_news(ticket);
        self.end(ticket);
        if let Some(until) = self.rests_until.filter(|until| is_old_news || now < *until) {
            return until.saturating_duration_since(now);
        }
        self.doubts.clear();
        self.has_reached = false;
        self.before_rest = self.requests;
        let nth = (self.failures as usize).min(rests.len().saturating_sub(1));
        let rest = rests.get(nth).copied().unwrap_or_default();
        self.failures += 1;
        self.rests_until = Some(now + rest);
        rest
    }

    /// It did not reach a host of this site, for a reason that may be its own. Answers whether that is
    /// one too many, so that it has failed. Whoever has a site has any number of hosts, so they count as one.
    pub(super) fn doubted(&mut self, ticket: Ticket, site: u64) -> bool {
        self.end(ticket);
        if !self.doubts.contains(&site) {
            self.doubts.push(site);
        }
        self.doubts.len() >= DOUBTS
    }

    pub(super) fn report(&self, label: &Arc<str>, now: Instant) -> ProxyReport {
        let rests_for = self
            .rests_until
            .and_then(|until| until.checked_duration_since(now));
        ProxyReport {
            label: Arc::clone(label),
            state: match (self.rests_until, rests_for) {
                (None, _) => ProxyState::Healthy,
                (_, Some(rest)) if !rest.is_zero() => ProxyState::Resting,
                _ => ProxyState::Probing,
            },
            failures: self.failures,
            rests_for: rests_for.filter(|rest| !rest.is_zero()),
            last_error: self.last_error.clone(),
            requests: self.requests,
            failed: self.failed,
            bytes: self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESTS: [Duration; 3] = [
        Duration::from_secs(10),
        Duration::from_secs(30),
        Duration::from_secs(120),
    ];

    #[test]
    fn rests_grow_with_failures_in_a_row_and_begin_anew_after_a_success() {
        let mut health = Health::default();
        let mut now = Instant::now();
        for (failures, rest) in [(1, 10), (2, 30), (3, 120), (4, 120)] {
            assert_eq!(health.rests(now), None);
            let ticket = health.begin(now);
            let rest = Duration::from_secs(rest);
            assert_eq!(health.failed(ticket, now, &RESTS, "refused"), rest);
            assert_eq!(health.rests(now), Some(rest));
            assert_eq!(health.report(&"a".into(), now).failures, failures);
            now += rest;
        }
        let ticket = health.begin(now);
        assert!(health.reached(ticket, now, 7));
        assert!(!health.reached(ticket, now, 0), "no news");
        assert_eq!(health.failed(ticket, now, &RESTS, "refused"), RESTS[0]);
        let report = health.report(&"a".into(), now);
        assert_eq!((report.requests, report.failed, report.bytes), (5, 5, 7));
    }

    #[test]
    fn requests_that_fail_together_are_one_failure() {
        let (mut health, now) = (Health::default(), Instant::now());
        for _ in 0..9 {
            health.begin(now);
        }
        for ticket in 1..=9 {
            health.failed(ticket, now, &RESTS, "refused");
        }
        let report = health.report(&"a".into(), now);
        assert_eq!((report.failures, report.failed), (1, 9));
        assert_eq!(report.rests_for, Some(RESTS[0]));
    }

    #[test]
    fn after_a_rest_one_request_goes_through_as_a_probe() {
        let (mut health, now) = (Health::default(), Instant::now());
        let failed = health.begin(now);
        health.failed(failed, now, &RESTS, "refused");
        let back = now + RESTS[0];
        assert_eq!(health.report(&"a".into(), back).state, ProxyState::Probing);
        assert_eq!(health.rests(back), None);
        let probe = health.begin(back);
        assert_eq!(health.rests(back), Some(PROBE_WAIT));
        // The probe was cut off: another may go.
        health.end(probe);
        assert_eq!(health.rests(back), None);
        let probe = health.begin(back);
        // It was lost without a word.
        assert_eq!(health.rests(back + PROBE_LASTS), None);
        assert!(health.reached(probe, back, 0));
        assert_eq!(health.report(&"a".into(), back).state, ProxyState::Healthy);
    }

    #[test]
    fn a_proxy_that_reaches_no_host_has_failed_and_one_dead_host_is_not_its_fault() {
        let mut health = Health::default();
        let now = Instant::now();
        assert!((0..100).all(|_| !health.doubted(0, 1)));
        assert!((2..=4).all(|site| !health.doubted(0, site)));
        health.reached(0, now, 0);
        assert!((1..=4).all(|site| !health.doubted(0, site)));
        assert!(health.doubted(0, 5));
    }

    #[test]
    fn what_began_before_a_failure_neither_ends_the_rest_nor_the_probe_nor_makes_another() {
        let (mut health, now) = (Health::default(), Instant::now());
        let [first, second, third, failed] = [(); 4].map(|()| health.begin(now));
        assert!(!health.reached(first, now, 0) && health.has_reached());
        health.failed(failed, now, &RESTS, "refused");
        assert!(!health.has_reached());
        assert!(!health.reached(second, now, 0));
        assert_eq!(health.rests(now), Some(RESTS[0]));
        let back = now + RESTS[0];
        let probe = health.begin(back);
        health.end(second);
        health.failed(third, back, &RESTS, "refused");
        assert_eq!(health.rests(back), Some(PROBE_WAIT));
        assert_eq!(health.report(&"a".into(), back).failures, 1);
        assert!(health.reached(probe, back, 0));
        assert_eq!(health.rests(back), None);
    }
}
