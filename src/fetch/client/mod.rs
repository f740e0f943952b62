//! The fetcher: a visit's few hops, each a request (`request`) by one of the ways to the web (`ways`).

mod lesson;
mod request;
mod ways;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::address::{self, PrivateGuard};
use super::body::Deadline;
use super::cookies::{Cookies, KeepCookies, VisitCookies};
use super::dns::{Guarded, Lookup};
use super::error::FetchError;
use super::guise::Guise;
use super::idle::Places;
use super::proxy::{Pool, ProxyReport, Routes, Upstream};
use super::redirect::{self, MOST_HOPS, Trail};
use super::resolve::Overrides;
use super::settings::{FetchOptions, FetchSettings};
use super::watch::Whose;
use crate::canon::PageUrl;
use crate::clock::Boottime;
use crate::exchange::Exchange;

use request::Terms;
pub(super) use request::{Answer, Request};
use ways::{Clients, affordable_hosts};

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
    /// As whom most hosts see us: those to which nothing of their own is said.
    usual_guise: OnceLock<u16>,
    routes: Routes,
    pool: Arc<Pool>,
    /// By the indices of `routes`.
    proxied: Vec<(Upstream, Clients)>,
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
                places: Places::new(settings.kept_hosts.min(affordable_hosts(&settings))),
                usual_guise: OnceLock::new(),
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
        let cookies = VisitCookies::new(&self.inner.cookies.of_operator());
        let terms = self.terms(url, &cookies, Whose::Ours);
        let keep = terms.entry.and_then(|entry| entry.cookies);
        let is_usual = terms.said.is_none() && terms.cookie.is_none() && keep.is_none();
        match is_usual {
            true => *(self.inner.usual_guise).get_or_init(|| self.guise_of(&terms)),
            false => self.guise_of(&terms),
        }
    }

    fn guise_of(&self, terms: &Terms<'_>) -> u16 {
        let settings = &self.inner.settings;
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
                type_rules: &options.type_rules,
                cap,
                room: &options.room,
                sink: options.sink.as_ref(),
                address: options.address,
                terms,
            };
            let answer = self.request(&request, &mut cookies, &deadline, way).await?;
            if answer.status == 304 && request.condition.is_empty() {
                return Err(FetchError::UnaskedNotModified);
            }
            if let Some(next) =
                redirect::to_itself(url, &at, answer.status, &answer.headers, &options.canon)
                && options.may_hop.allows(next.as_url()).await
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
                streamed: answer.streamed,
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
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}
