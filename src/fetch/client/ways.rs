//! The clients of each way to the web: the direct one and those by proxies.

use std::sync::Arc;

use http::header::{ACCEPT, ACCEPT_ENCODING, FROM, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use rustix::process::{Resource, getrlimit};

use crate::fetch::dns::Guarded;
use crate::fetch::error::FetchError;
use crate::fetch::idle::IDLE_FOR;
use crate::fetch::proxy::Upstream;
use crate::fetch::settings::FetchSettings;
use crate::fetch::tls;
use crate::fetch::watch::MarkConnecting;

/// What we can decode, the best first.
const CODINGS: HeaderValue = HeaderValue::from_static("gzip, br, zstd, deflate");

/// Header lines of an answer; hyper's 100 is too few for some content security policies.
const MOST_HEADERS: usize = 400;

/// The same of HTTP/2, in bytes: as Chrome has it. What hyper takes of HTTP/1.1 is 400 KB.
const MOST_HEADER_BYTES: u32 = 256 * 1024;

/// The clients of one way.
pub(super) struct Clients {
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
    pub(super) fn build(
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

    pub(super) fn of(&self, is_lenient: bool, keeps: bool) -> &reqwest::Client {
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
            settings.idle_per_host
        })?,
        closing: client(0)?,
    })
}

/// Hosts whose idle connections leave half of the files that the process may open to all else.
pub(super) fn affordable_hosts(settings: &FetchSettings) -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files).unwrap_or(usize::MAX) / 2 / settings.idle_per_host.max(1)
}
