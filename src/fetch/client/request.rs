//! One request: what the settings say of it, the proxies that may take it, and its answer.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_RANGE, COOKIE, HeaderMap, HeaderValue};
use tokio::time::Instant;
use url::{Host, Url};

use super::ways::Clients;
use super::{Fetcher, Way};
use crate::exchange::{self, Coding, Truncated, text};
use crate::extract::{self, sitemap::HEAD_BYTES};
use crate::fetch::body::{self, Deadline, Head, Wire};
use crate::fetch::cookies::VisitCookies;
use crate::fetch::decode::{self, Decoded};
use crate::fetch::dns::Failure;
use crate::fetch::error::{self, FetchError};
use crate::fetch::hosts::{HostSettings, Secrecy};
use crate::fetch::proxy::{self, Blame, Pass};
use crate::fetch::settings::{BodyRoom, TypeRules};
use crate::fetch::stream::{self, Sink};
use crate::fetch::watch::{Watch, Whose};

/// An answer to one request, its body decoded.
pub(in crate::fetch) struct Answer {
    pub(in crate::fetch) status: u16,
    pub(super) version: http::Version,
    pub(in crate::fetch) headers: HeaderMap,
    pub(in crate::fetch) body: Bytes,
    /// The body went to a sink.
    pub(super) streamed: bool,
    pub(super) wire_bytes: u64,
    pub(in crate::fetch) truncated: Option<Truncated>,
    pub(super) coding: Coding,
}

/// One request.
pub(in crate::fetch) struct Request<'a> {
    pub(in crate::fetch) url: &'a Url,
    /// Its conditions (RFC 9110 §13.1); empty: none.
    pub(in crate::fetch) condition: HeaderMap,
    /// Whether a body of this media type is worth reading.
    pub(in crate::fetch) wanted: fn(Option<&str>) -> bool,
    /// What the operator says of it, before that.
    pub(in crate::fetch) type_rules: &'a TypeRules,
    /// Bytes of the body that are read at most.
    pub(in crate::fetch) cap: usize,
    /// Where there must be room for a large body.
    pub(in crate::fetch) room: &'a BodyRoom,
    /// Takes a body instead, if it is one for it.
    pub(in crate::fetch) sink: Option<&'a Sink>,
    /// The only address that may be asked, if the host is a name.
    pub(in crate::fetch) address: Option<IpAddr>,
    /// What is to be known of it, from [`Fetcher::terms`].
    pub(in crate::fetch) terms: Terms<'a>,
}

/// Whether a body of this type is read: the operator's rules first, then what the reader can do with it.
fn is_wanted(request: &Request<'_>, media_type: Option<&str>) -> bool {
    let ruled = request.type_rules.of(media_type);
    ruled.unwrap_or_else(|| (request.wanted)(media_type))
}

/// What the settings say of a request: looked up once, before its way is chosen.
pub(in crate::fetch) struct Terms<'a> {
    pub(super) whose: Whose,
    pub(super) entry: Option<&'a HostSettings>,
    /// The entry again, where its headers and login may be sent.
    pub(super) said: Option<&'a HostSettings>,
    pub(super) cookie: Option<HeaderValue>,
    /// Whether others can read it on its way.
    pub(super) secrecy: Secrecy,
    /// The proxies that may take it; none for the direct way.
    pub(super) candidates: Vec<usize>,
}

impl Fetcher {
    /// What is to be known of a request for this URL.
    pub(in crate::fetch) fn terms(
        &self,
        url: &Url,
        cookies: &VisitCookies,
        whose: Whose,
    ) -> Terms<'_> {
        let hosts = &self.inner.settings.hosts;
        let found = hosts.find(url);
        let entry = found.map(|(_, entry)| entry);
        let choice = entry.and_then(|entry| entry.proxy.as_ref());
        let candidates = self.inner.routes.candidates(url, choice);
        let secrecy = Secrecy::of(url, candidates.is_empty());
        let (said, cookie) = match whose {
            Whose::Ours => {
                let said = found.and_then(|found| hosts.said_to(found, secrecy));
                let of_host = said.and_then(HostSettings::cookie);
                (said, cookies.header(url, secrecy, of_host))
            }
            Whose::Strangers => (None, None),
        };
        Terms {
            whose,
            entry,
            said,
            cookie,
            secrecy,
            candidates,
        }
    }

    /// Makes one request and reads its answer. A proxy that fails is nobody else's trouble: the
    /// next one is asked at once, each at most once.
    pub(in crate::fetch) async fn request(
        &self,
        request: &Request<'_>,
        cookies: &mut VisitCookies,
        deadline: &Deadline,
        way: &mut Way,
    ) -> Result<Answer, FetchError> {
        let inner = &*self.inner;
        *way = Way::default();
        let guard = match request.terms.whose {
            Whose::Ours => &inner.guard,
            Whose::Strangers => &inner.strict,
        };
        guard.judge_literal(request.url)?;
        let candidates = &request.terms.candidates;
        if candidates.is_empty() {
            return self.ask(request, cookies, deadline, None, way).await;
        }
        guard.judge_for_proxy(request.url)?;
        self.judge_proxy_s_host(request).await?;
        let host = request.url.host_str().unwrap_or_default();
        let (mut tried, mut last) = (Vec::new(), None);
        loop {
            let pass = match inner.pool.take(candidates, &tried, host) {
                Ok(pass) => pass,
                Err(wait) => return Err(last.unwrap_or(FetchError::NoProxy { wait })),
            };
            tried.push(pass.index);
            let asked = self.ask(request, cookies, deadline, Some(&pass), way).await;
            match self.settle(pass, host, asked).await {
                // Another may have a way there.
                Err(
                    error @ (FetchError::Proxy { .. }
                    | FetchError::Tunnel {
                        blame: Blame::Unclear,
                        ..
                    }),
                ) => last = Some(error),
                settled => return settled,
            }
        }
    }

    /// A proxy's own name is looked up unsifted for the connection to it. A page that links there is
    /// sifted like any other.
    async fn judge_proxy_s_host(&self, request: &Request<'_>) -> Result<(), FetchError> {
        let Some(Host::Domain(host)) = request.url.host() else {
            return Ok(());
        };
        let (inner, terms) = (&*self.inner, &request.terms);
        let mut upstreams = terms
            .candidates
            .iter()
            .map(|&index| &inner.proxied[index].0);
        if !upstreams.any(|upstream| upstream.url.host_str() == Some(host)) {
            return Ok(());
        }
        let port = request.url.port_or_known_default();
        match inner.names.addresses(host, port, terms.whose).await {
            Err(failure @ Failure::Private { .. }) => Err(failure.to_error(None)),
            // Whatever else there is, the proxy will say.
            _ => Ok(()),
        }
    }

    /// Makes one request by one way.
    async fn ask(
        &self,
        request: &Request<'_>,
        cookies: &mut VisitCookies,
        deadline: &Deadline,
        pass: Option<&Pass>,
        way: &mut Way,
    ) -> Result<Answer, FetchError> {
        let inner = &*self.inner;
        let terms = &request.terms;
        let clients = match pass {
            Some(pass) => &inner.proxied[pass.index].1,
            None => &inner.direct,
        };
        let index = pass.map(|pass| pass.index);
        // A connection that was kept was judged for another request.
        let keeps =
            terms.whose == Whose::Ours && inner.places.take(index, request.url, Instant::now());
        let proxy = pass.map(Pass::label);
        way.proxy = proxy.cloned();
        let watch = Watch::of(request.url, request.address, terms.whose);
        let sent = self
            .headers(clients, keeps, proxy, request, &watch, deadline)
            .await;
        if proxy.is_none() {
            let peer = sent.as_ref().ok().and_then(reqwest::Response::remote_addr);
            way.ip = peer.map(|peer| peer.ip()).or_else(|| watch.address());
        }
        let mut response = sent?;
        let (status, version) = (response.status().as_u16(), response.version());
        if let Some(pass) = pass
            && inner.proxied[pass.index].0.answers(request.url)
            && let Some(said) = proxy::of_headers(status, response.headers())
        {
            let said = proxy::believed(said, pass.has_reached());
            return Err(error::of_said(Arc::clone(pass.label()), said));
        }
        if status < 200 {
            // 101: an upgrade that nobody asked for. The others are passed over below us.
            return Err(FetchError::Malformed(
                format!("{status} is no last answer").into(),
            ));
        }
        let headers = std::mem::take(response.headers_mut());
        if terms.whose == Whose::Ours {
            let keep = terms.entry.and_then(|entry| entry.cookies);
            let keep = keep.unwrap_or(inner.settings.keep_cookies);
            cookies.take(request.url, &headers, terms.secrecy, keep);
        }
        let leads_on = exchange::is_redirect(status) && exchange::location(&headers).is_some();
        let media_type = extract::media_type(&headers);
        let media_type = media_type.as_deref();
        let mut head = Head::default();
        if let Some(sink) = request.sink
            && (200..300).contains(&status)
            && status != 206
            && (sink.may_take)(request.url, media_type)
        {
            head = body::head(&mut response, HEAD_BYTES, deadline).await?;
            let begun = decode::head(&headers, &head.bytes, HEAD_BYTES).await;
            if (sink.takes)(&begun) {
                let url = request.url;
                let streamed =
                    stream::hand_on(&mut response, head, url, &headers, sink, deadline).await?;
                return Ok(Answer {
                    status,
                    version,
                    headers,
                    body: Bytes::new(),
                    streamed: true,
                    wire_bytes: streamed.wire_bytes,
                    truncated: streamed.truncated,
                    coding: streamed.coding,
                });
            }
        }
        let wire = if leads_on {
            body::skim(&mut response, request.cap, deadline).await
        } else if is_wanted(request, media_type) {
            let large = body::Large {
                room: request.room,
                headers: &headers,
            };
            body::read(&mut response, head, request.cap, deadline, Some(large)).await?
        } else {
            Wire {
                truncated: Some(Truncated::Unwanted),
                ..Wire::default()
            }
        };
        let wire_bytes = wire.bytes.len() as u64;
        let Decoded {
            body,
            coding,
            truncated,
        } = decode::decode(&headers, wire.bytes, wire.truncated, request.cap).await;
        let truncated = truncated.or(is_part(status, &headers).then_some(Truncated::Partial));
        Ok(Answer {
            status,
            version,
            headers,
            body,
            streamed: false,
            wire_bytes,
            truncated,
            coding,
        })
    }

    /// Sends the request and waits for the headers; once more, at once, where a kept connection
    /// turns out to be dead: that is nobody's failure. No delay is kept before that: nothing was
    /// answered, the host had closed the connection before the request came to it. The second time a
    /// new connection is made: another kept one may be as dead.
    async fn headers(
        &self,
        clients: &Clients,
        keeps: bool,
        proxy: Option<&Arc<str>>,
        request: &Request<'_>,
        watch: &Watch,
        deadline: &Deadline,
    ) -> Result<reqwest::Response, FetchError> {
        let terms = &request.terms;
        let is_lenient = terms.entry.is_some_and(|entry| entry.insecure);
        let mut second = false;
        loop {
            let client = clients.of(is_lenient, keeps && !second);
            let mut asked = client
                .get(request.url.clone())
                .headers(request.condition.clone());
            if let Some(said) = terms.said {
                asked = said.dress(asked);
            }
            if let Some(cookie) = terms.cookie.clone() {
                asked = asked.header(COOKIE, cookie);
            }
            let sent = deadline.headers(watch.along(asked.send())).await?;
            let failure = match sent {
                Ok(response) => return Ok(response),
                Err(error) => error::before_headers(error, request.url, proxy, deadline.connect),
            };
            if second || watch.connected() || !matches!(failure, FetchError::Reset(_)) {
                return Err(failure);
            }
            second = true;
        }
    }
}

/// Whether a 206 holds less than the whole (RFC 9110 §15.3.7): we ask for no range, so any is somebody else's.
fn is_part(status: u16, headers: &HeaderMap) -> bool {
    if status != 206 {
        return false;
    }
    // `bytes 0-99/100`
    let whole = |value: &HeaderValue| {
        let value = text(value).to_ascii_lowercase();
        let (range, length) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let number = |digits: &str| digits.trim().parse::<u64>().ok();
        Some(number(first)? == 0 && number(last)?.checked_add(1)? == number(length)?)
    };
    headers.get(CONTENT_RANGE).and_then(whole) != Some(true)
}
