//! The only place that decides about retries.

use std::time::Duration;

/// Waits and limits of retries. Defaults after `config/default.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct RetrySettings {
    /// Waits after the first, second … failure of a page; their number is the number of retries. Default 30 s, 2 min, 10 min.
    pub waits: Vec<Duration>,
    /// The same for names that do not resolve and networks without a route. Default 1 min, 5 min.
    pub dns_waits: Vec<Duration>,
    /// Each wait is drawn from ± this part of itself, so that what failed together does not come back together. Default 0.5.
    pub jitter: f64,
    /// Answers that ask for patience (429, 503 with Retry-After) and are not charged, a task. Default 10.
    pub max_deferrals: u16,
    /// Longest wait that a Retry-After may ask for. Default 1 h.
    pub max_retry_after: Duration,
    /// Wait for a 429 that names none. Default 2 min.
    pub too_many_wait: Duration,
    /// Host-level failures in a row that open the host's breaker. Default 5.
    pub breaker_failures: u16,
    /// Pauses of the breaker, one after the other; a failure after the last gives the host up. Default 2 min, 10 min, 30 min.
    pub breaker_pauses: Vec<Duration>,
    /// Wait of a host whose robots.txt cannot be had. Default 5 min.
    pub robots_wait: Duration,
    /// Such waits in a row, after which the host is given up. Default 3.
    pub robots_tries: u16,
}

impl Default for RetrySettings {
    fn default() -> RetrySettings {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        RetrySettings {
            waits: vec![Duration::from_secs(30), minutes(2), minutes(10)],
            dns_waits: vec![minutes(1), minutes(5)],
            jitter: 0.5,
            max_deferrals: 10,
            max_retry_after: minutes(60),
            too_many_wait: minutes(2),
            breaker_failures: 5,
            breaker_pauses: vec![minutes(2), minutes(10), minutes(30)],
            robots_wait: minutes(5),
            robots_tries: 3,
        }
    }
}

/// What kept a visit from a usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Something that may pass: a timeout, a reset, a 5xx.
    Passing,
    /// The name does not resolve, or there is no route: few tries.
    Unreachable,
    /// The server asked for patience; with the wait it named.
    Patience(Option<Duration>),
    /// The proxy's failure, which is not the page's: tried again, not charged.
    Proxy,
    /// It will be the same the next time: TLS, malformed, private address.
    Lasting,
}

/// What becomes of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is tried again after this wait.
    Again {
        /// From now.
        wait: Duration,
        /// Whether the attempt counts. If not, it counts as a deferral.
        charged: bool,
    },
    /// It is given up.
    GiveUp,
}

/// Statuses that are worth another try (those of Scrapy): the answer says nothing of the page.
pub fn is_retried(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504 | 522 | 524)
}

/// What kind of trouble a retried status is. 429 and a 503 that names a time ask for patience; a plain 503 does not.
pub fn trouble_of(status: u16, retry_after: Option<Duration>) -> Trouble {
    match (status, retry_after) {
        (429, wait) => Trouble::Patience(wait),
        (503, Some(wait)) => Trouble::Patience(Some(wait)),
        _ => Trouble::Passing,
    }
}

/// Decides about one task: `attempt` counts from 1 and includes this one, `deferrals` does not include it, `chance` is drawn from 0..1.
pub fn next(
    settings: &RetrySettings,
    trouble: Trouble,
    attempt: u16,
    deferrals: u16,
    chance: f64,
) -> Verdict {
    let jittered =
        |wait: Duration| wait.mul_f64((1.0 + settings.jitter * (2.0 * chance - 1.0)).max(0.0));
    let nth = |waits: &[Duration]| match waits.get(usize::from(attempt.max(1)) - 1) {
        Some(wait) => Verdict::Again {
            wait: jittered(*wait),
            charged: true,
        },
        None => Verdict::GiveUp,
    };
    match trouble {
        Trouble::Passing => nth(&settings.waits),
        Trouble::Unreachable => nth(&settings.dns_waits),
        Trouble::Patience(wait) if deferrals < settings.max_deferrals => Verdict::Again {
            wait: wait
                .unwrap_or(settings.too_many_wait)
                .min(settings.max_retry_after),
            charged: false,
        },
        Trouble::Patience(_) => nth(&settings.waits),
        // The operator's own proxy is down: that says nothing of the page, however long it lasts.
        Trouble::Proxy => Verdict::Again {
            wait: jittered(settings.waits.first().copied().unwrap_or_default()),
            charged: false,
        },
        Trouble::Lasting => Verdict::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(trouble: Trouble) -> Vec<u64> {
        let settings = RetrySettings::default();
        (1..=10)
            .map_while(|attempt| match next(&settings, trouble, attempt, 0, 0.5) {
                Verdict::Again {
                    wait,
                    charged: true,
                } => Some(wait.as_secs()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_passing_trouble_is_tried_three_times_more() {
        assert_eq!(waits(Trouble::Passing), [30, 120, 600]);
    }

    #[test]
    fn a_name_that_does_not_resolve_is_tried_twice_more() {
        assert_eq!(waits(Trouble::Unreachable), [60, 300]);
    }

    #[test]
    fn a_lasting_trouble_is_never_tried_again() {
        assert_eq!(
            next(&RetrySettings::default(), Trouble::Lasting, 1, 0, 0.5),
            Verdict::GiveUp
        );
    }

    #[test]
    fn jitter_spreads_a_wait_by_half_of_itself_either_way() {
        let settings = RetrySettings::default();
        let wait = |chance| match next(&settings, Trouble::Passing, 1, 0, chance) {
            Verdict::Again { wait, .. } => wait.as_secs_f64(),
            Verdict::GiveUp => f64::NAN,
        };
        assert!((wait(0.0) - 15.0).abs() < 1e-6);
        assert!((wait(1.0) - 45.0).abs() < 1e-6);
    }

    #[test]
    fn patience_is_not_charged_ten_times_and_then_it_is() {
        let settings = RetrySettings::default();
        let patience = Trouble::Patience(Some(Duration::from_secs(7)));
        let uncharged = Verdict::Again {
            wait: Duration::from_secs(7),
            charged: false,
        };
        assert_eq!(next(&settings, patience, 1, 9, 0.5), uncharged);
        assert_eq!(
            next(&settings, patience, 1, 10, 0.5),
            Verdict::Again {
                wait: Duration::from_secs(30),
                charged: true
            }
        );
        assert_eq!(next(&settings, patience, 4, 10, 0.5), Verdict::GiveUp);
    }

    #[test]
    fn a_retry_after_of_years_is_capped_at_an_hour() {
        let wait = Trouble::Patience(Some(Duration::from_secs(1_000_000_000)));
        let capped = Verdict::Again {
            wait: Duration::from_secs(3_600),
            charged: false,
        };
        assert_eq!(next(&RetrySettings::default(), wait, 1, 0, 0.5), capped);
    }

    #[test]
    fn a_503_asks_for_patience_only_if_it_names_a_time() {
        assert_eq!(trouble_of(503, None), Trouble::Passing);
        assert_eq!(
            trouble_of(503, Some(Duration::from_secs(1))),
            Trouble::Patience(Some(Duration::from_secs(1)))
        );
        assert_eq!(trouble_of(429, None), Trouble::Patience(None));
    }
}
