//! The fetcher: one request, and a visit's few hops around it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_RANGE, COOKIE, FROM, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use rustix::process::{Resource, getrlimit};
use tokio::time::Instant;
use url::{Host, Url};

use super::address::{self, PrivateGuard};
use super::body::{self, Deadline, Wire};
use super::cookies::{self, Cookies, KeepCookies, VisitCookies};
use super::decode::{self, Decoded};
use super::dns::{Failure, Guarded, Lookup};
use super::error::{self, FetchError, Stage};
use super::guise::Guise;
use super::hosts::{HostSettings, Secrecy};
use super::idle::{IDLE_FOR, Places};
use super::proxy::{self, Blame, Pass, Pool, ProxyReport, Routes, Upstream};
use super::redirect::{self, MOST_HOPS, Trail};
use super::resolve::Overrides;
use super::settings::{FetchOptions, FetchSettings};
use super::tls;
use super::watch::{MarkConnecting, Watch, Whose};
use crate::canon::PageUrl;
use crate::clock::Boottime;
use crate::exchange::{self, Coding, Exchange, Truncated, text};
use crate::extract;

/// What we can decode, the best first.
const CODINGS: HeaderValue = HeaderValue::from_static("gzip, br, zstd, deflate");

/// Header lines of an answer; hyper's 100 is too few for some content security policies.
const MOST_HEADERS: usize = 400;

/// The same of HTTP/2, in bytes: as Chrome has it. What hyper takes of HTTP/1.1 is 400 KB.
const MOST_HEADER_BYTES: u32 = 256 * 1024;

/// Idle connections kept to one host.
const IDLE_PER_HOST: usize = 4;

/// Fetches resources. Clones share connections, names and settings.
#[derive(Clone)]
pub struct Fetcher {
    inner: Arc<Inner>,
}

struct Inner {
    settings: FetchSettings,
    guard: PrivateGuard,
    /// For URLs that strangers chose.
    strict: PrivateGuard,
    names: Guarded,
    cookies: Cookies,
    direct: Clients,
    places: Places,
    routes: Routes,
    pool: Arc<Pool>,
    /// By the indices of `routes`.
    proxied: Vec<(Upstream, Clients)>,
}

/// The clients of one way.
struct Clients {
    usual: Pair,
    /// For hosts whose certificates go unverified, if there are any.
    lenient: Option<Pair>,
}

/// Two clients that differ in what becomes of their connections.
struct Pair {
    /// Keeps them.
    keeping: reqwest::Client,
    /// Closes them.
    closing: reqwest::Client,
}

impl Clients {
    fn build(
        settings: &FetchSettings,
        names: &Guarded,
        upstream: Option<&Upstream>,
    ) -> Result<Clients, FetchError> {
        let strict: tls::Lenient = Arc::new(|_| false);
        // The proxy itself is verified all the same.
        let proxy = upstream.and_then(|upstream| upstream.url.host_str().map(str::to_owned));
        let trusting: tls::Lenient = Arc::new(move |name| proxy.as_deref() != Some(name));
        if settings.insecure {
            let usual = build(settings, names, upstream, trusting)?;
            let lenient = None;
            return Ok(Clients { usual, lenient });
        }
        let lenient = settings.hosts.has_insecure();
        Ok(Clients {
            usual: build(settings, names, upstream, strict)?,
            lenient: lenient
                .then(|| build(settings, names, upstream, trusting))
                .transpose()?,
        })
    }

    fn of(&self, is_lenient: bool, keeps: bool) -> &reqwest::Client {
        let pair = match &self.lenient {
            Some(lenient) if is_lenient => lenient,
            _ => &self.usual,
        };
        match keeps {
            true => &pair.keeping,
            false => &pair.closing,
        }
    }
}

/// An answer to one request, its body decoded.
pub(super) struct Answer {
    pub(super) status: u16,
    version: http::Version,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    wire_bytes: u64,
    pub(super) truncated: Option<Truncated>,
    coding: Coding,
}

/// One request.
pub(super) struct Request<'a> {
    pub(super) url: &'a Url,
    /// Its conditions (RFC 9110 §13.1); empty: none.
    pub(super) condition: HeaderMap,
    /// Whether a body of this media type is worth reading.
    pub(super) wanted: fn(Option<&str>) -> bool,
    /// Bytes of the body that are read at most.
    pub(super) cap: usize,
    /// The only address that may be asked, if the host is a name.
    pub(super) address: Option<IpAddr>,
    /// What is to be known of it, from [`Fetcher::terms`].
    pub(super) terms: Terms<'a>,
}

/// What the settings say of a request: looked up once, before its way is chosen.
pub(super) struct Terms<'a> {
    whose: Whose,
    entry: Option<&'a HostSettings>,
    /// The entry again, where its headers and login may be sent.
    said: Option<&'a HostSettings>,
    cookie: Option<HeaderValue>,
    /// Whether others can read it on its way.
    secrecy: Secrecy,
    /// The proxies that may take it; none for the direct way.
    candidates: Vec<usize>,
}

/// By which way a request went, as far as is known.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// The address that was asked, or was to be; none behind a proxy, and where a name had several
    /// and none of them answered.
    pub ip: Option<IpAddr>,
    /// Label of the proxy; none for the direct way.
    pub proxy: Option<Arc<str>>,
}

impl Fetcher {
    /// Builds the clients: one for the direct way, one for each proxy. Call it inside a runtime.
    ///
    /// # Errors
    /// [`FetchError::Setting`] if a setting cannot be used; it names the key.
    pub fn new(settings: FetchSettings, private: PrivateGuard) -> Result<Fetcher, FetchError> {
        let guard = if settings.allow_private {
            PrivateGuard::open()
        } else {
            private.with_own(&settings.allow_hosts)
        };
        let (routes, upstreams) = Routes::new(&settings)?;
        let lookup = Lookup::new(&settings.resolver, settings.shortest_ttl);
        let strict = guard.for_strangers();
        let overrides = Arc::new(Overrides::new(&settings.resolve));
        let guarded = |upstream: Option<&Upstream>| Guarded {
            lookup: lookup.clone(),
            guard: guard.clone(),
            strict: strict.clone(),
            overrides: Arc::clone(&overrides),
            proxy_host: upstream.and_then(|upstream| upstream.url.host_str().map(str::to_owned)),
            patience: settings.connect_timeout.mul_f64(0.8),
            only_first: settings.only_first_address,
        };
        let names = guarded(None);
        let direct = Clients::build(&settings, &names, None)?;
        let pool = Arc::new(Pool::new(
            upstreams.iter().map(|upstream| Arc::clone(&upstream.label)),
            settings.proxy_rotation,
            settings.proxy_rests.clone(),
        ));
        let proxied = upstreams
            .into_iter()
            .map(|upstream| {
                let names = guarded(Some(&upstream));
                let clients = Clients::build(&settings, &names, Some(&upstream))?;
                Ok((upstream, clients))
            })
            .collect::<Result<_, FetchError>>()?;
        Ok(Fetcher {
            inner: Arc::new(Inner {
                cookies: Cookies::new(&settings.cookies, settings.jars.clone()),
                places: Places::new(settings.kept_hosts.min(affordable_hosts())),
                settings,
                guard,
                strict,
                names,
                direct,
                routes,
                pool,
                proxied,
            }),
        })
    }

    /// The address that a request for this URL would go to; none where a proxy is asked, or where
    /// there is no such address: then the request will say why.
    pub async fn address(&self, url: &Url) -> Option<IpAddr> {
        if !self.candidates(url).is_empty() {
            return None;
        }
        if let Some(ip) = address::literal(url) {
            return Some(ip);
        }
        let names = &self.inner.names;
        let port = url.port_or_known_default();
        let found = names.addresses(url.host_str()?, port, Whose::Ours);
        found.await.ok()?.into_iter().min()
    }

    /// The settings it was built from.
    pub fn settings(&self) -> &FetchSettings {
        &self.inner.settings
    }

    /// Fingerprint of what is said of ourselves to the host of this URL, by the operator: the headers, a login, cookies, and whether hosts keep
    /// cookies with us or are shown a certificate. An answer that was had as somebody else may be another one.
    ///
    /// It stands in the database, where no secret may be: 16 bits do not tell which of many secrets it was made of, and miss one change
    /// of 65,536.
    pub fn guise(&self, url: &Url) -> u16 {
        let settings = &self.inner.settings;
        let cookies = VisitCookies::new(&self.inner.cookies.of_operator());
        let terms = self.terms(url, &cookies, Whose::Ours);
        let keep = terms.entry.and_then(|entry| entry.cookies);
        Guise::default()
            .text("user-agent", settings.user_agent.as_bytes())
            .text("accept", settings.accept.as_bytes())
            .text(
                "from",
                settings.from.as_deref().unwrap_or_default().as_bytes(),
            )
            .headers(&settings.headers)
            .said(terms.said)
            .header("cookie", terms.cookie.as_ref())
            .flag(keep.unwrap_or(settings.keep_cookies) == KeepCookies::Host)
            .flag(settings.client_cert.is_some())
            .cut()
    }

    /// How long every proxy rests that may take a request for this URL; none if one is fit, and
    /// where no proxy is asked. A request made before that ends would fail at once.
    pub fn proxies_rest(&self, url: &Url) -> Option<Duration> {
        self.inner.pool.rest(&self.candidates(url))
    }

    /// Whether one of the proxies that may take a request for this URL reached a host in the last minute:
    /// where it fails for one task again and again, that is the task's.
    pub fn proxies_serve(&self, url: &Url) -> bool {
        self.inner.pool.serves(&self.candidates(url))
    }

    /// How the proxies stand, in the order of the settings.
    pub fn proxies(&self) -> Vec<ProxyReport> {
        self.inner.pool.report()
    }

    /// Whether names of some hosts are looked up by proxies, so that their addresses cannot be judged.
    pub fn trusts_proxies_with_names(&self) -> bool {
        let mut upstreams = self.inner.proxied.iter();
        upstreams.any(|(upstream, _)| upstream.url.scheme() != "socks5")
    }

    fn candidates(&self, url: &Url) -> Vec<usize> {
        let entry = self.inner.settings.hosts.of(url);
        let choice = entry.and_then(|entry| entry.proxy.as_ref());
        self.inner.routes.candidates(url, choice)
    }

    /// Fetches a page. An answer of any status is an exchange, a redirect elsewhere too; redirects
    /// to the page's own identity are followed, five at most, `options.pause` before each.
    ///
    /// # Errors
    /// A [`FetchError`] where there is no answer, or none that is whole.
    pub async fn fetch(
        &self,
        url: &PageUrl,
        options: &FetchOptions,
    ) -> Result<Exchange, FetchError> {
        self.fetch_by(url, options, &mut Way::default()).await
    }

    /// The same; `way` tells by which way the last request went, also if there is no answer.
    ///
    /// # Errors
    /// As [`Fetcher::fetch`].
    pub async fn fetch_by(
        &self,
        url: &PageUrl,
        options: &FetchOptions,
        way: &mut Way,
    ) -> Result<Exchange, FetchError> {
        let started = Instant::now();
        let deadline = Deadline::start(&self.inner.settings, options);
        let cap = usize::try_from(self.inner.settings.max_body_bytes).unwrap_or(usize::MAX);
        let (mut at, mut hops) = (url.clone(), 0);
        let mut cookies = self.cookies();
        let mut trail = Trail::default();
        loop {
            let terms = self.terms(at.as_url(), &cookies, Whose::Ours);
            trail.add(at.as_url(), terms.cookie.clone());
            let condition = options.validators.as_ref();
            let request = Request {
                url: at.as_url(),
                condition: condition
                    .and_then(|validators| validators.headers(at.as_url()))
                    .unwrap_or_default(),
                wanted: options.wanted,
                cap,
                address: options.address,
                terms,
            };
            let answer = self.request(&request, &mut cookies, &deadline, way).await?;
            if answer.status == 304 && request.condition.is_empty() {
                return Err(FetchError::UnaskedNotModified);
            }
            if let Some(next) = redirect::to_itself(url, &at, answer.status, &answer.headers)
                && options.may_hop.allows(next.as_url())
            {
                let cookie = self.terms(next.as_url(), &cookies, Whose::Ours).cookie;
                if hops == MOST_HOPS || trail.has(next.as_url(), cookie.as_ref()) {
                    let status = answer.status;
                    return Err(FetchError::RedirectLoop { hops, status });
                }
                // A hop is a request to the same host like any other.
                deadline.pause(options.pause).await?;
                deadline.leave(&options.hop_leave).await?;
                at = next;
                hops += 1;
                continue;
            }
            return Ok(Exchange {
                url: url.as_url().clone(),
                final_url: at.as_url().clone(),
                hops,
                status: answer.status,
                version: answer.version,
                headers: answer.headers,
                body: answer.body,
                wire_bytes: answer.wire_bytes,
                truncated: answer.truncated,
                coding: answer.coding,
                ip: way.ip,
                proxy: way.proxy.clone(),
                elapsed: started.elapsed(),
                ended: Boottime::now(),
            });
        }
    }

    /// The cookies that a visit begins with.
    pub(super) fn cookies(&self) -> VisitCookies {
        VisitCookies::new(&self.inner.cookies)
    }

    /// What is to be known of a request for this URL.
    pub(super) fn terms(&self, url: &Url, cookies: &VisitCookies, whose: Whose) -> Terms<'_> {
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
    pub(super) async fn request(
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
        let wire = if leads_on {
            body::skim(&mut response, request.cap, deadline).await
        } else if (request.wanted)(extract::media_type(&headers).as_deref()) {
            body::read(&mut response, request.cap, deadline).await?
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
            wire_bytes,
            truncated,
            coding,
        })
    }

    /// Draws the lesson about the proxy.
    async fn settle(
        &self,
        pass: Pass,
        host: &str,
        asked: Result<Answer, FetchError>,
    ) -> Result<Answer, FetchError> {
        let error = match asked {
            Ok(answer) => {
                pass.reached(answer.wire_bytes);
                return Ok(answer);
            }
            Err(error) => error,
        };
        match &error {
            FetchError::Proxy { reason, .. } => pass.failed(reason),
            FetchError::Tunnel {
                blame: Blame::Unclear,
                ..
            } => {
                let upstream = &self.inner.proxied[pass.index].0;
                if !upstream.is_there().await {
                    return Err(fail(pass, "it cannot be reached".to_owned()));
                }
                return Err(doubt(pass, host, error));
            }
            FetchError::Tunnel {
                blame: Blame::Claimed,
                ..
            } => return Err(doubt(pass, host, error)),
            // Silence and broken connections may be anybody's.
            FetchError::Reset(_) | FetchError::ConnectTimeout(_) => {
                return Err(doubt(pass, host, error));
            }
            FetchError::IdleTimeout { stage, .. } | FetchError::TotalTimeout { stage, .. }
                if *stage == Stage::Headers =>
            {
                return Err(doubt(pass, host, error));
            }
            FetchError::Tunnel { .. }
            | FetchError::Tls { .. }
            | FetchError::IdleTimeout { .. }
            | FetchError::Incomplete(_)
            | FetchError::Malformed(_) => pass.reached(0),
            _ => {}
        }
        Err(error)
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

/// Counts a failure of the proxy.
fn fail(pass: Pass, reason: String) -> FetchError {
    let label = Arc::clone(pass.label());
    pass.failed(&reason);
    FetchError::Proxy { label, reason }
}

/// Counts a host that was not reached, perhaps by the proxy's fault: one of several sites in a row is.
fn doubt(pass: Pass, host: &str, error: FetchError) -> FetchError {
    match pass.doubted(cookies::site(host)) {
        Some(pass) => fail(
            pass,
            format!("it reached none of several sites; of the last: {error}"),
        ),
        None => error,
    }
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
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

fn build(
    settings: &FetchSettings,
    names: &Guarded,
    upstream: Option<&Upstream>,
    lenient: tls::Lenient,
) -> Result<Pair, FetchError> {
    let header = |key, value: &str| {
        HeaderValue::from_str(value).map_err(|_| FetchError::Setting {
            key,
            reason: format!("{value:?} is no header value"),
        })
    };
    let mut defaults = HeaderMap::new();
    defaults.insert(ACCEPT, header("accept", &settings.accept)?);
    defaults.extend(settings.headers.clone());
    defaults.insert(ACCEPT_ENCODING, CODINGS);
    if let Some(from) = &settings.from {
        defaults.insert(FROM, header("contact", from)?);
    }
    let user_agent = header("user_agent", &settings.user_agent)?;
    let tls = tls::config(settings, lenient)?;
    let unusable = |key, error: reqwest::Error| FetchError::Setting {
        key,
        reason: error.without_url().to_string(),
    };
    let client = |idle_per_host| {
        let mut builder = reqwest::Client::builder()
            .user_agent(user_agent.clone())
            .default_headers(defaults.clone())
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            // reqwest repeats, twice at most, what HTTP/2 says was not begun: REFUSED_STREAM, GOAWAY (RFC 9113 §8.7).
            .connect_timeout(settings.connect_timeout)
            .pool_idle_timeout(IDLE_FOR)
            .http2_max_header_list_size(MOST_HEADER_BYTES)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_max_headers(MOST_HEADERS)
            .pool_max_idle_per_host(idle_per_host)
            .tls_backend_preconfigured(tls.clone())
            .dns_resolver(names.clone())
            .connector_layer(MarkConnecting);
        if let Some(upstream) = upstream {
            let proxy = reqwest::Proxy::all(upstream.url.clone())
                .map_err(|error| unusable("proxy", error))?;
            builder = builder.proxy(proxy);
        }
        builder.build().map_err(|error| unusable("fetch", error))
    };
    Ok(Pair {
        // A kept connection may lead to an address that the name has no more.
        keeping: client(if settings.only_first_address {
            0
        } else {
            IDLE_PER_HOST
        })?,
        closing: client(0)?,
    })
}

/// Hosts whose idle connections leave half of the files that the process may open to all else.
fn affordable_hosts() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files).unwrap_or(usize::MAX) / 2 / IDLE_PER_HOST
}
