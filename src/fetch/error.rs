//! Why there is no answer: one error with a class from a closed set.
//!
//! The class is what `pages.error` stores and the view `failures` counts; the disposition is what
//! `schedule::retry` goes by; host-level errors are what a host's breaker counts. reqwest, hyper,
//! rustls and the resolver are unwrapped here (`classify`), and nowhere else.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::address::purpose;
use super::dns;
use super::proxy::{self, Blame, Said};
use super::tls::TlsFailure;

type Source = Box<dyn StdError + Send + Sync>;

/// Why a fetch brought no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The name of the host did not resolve: no such name, no address, or no nameserver answered.
    #[error("cannot resolve {host}: {reason}")]
    Dns {
        /// The name asked for.
        host: String,
        /// Whose fault that is.
        trouble: NameTrouble,
        /// What the resolver said.
        reason: String,
    },
    /// The host is at an address that is not public, and no seed names it; or one does, but it was another host's robots.txt that led
    /// there.
    #[error("{host} is at the private address {ip} ({}), which no seed names", purpose(*ip).unwrap_or("public"))]
    PrivateAddress {
        /// The host, as the URL has it.
        host: String,
        /// The first such address.
        ip: IpAddr,
    },
    /// The host answered that nothing listens on the port.
    #[error("connection refused")]
    Refused,
    /// No route leads to the host's network.
    #[error("no route to the host")]
    NoRoute(#[source] Source),
    /// Name lookup, connection and TLS handshake took longer than the limit.
    #[error("no connection within {0:?}")]
    ConnectTimeout(Duration),
    /// Nothing was heard for as long as the limit on silence.
    #[error("nothing heard for {after:?} while waiting for the {stage}")]
    IdleTimeout {
        /// The limit.
        after: Duration,
        /// What was awaited.
        stage: Stage,
    },
    /// The time for the whole fetch was over.
    #[error("not finished within {after:?}, still waiting for the {stage}")]
    TotalTimeout {
        /// The limit.
        after: Duration,
        /// What was awaited.
        stage: Stage,
    },
    /// The TLS handshake failed: a certificate that does not verify, or no common ground.
    #[error("tls: {reason}")]
    Tls {
        /// What of it failed.
        failure: TlsFailure,
        /// The same as a plain sentence.
        reason: String,
    },
    /// The connection was closed or reset before the headers were complete.
    #[error("connection closed before an answer came")]
    Reset(#[source] Source),
    /// The body ended before its announced length or before its last chunk (RFC 9112 §8).
    #[error("the body is incomplete: {0}")]
    Incomplete(#[source] Source),
    /// More header lines, or longer ones, than anybody needs: 400 lines, some 400 KB of HTTP/1.1.
    #[error("the headers are too many or too long")]
    HeaderLimit,
    /// What came is not HTTP.
    #[error("malformed answer: {0}")]
    Malformed(#[source] Source),
    /// A 304, where no condition was sent: some cache mixed up its clients.
    #[error("the answer is 304, though nothing was asked to be unchanged")]
    UnaskedNotModified,
    /// HTTP/2 failed, or the connection did in a way that has no class of its own.
    #[error("protocol: {0}")]
    Protocol(#[source] Source),
    /// The proxy cannot be used: unreachable, or it wants other credentials.
    #[error("proxy {label}: {reason}")]
    Proxy {
        /// The proxy's label.
        label: Arc<str>,
        /// What went wrong with it.
        reason: String,
    },
    /// The proxy works, but did not reach the host.
    #[error("the proxy {label} cannot reach the host: {reason}")]
    Tunnel {
        /// The proxy's label.
        label: Arc<str>,
        /// What it says.
        reason: String,
        /// Whose fault that is.
        blame: Blame,
    },
    /// Every proxy that might be asked rests after failures.
    #[error("no proxy is fit; the first is worth another try in {wait:.0?}")]
    NoProxy {
        /// How long the first of them still rests.
        wait: Duration,
    },
    /// The page redirects to itself without end.
    #[error("redirects to itself ({status}), given up after {hops} hops")]
    RedirectLoop {
        /// Redirects followed.
        hops: u8,
        /// The status of the last answer.
        status: u16,
    },
    /// robots.txt is more than five redirects away (RFC 9309 §2.3.1.2).
    #[error("more than {hops} redirects")]
    TooManyRedirects {
        /// Redirects followed.
        hops: u8,
    },
    /// A URL that cannot be asked for: HTTP has no form for it.
    #[error("not a URL that http can ask for: {0}")]
    Url(String),
    /// A setting that no client can be built from.
    #[error("{key}: {reason}")]
    Setting {
        /// The setting's key.
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// Why a name did not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameTrouble {
    /// There is no such name (NXDOMAIN).
    Unknown,
    /// The name has no address.
    NoAddress,
    /// No nameserver answered, or the one that did could not say (SERVFAIL): no news of the name.
    NoAnswer,
    /// No nameserver can be asked for it: a label above 63 octets, a name above 253.
    Impossible,
}

/// What a fetch was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The end of the response headers.
    Headers,
    /// The rest of the body.
    Body,
    /// The host's delay before the next hop.
    Pause,
    /// Room in memory for a large body, among others.
    Room,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stage::Headers => "headers",
            Stage::Body => "body",
            Stage::Pause => "delay before the next hop",
            Stage::Room => "room for a large body",
        })
    }
}

/// What may be done about an error; how often and when is for `schedule::retry` to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disposition {
    /// Try again: it may pass.
    Retry,
    /// Try again, but less often: it seldom passes (names, routes).
    RetryFew,
    /// The same request will fail the same way.
    Never,
    /// The operator's proxy is at fault: neither the page nor its host is to be charged.
    Proxy,
}

impl FetchError {
    /// The name of the error's kind, from a closed set: a column's value, never changed.
    pub fn class(&self) -> &'static str {
        use FetchError as E;
        match self {
            E::Dns { .. } => "dns",
            E::PrivateAddress { .. } => "private_address",
            E::Refused => "refused",
            E::NoRoute(_) => "no_route",
            E::ConnectTimeout(_) => "connect_timeout",
            E::IdleTimeout { .. } => "idle_timeout",
            E::TotalTimeout { .. } => "total_timeout",
            E::Tls { failure, .. } => failure.class(),
            E::Reset(_) => "reset",
            E::Incomplete(_) => "incomplete",
            E::HeaderLimit => "header_limit",
            E::Malformed(_) => "malformed",
            E::UnaskedNotModified => "unasked_304",
            E::Protocol(_) => "protocol",
            E::Proxy { .. } | E::NoProxy { .. } => "proxy",
            E::Tunnel { .. } => "tunnel",
            E::RedirectLoop { .. } => "redirect_loop",
            E::TooManyRedirects { .. } => "too_many_redirects",
            E::Url(_) => "url",
            E::Setting { .. } => "setting",
        }
    }

    /// The status of the answer that was the last, where there was one and it is the error.
    pub fn status(&self) -> Option<u16> {
        match self {
            FetchError::RedirectLoop { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the host, not the page, is at fault: such errors in a row open its breaker.
    pub fn is_host_level(&self) -> bool {
        use FetchError as E;
        match self {
            E::Dns { .. } | E::Refused | E::NoRoute(_) | E::ConnectTimeout(_) => true,
            E::Tls { .. } => true,
            E::Reset(_) | E::Tunnel { .. } => true,
            // A host that begins to answer lives; what is slow then is the page.
            E::IdleTimeout { stage, .. } | E::TotalTimeout { stage, .. } => {
                *stage == Stage::Headers
            }
            _ => false,
        }
    }

    /// What may be done about it.
    pub fn disposition(&self) -> Disposition {
        use FetchError as E;
        match self {
            E::Dns { trouble, .. } => match trouble {
                NameTrouble::Unknown | NameTrouble::NoAddress => Disposition::RetryFew,
                NameTrouble::NoAnswer => Disposition::Retry,
                NameTrouble::Impossible => Disposition::Never,
            },
            E::NoRoute(_) => Disposition::RetryFew,
            E::Proxy { .. } | E::NoProxy { .. } => Disposition::Proxy,
            E::Refused | E::ConnectTimeout(_) | E::IdleTimeout { .. } | E::TotalTimeout { .. } => {
                Disposition::Retry
            }
            E::Reset(_) | E::Incomplete(_) | E::Protocol(_) | E::Tunnel { .. } => {
                Disposition::Retry
            }
            E::UnaskedNotModified => Disposition::Retry,
            E::PrivateAddress { .. } | E::Tls { .. } | E::Malformed(_) | E::Url(_) => {
                Disposition::Never
            }
            E::HeaderLimit => Disposition::Never,
            E::RedirectLoop { .. } | E::TooManyRedirects { .. } | E::Setting { .. } => {
                Disposition::Never
            }
        }
    }
}

/// Classifies what reqwest said before the headers were complete.
///
/// `proxy` is the label of the proxy in use; `limit` is the limit on connecting.
pub(super) fn before_headers(
    error: reqwest::Error,
    url: &Url,
    proxy: Option<&Arc<str>>,
    limit: Duration,
) -> FetchError {
    // The URL is the caller's to show, and may hold what no log should.
    let error = error.without_url();
    if error.is_builder() {
        return FetchError::Url(deepest(&error));
    }
    let causes = causes(&error);
    if let Some(failure) = find::<dns::Failure>(&causes) {
        return failure.to_error(proxy);
    }
    if let Some(tls) = find::<rustls::Error>(&causes) {
        let (failure, reason) = TlsFailure::of(tls);
        return match proxy.filter(|_| is_of_proxy(&causes, url)) {
            Some(label) => FetchError::Proxy {
                label: Arc::clone(label),
                reason: format!("tls: {reason}"),
            },
            None => FetchError::Tls { failure, reason },
        };
    }
    if let (Some(label), true) = (proxy, error.is_connect()) {
        return through_proxy(label, &error, &causes, limit);
    }
    if error.is_connect() && error.is_timeout() {
        return FetchError::ConnectTimeout(limit);
    }
    if let Some(hyper) = find::<hyper::Error>(&causes) {
        if hyper.is_parse_too_large() {
            return FetchError::HeaderLimit;
        }
        if hyper.is_parse() {
            return FetchError::Malformed(last(&causes));
        }
        if hyper.is_incomplete_message() || hyper.is_canceled() || hyper.is_closed() {
            return FetchError::Reset(last(&causes));
        }
    }
    match find::<io::Error>(&causes).map(io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => FetchError::Refused,
        Some(
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown,
        ) => FetchError::NoRoute(last(&causes)),
        // The kernel's own patience with a connection.
        Some(ErrorKind::TimedOut) => FetchError::ConnectTimeout(limit),
        Some(
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof,
        ) => FetchError::Reset(last(&causes)),
        _ => FetchError::Protocol(last(&causes)),
    }
}

/// Classifies what reqwest said while the body came.
pub(super) fn in_body(error: reqwest::Error) -> FetchError {
    let error = error.without_url();
    let causes = causes(&error);
    match find::<io::Error>(&causes).map(io::Error::kind) {
        // A chunk-size line that is none (RFC 9112 §7.1).
        Some(ErrorKind::InvalidInput | ErrorKind::InvalidData) => {
            FetchError::Malformed(last(&causes))
        }
        _ => FetchError::Incomplete(last(&causes)),
    }
}

/// What went wrong before a connection through a proxy stood.
fn through_proxy(
    label: &Arc<str>,
    error: &reqwest::Error,
    causes: &[&(dyn StdError + 'static)],
    limit: Duration,
) -> FetchError {
    let label = Arc::clone(label);
    if error.is_timeout() {
        // The proxy, or the host beyond it: the caller may look.
        let reason = format!("no connection within {limit:?}");
        let blame = Blame::Unclear;
        return FetchError::Tunnel {
            label,
            reason,
            blame,
        };
    }
    let words: Vec<String> = causes.iter().map(ToString::to_string).collect();
    of_said(label, proxy::of_words(&words))
}

/// The error for what a proxy says.
pub(super) fn of_said(label: Arc<str>, said: Said) -> FetchError {
    match said {
        Said::Failed(reason) => FetchError::Proxy { label, reason },
        Said::Unreached(blame, reason) => FetchError::Tunnel {
            label,
            reason,
            blame,
        },
    }
}

/// Whether TLS failed on the way to the proxy, not behind it.
fn is_of_proxy(causes: &[&(dyn StdError + 'static)], url: &Url) -> bool {
    let to_proxy = "tunnel error: failed to create underlying connection";
    url.scheme() == "http" || causes.iter().any(|cause| cause.to_string() == to_proxy)
}

/// The chain of causes, outermost first. An `io::Error` hides the error it wraps from `source`.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    let mut chain = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        chain.push(error);
        next = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    chain
}

fn find<'a, E: StdError + 'static>(causes: &[&'a (dyn StdError + 'static)]) -> Option<&'a E> {
    // The innermost of a kind is the one that knows.
    causes
        .iter()
        .rev()
        .find_map(|cause| cause.downcast_ref::<E>())
}

/// The innermost cause, as words: the outer ones only say that there is a cause.
fn last(causes: &[&(dyn StdError + 'static)]) -> Source {
    causes
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
        .into()
}

fn deepest(error: &(dyn StdError + 'static)) -> String {
    last(&causes(error)).to_string()
}
