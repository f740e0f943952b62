//! Gets a host's robots.txt (RFC 9309 §2.3.1): by the same way as its pages, over up to five
//! redirects, of any length up to a cap. What the answer means is `robots`' to say.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;
use url::Url;

use super::body::Deadline;
use super::client::{Answer, Request, Way};
use super::cookies::VisitCookies;
use super::settings::{BodyRoom, FetchOptions, TypeRules};
use super::watch::Whose;
use super::{FetchError, Fetcher, retry_after};
use crate::canon::HostKey;
use crate::clock::Boottime;
use crate::exchange::{self, Truncated};
use crate::robots::{self, MOST_BYTES};

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

impl RobotsFetch {
    /// What came of it, for [`robots::access`].
    pub fn answer(&self) -> robots::Answer {
        match (self.status, &self.error) {
            (_, Some(FetchError::TooManyRedirects { .. })) => robots::Answer::RedirectsWithoutEnd,
            (Some(status), _) => robots::Answer::Status(status),
            (None, _) => robots::Answer::Silence,
        }
    }
}

/// The question for a host's robots.txt, between two requests: whoever asks may want leave for each.
#[derive(Debug)]
pub struct RobotsHops {
    fetcher: Fetcher,
    deadline: Deadline,
    pause: Duration,
    cookies: VisitCookies,
    /// Where the host's own robots.txt is.
    first: Url,
    found: RobotsFetch,
    /// Who was asked before.
    hosts: Vec<url::Origin>,
    /// The next one among them.
    is_back: bool,
}

/// What one request of it came to.
#[derive(Debug)]
pub enum RobotsHop {
    /// The answer, or the lack of one.
    Over(Box<RobotsFetch>),
    /// A redirect: [`RobotsHops::url`] may be asked, after [`RobotsHops::rest`] or another delay of the caller's.
    On(Box<RobotsHops>),
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
        let mut hops = self.robots_hops(host, budget, pause);
        loop {
            match hops.ask(None).await {
                RobotsHop::Over(found) => return *found,
                RobotsHop::On(next) => match next.rest().await {
                    Ok(next) => hops = next,
                    Err(unanswered) => return *unanswered,
                },
            }
        }
    }

    /// The same request by request. The budget begins now.
    pub fn robots_hops(&self, host: &HostKey, budget: Duration, pause: Duration) -> RobotsHops {
        let options = FetchOptions {
            budget,
            pause,
            ..FetchOptions::default()
        };
        let url = host.robots_url();
        RobotsHops {
            deadline: Deadline::start(self.settings(), &options),
            fetcher: self.clone(),
            pause,
            cookies: self.cookies(),
            hosts: vec![url.origin()],
            first: url.clone(),
            is_back: false,
            found: RobotsFetch {
                status: None,
                body: Bytes::new(),
                final_url: url,
                hops: 0,
                error: None,
                retry_after: None,
                ended: Boottime::now(),
            },
        }
    }
}

impl RobotsHops {
    /// What is asked for next.
    pub fn url(&self) -> &Url {
        &self.found.final_url
    }

    /// When the last request ended.
    pub fn ended(&self) -> Boottime {
        self.found.ended
    }

    /// Redirects followed so far, 0 to 5.
    pub fn count(&self) -> u8 {
        self.found.hops
    }

    /// Begins where an earlier question of this host had come to: at a redirect's URL, after so many of them.
    #[must_use]
    pub fn resumed(mut self, url: Url, hops: u8) -> RobotsHops {
        self.hosts.push(url.origin());
        self.found.final_url = url;
        self.found.hops = hops;
        self
    }

    /// Keeps the delay of a host that was asked before.
    ///
    /// # Errors
    /// The lack of an answer, at once, if there is no time for it: `total_timeout`.
    pub async fn rest(self) -> Result<RobotsHops, Box<RobotsFetch>> {
        if self.is_back
            && let Err(error) = self.deadline.pause(self.pause).await
        {
            return Err(Box::new(self.lacking(error)));
        }
        Ok(self)
    }

    /// The answer that [`RobotsHops::url`] gave to another question lately, at the URL that gave it; not asked for again.
    pub fn answered(
        self,
        status: u16,
        body: Bytes,
        final_url: Url,
        retry_after: Option<Duration>,
    ) -> RobotsFetch {
        RobotsFetch {
            status: Some(status),
            body,
            final_url,
            retry_after,
            ..self.found
        }
    }

    /// Makes one request; if an address is given, at that one alone.
    pub async fn ask(mut self, address: Option<IpAddr>) -> RobotsHop {
        let whose = self.whose(self.url());
        let request = Request {
            url: &self.found.final_url,
            condition: HeaderMap::new(),
            wanted: |_| true,
            type_rules: &TypeRules::default(),
            sink: None,
            cap: MOST_BYTES,
            room: &BodyRoom::default(),
            address,
            terms: self
                .fetcher
                .terms(&self.found.final_url, &self.cookies, whose),
        };
        let asked = self
            .fetcher
            .request(
                &request,
                &mut self.cookies,
                &self.deadline,
                &mut Way::default(),
            )
            .await;
        self.found.ended = Boottime::now();
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) => return self.unanswered(error),
        };
        self.found.status = Some(answer.status);
        self.found.retry_after = retry_after(&answer.headers, SystemTime::now());
        let target = exchange::is_redirect(answer.status)
            .then(|| exchange::location(&answer.headers))
            .flatten()
            .and_then(|location| self.url().join(&location).ok())
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .map(without_credentials);
        match target {
            None => match cut(&answer, &self.deadline) {
                Some(error) => self.unanswered(error),
                None => {
                    self.found.body = answer.body;
                    RobotsHop::Over(Box::new(self.found))
                }
            },
            Some(_) if self.found.hops == MOST_HOPS => {
                self.found.error = Some(FetchError::TooManyRedirects { hops: MOST_HOPS });
                RobotsHop::Over(Box::new(self.found))
            }
            Some(url) => {
                let next = url.origin();
                self.is_back = self.hosts.contains(&next);
                if !self.is_back {
                    self.hosts.push(next);
                }
                self.found.hops += 1;
                self.found.final_url = url;
                RobotsHop::On(Box::new(self))
            }
        }
    }

    /// Who chose where this question goes: beyond the host itself, its redirects do.
    fn whose(&self, url: &Url) -> Whose {
        let first = &self.first;
        // From http to https is where most of them lead.
        let at_home = |url: &Url| url.port().is_none();
        let is_same = url.origin() == first.origin()
            || (url.host() == first.host() && at_home(url) && at_home(first));
        match is_same {
            true => Whose::Ours,
            false => Whose::Strangers,
        }
    }

    fn unanswered(self, error: FetchError) -> RobotsHop {
        RobotsHop::Over(Box::new(self.lacking(error)))
    }

    fn lacking(self, error: FetchError) -> RobotsFetch {
        RobotsFetch {
            status: None,
            error: Some(error),
            ..self.found
        }
    }
}

/// Whoever wrote the redirect does not say who we are.
fn without_credentials(mut url: Url) -> Url {
    // Refused only where a URL has no host, and so no credentials.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.set_fragment(None);
    url
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
