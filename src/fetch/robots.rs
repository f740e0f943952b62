//! Gets a host's robots.txt (RFC 9309 §2.3.1): by the same way as its pages, over up to five
//! redirects, of any length up to a cap. What the answer means is `robots`' to say.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;
use url::Url;

use super::body::Deadline;
use super::client::{Answer, Request, Way};
use super::settings::FetchOptions;
use super::{FetchError, Fetcher, retry_after};
use crate::canon::HostKey;
use crate::clock::Boottime;
use crate::exchange::{self, Truncated};

/// What is read of a robots.txt: RFC 9309 §2.5 asks for at least 500 KiB.
const MOST_BYTES: usize = 512 * 1024;

/// RFC 9309 §2.3.1.2: at least five redirects are to be followed.
const MOST_HOPS: u8 = 5;

/// The answer to the question for a robots.txt.
#[derive(Debug)]
pub struct RobotsFetch {
    /// The status of the last answer; none without one, or if rules came that are not whole. 3xx if the redirects had no end or led
    /// nowhere.
    pub status: Option<u16>,
    /// The body after content coding, whole or its first 512 KiB; empty without an answer.
    pub body: Bytes,
    /// The URL that gave this answer.
    pub final_url: Url,
    /// Redirects followed, 0 to 5.
    pub hops: u8,
    /// Why there is no answer, or no more redirects were followed.
    pub error: Option<FetchError>,
    /// How long the last answer asks us to stay away, at most an hour.
    pub retry_after: Option<Duration>,
    /// When it ended: the delay of a polite host counts from here.
    pub ended: Boottime,
}

impl Fetcher {
    /// Fetches a host's robots.txt within `budget`; every outcome is a value.
    ///
    /// `pause` is the host's delay, kept before each redirect to a host that this fetch has asked
    /// before. One that it leaves no time for is no answer: `total_timeout`.
    pub async fn fetch_robots(
        &self,
        host: &HostKey,
        budget: Duration,
        pause: Duration,
    ) -> RobotsFetch {
        let options = FetchOptions {
            budget,
            pause,
            ..FetchOptions::default()
        };
        self.fetch_robots_with(host, &options).await
    }

    /// The same with all that may be asked; a body of any type is wanted.
    pub async fn fetch_robots_with(&self, host: &HostKey, options: &FetchOptions) -> RobotsFetch {
        let deadline = Deadline::start(self.settings(), options);
        let mut cookies = self.cookies();
        let mut found = RobotsFetch {
            status: None,
            body: Bytes::new(),
            final_url: host.robots_url(),
            hops: 0,
            error: None,
            retry_after: None,
            ended: Boottime::now(),
        };
        let mut hosts = vec![found.final_url.origin()];
        loop {
            let request = Request {
                url: &found.final_url,
                condition: HeaderMap::new(),
                wanted: |_| true,
                cap: MOST_BYTES,
                // Other hosts are elsewhere.
                address: options.address.filter(|_| hosts.len() == 1),
            };
            let asked = self
                .request(&request, &mut cookies, &deadline, &mut Way::default())
                .await;
            found.ended = Boottime::now();
            let answer = match asked {
                Ok(answer) => answer,
                Err(error) => return without(found, error),
            };
            found.status = Some(answer.status);
            found.retry_after = retry_after(&answer.headers, SystemTime::now());
            let target = exchange::is_redirect(answer.status)
                .then(|| exchange::location(&answer.headers))
                .flatten()
                .and_then(|location| found.final_url.join(&location).ok())
                .filter(|url| matches!(url.scheme(), "http" | "https"));
            match target {
                None => {
                    if let Some(error) = cut(&answer, &deadline) {
                        return without(found, error);
                    }
                    return RobotsFetch {
                        body: answer.body,
                        ..found
                    };
                }
                Some(_) if found.hops == MOST_HOPS => {
                    let error = FetchError::TooManyRedirects { hops: MOST_HOPS };
                    return RobotsFetch {
                        error: Some(error),
                        ..found
                    };
                }
                Some(url) => {
                    let next = url.origin();
                    if !hosts.contains(&next) {
                        hosts.push(next);
                    } else if let Err(error) = deadline.pause(options.pause).await {
                        return without(found, error);
                    }
                    if let Err(error) = deadline.leave(&options.hop_leave).await {
                        return without(found, error);
                    }
                    found.hops += 1;
                    found.final_url = url;
                }
            }
        }
    }
}

/// There is no answer, for this reason.
fn without(found: RobotsFetch, error: FetchError) -> RobotsFetch {
    RobotsFetch {
        status: None,
        error: Some(error),
        ..found
    }
}

/// Why the rules of an answer are not whole: what is missing may forbid what the rest allows.
///
/// Our own cap is no cut (RFC 9309 §2.5 lets a parser have a limit), and the body of an answer
/// without rules says nothing.
fn cut(answer: &Answer, deadline: &Deadline) -> Option<FetchError> {
    let has_rules = (200..=299).contains(&answer.status);
    match answer.truncated.filter(|_| has_rules)? {
        Truncated::Length => None,
        Truncated::Time => Some(deadline.body_cut()),
        Truncated::Disconnect | Truncated::Unwanted => Some(FetchError::Incomplete(
            "its compressed stream ends early".into(),
        )),
        Truncated::Partial => Some(FetchError::Incomplete("a part of it came (206)".into())),
    }
}
