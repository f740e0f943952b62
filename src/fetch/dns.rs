//! Names to addresses, with a look at each address before anybody connects to it.
//!
//! hickory asks the nameservers of resolv.conf itself: no thread waits for it, and it keeps answers
//! for as long as their TTL says, within bounds. It ignores nsswitch, so the system's resolver is
//! the way out ([`Resolver::System`]), and what is used where resolv.conf names no server. Since the
//! addresses returned here are the ones connected to, a name that changes its mind between a look at
//! it and the connection (DNS rebinding) gains nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use reqwest::dns::{Addrs, Resolve, Resolving};

use super::error::NameTrouble;
use super::resolve::Overrides;
use super::settings::Resolver;
use super::watch::{Watch, Whose};
use super::{FetchError, PrivateGuard, is_public};

/// One try of one question to one nameserver; there are two tries.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);

/// Answers kept, about 300 bytes each.
const CACHED_ANSWERS: u64 = 8192;

/// The longest time that an answer counts, whatever its TTL: a server that moves is found again
/// within the hour.
const LONGEST_KEPT: Duration = Duration::from_secs(3600);

/// The longest time that "there is no such name" counts: less than the shortest wait of a retry,
/// which would otherwise ask nobody.
const LONGEST_REFUSED: Duration = Duration::from_secs(20);

/// The one source of addresses of a fetcher; clones share their cache.
#[derive(Clone)]
pub(super) enum Lookup {
    Hickory(Arc<TokioResolver>),
    System,
}

/// What a look at a name came to, if not to addresses.
type Refusal = (NameTrouble, String);

impl Lookup {
    /// Starts the resolver of the settings. Without a nameserver it is the system's. An answer
    /// counts for `shortest` at least.
    pub(super) fn new(resolver: &Resolver, shortest: Duration) -> Lookup {
        let built = match resolver {
            Resolver::System => return Lookup::System,
            Resolver::Hickory => TokioResolver::builder_tokio(),
            Resolver::At(address) => Ok(TokioResolver::builder_with_config(
                only(*address),
                TokioRuntimeProvider::default(),
            )),
        };
        let built = built.and_then(|mut builder| {
            tune(builder.options_mut(), shortest);
            builder.build()
        });
        built.map_or_else(
            |error| {
                tracing::warn!(
                    %error,
                    "no nameserver to ask, so the system's resolver is used; --dns ADDRESS:PORT names one, --resolver system says that this is meant"
                );
                Lookup::System
            },
            |resolver| Lookup::Hickory(Arc::new(resolver)),
        )
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Refusal> {
        if is_localhost(host) {
            // RFC 6761 §6.3: never a question for a nameserver.
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        // Not as strict as the RFCs on hosts: an underscore is fine for DNS and browsers.
        let mut name = Name::from_str_relaxed(host)
            .map_err(|error| (NameTrouble::Impossible, error.to_string()))?;
        match self {
            Lookup::Hickory(resolver) => {
                // A name with a dot is whole; the search list is for one-label names only.
                if host.contains('.') {
                    name.set_fqdn(true);
                }
                let found = resolver
                    .lookup_ip(name)
                    .await
                    .map_err(|error| why(&error))?;
                Ok(found.iter().collect())
            }
            Lookup::System => {
                let found = tokio::net::lookup_host((host, 0)).await;
                let found = found.map_err(|error: io::Error| why_system(&error))?;
                Ok(found.map(|address| address.ip()).collect())
            }
        }
    }
}

fn tune(options: &mut ResolverOpts, shortest: Duration) {
    options.timeout = ASK_TIMEOUT;
    options.attempts = 1;
    options.cache_size = CACHED_ANSWERS;
    options.positive_min_ttl = Some(shortest);
    options.positive_max_ttl = Some(LONGEST_KEPT);
    options.negative_min_ttl = Some(shortest.min(LONGEST_REFUSED));
    options.negative_max_ttl = Some(LONGEST_REFUSED);
    // Both families at once: the connector tries them in turn (RFC 8305).
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
}

/// What a nameserver's answer means: that there is nothing is news of the name, that it could not
/// say is news of the nameserver.
fn why(error: &NetError) -> Refusal {
    if error.is_nx_domain() {
        (NameTrouble::Unknown, "no such name".to_owned())
    } else if error.is_no_records_found() {
        (NameTrouble::NoAddress, "the name has no address".to_owned())
    } else if matches!(error, NetError::Timeout) {
        (NameTrouble::NoAnswer, "no nameserver answered".to_owned())
    } else {
        let reason = format!("the nameserver could not say: {error}");
        (NameTrouble::NoAnswer, reason)
    }
}

/// getaddrinfo's codes do not come through `std`, its words do (those of glibc, musl and macOS).
fn why_system(error: &io::Error) -> Refusal {
    let words = error.to_string();
    let detail = words.rsplit(": ").next().unwrap_or(&words);
    let lower = detail.to_ascii_lowercase();
    if lower.contains("temporary") || lower.contains("try again") {
        (
            NameTrouble::NoAnswer,
            format!("the nameserver could not say: {detail}"),
        )
    } else if lower.contains("no address associated") {
        (NameTrouble::NoAddress, "the name has no address".to_owned())
    } else if lower.contains("not known") || lower.contains("does not resolve") {
        (NameTrouble::Unknown, "no such name".to_owned())
    } else {
        (NameTrouble::Unknown, detail.to_owned())
    }
}

fn only(address: SocketAddr) -> ResolverConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = address.port();
        connection
    });
    let server = NameServerConfig::new(address.ip(), true, connections.into());
    ResolverConfig::from_name_servers(vec![server])
}

fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost")
}

/// A resolver that drops private addresses of hosts that nobody named.
#[derive(Clone)]
pub(super) struct Guarded {
    pub(super) lookup: Lookup,
    pub(super) guard: PrivateGuard,
    /// The guard for URLs that strangers chose.
    pub(super) strict: PrivateGuard,
    /// Hosts whose addresses the operator gave.
    pub(super) overrides: Arc<Overrides>,
    /// The proxy's own host, which may be anywhere: the operator named it.
    pub(super) proxy_host: Option<String>,
    /// When to give up, below the limit on connecting, so that the error can say what was slow.
    pub(super) patience: Duration,
    /// Whether only the first address of a name, in their order, is used: whoever keeps a delay per address must know which it will be.
    pub(super) only_first: bool,
}

impl Guarded {
    /// The addresses that a host may be asked at, on this port; never none.
    pub(super) async fn addresses(
        &self,
        host: &str,
        port: Option<u16>,
        whose: Whose,
    ) -> Result<Vec<IpAddr>, Failure> {
        let is_proxy = self.proxy_host.as_deref() == Some(host);
        let failure = |(trouble, reason): Refusal| Failure::Lookup {
            host: host.to_owned(),
            is_proxy,
            trouble,
            reason,
        };
        let mut found = match self.overrides.of(host, port) {
            // The operator gave them for this very host, so they are not judged.
            Some(given) => given.to_vec(),
            None => {
                let found = tokio::time::timeout(self.patience, self.lookup.addresses(host)).await;
                let late = || {
                    let reason = format!("no nameserver answered within {:?}", self.patience);
                    (NameTrouble::NoAnswer, reason)
                };
                let mut found = found.map_err(|_| failure(late()))?.map_err(failure)?;
                if let Some(refused) = self.sift(host, is_proxy, whose, &mut found) {
                    return Err(refused);
                }
                found
            }
        };
        if self.only_first && !is_proxy {
            found = found.into_iter().min().into_iter().collect();
        }
        match found.is_empty() {
            true => Err(failure((
                NameTrouble::NoAddress,
                "the name has no address".to_owned(),
            ))),
            false => Ok(found),
        }
    }

    /// Takes out what may not be asked. Answers why, if nothing is left.
    fn sift(
        &self,
        host: &str,
        is_proxy: bool,
        whose: Whose,
        found: &mut Vec<IpAddr>,
    ) -> Option<Failure> {
        if is_proxy {
            return None;
        }
        let private = found.iter().copied().find(|&ip| !is_public(ip))?;
        let guard = self.guard(whose);
        found.retain(|&ip| guard.allows(host, ip));
        found.is_empty().then(|| Failure::Private {
            host: host.to_owned(),
            ip: private,
        })
    }
}

impl Guarded {
    fn guard(&self, whose: Whose) -> &PrivateGuard {
        match whose {
            Whose::Ours => &self.guard,
            Whose::Strangers => &self.strict,
        }
    }

    /// Looks once more at an address for which leave was had: whoever asked for that may not have known who chose the URL.
    fn judge_pinned(
        &self,
        host: &str,
        ip: IpAddr,
        port: Option<u16>,
        whose: Whose,
    ) -> Result<Vec<IpAddr>, Failure> {
        let given = self.overrides.of(host, port);
        if given.is_some_and(|given| given.contains(&ip)) || self.guard(whose).allows(host, ip) {
            return Ok(vec![ip]);
        }
        let host = host.to_owned();
        Err(Failure::Private { host, ip })
    }
}

/// For reqwest.
impl Resolve for Guarded {
    fn resolve(&self, name: reqwest::dns::Name) -> Resolving {
        let (guarded, host) = (self.clone(), name.as_str().to_owned());
        let watch = Watch::current();
        Box::pin(async move {
            let port = watch.as_ref().and_then(Watch::port);
            let whose = watch.as_ref().map_or(Whose::Ours, Watch::whose);
            let pinned = watch.as_ref().and_then(|watch| watch.pinned(&host));
            let found = match pinned {
                Some(ip) => guarded.judge_pinned(&host, ip, port, whose)?,
                None => guarded.addresses(&host, port, whose).await?,
            };
            if let Some(watch) = &watch {
                watch.note(&found);
            }
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

/// Why a name has no address for us; travels through reqwest and is found again by `error`.
#[derive(Debug)]
pub(super) enum Failure {
    Lookup {
        host: String,
        is_proxy: bool,
        trouble: NameTrouble,
        reason: String,
    },
    Private {
        host: String,
        ip: IpAddr,
    },
}

impl Failure {
    /// The error to report; `proxy` is the label of the proxy in use.
    pub(super) fn to_error(&self, proxy: Option<&Arc<str>>) -> FetchError {
        match (self, proxy) {
            (Failure::Lookup { is_proxy: true, .. }, Some(label)) => FetchError::Proxy {
                label: Arc::clone(label),
                reason: self.to_string(),
            },
            (
                Failure::Lookup {
                    host,
                    trouble,
                    reason,
                    ..
                },
                _,
            ) => FetchError::Dns {
                host: host.clone(),
                trouble: *trouble,
                reason: reason.clone(),
            },
            (Failure::Private { host, ip }, _) => FetchError::PrivateAddress {
                host: host.clone(),
                ip: *ip,
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Lookup { host, reason, .. } => write!(f, "cannot resolve {host}: {reason}"),
            Failure::Private { host, ip } => write!(f, "{host} is at the private address {ip}"),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_and_what_is_below_it_is_this_machine() {
        for name in ["localhost", "LocalHost.", "a.localhost"] {
            assert!(is_localhost(name), "{name}");
        }
        for name in ["localhost.example.org", "notlocalhost", "xlocalhost."] {
            assert!(!is_localhost(name), "{name}");
        }
    }

    #[tokio::test]
    async fn a_name_that_is_too_long_is_asked_of_nobody() {
        let of_254_octets = format!("{}.bc", ["a"; 126].join("."));
        for name in [of_254_octets, format!("{}.test", "a".repeat(64))] {
            let refused = Lookup::System.addresses(&name).await.unwrap_err();
            assert_eq!(refused.0, NameTrouble::Impossible, "{name}");
        }
    }

    #[test]
    fn the_words_of_getaddrinfo_tell_a_name_from_a_nameserver() {
        let why = |words: &str| why_system(&io::Error::other(words.to_owned()));
        let prefix = "failed to lookup address information: ";
        for (words, trouble, reason) in [
            (
                "Name or service not known",
                NameTrouble::Unknown,
                "no such name",
            ),
            (
                "Name does not resolve",
                NameTrouble::Unknown,
                "no such name",
            ),
            (
                "nodename nor servname provided, or not known",
                NameTrouble::Unknown,
                "no such name",
            ),
            (
                "No address associated with hostname",
                NameTrouble::NoAddress,
                "the name has no address",
            ),
            (
                "Temporary failure in name resolution",
                NameTrouble::NoAnswer,
                "the nameserver could not say: Temporary failure in name resolution",
            ),
            (
                "Try again",
                NameTrouble::NoAnswer,
                "the nameserver could not say: Try again",
            ),
        ] {
            let expected = (trouble, reason.to_owned());
            assert_eq!(why(&format!("{prefix}{words}")), expected);
        }
    }
}
