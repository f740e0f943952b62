//! Names to addresses, with a look at each address before anybody connects to it.
//!
//! hickory asks the nameservers of resolv.conf itself: no thread waits for it, and it keeps answers
//! for as long as their TTL says. It ignores nsswitch, so the system's resolver is the way out
//! ([`Resolver::System`]), and what is used where resolv.conf names no server. Since the addresses
//! returned here are the ones connected to, a name that changes its mind gains nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use reqwest::dns::{Addrs, Resolve, Resolving};

use super::settings::Resolver;
use super::{FetchError, PrivateGuard, is_public};

/// One try of one question to one nameserver; there are two tries.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);

/// Answers kept, about 300 bytes each.
const CACHED_ANSWERS: u64 = 8192;

/// The one source of addresses of a fetcher; clones share their cache.
#[derive(Clone)]
pub(super) enum Lookup {
    Hickory(Arc<TokioResolver>),
    System,
}

impl Lookup {
    /// Starts the resolver of the settings. Without a nameserver it is the system's.
    pub(super) fn new(resolver: &Resolver) -> Lookup {
        let built = match resolver {
            Resolver::System => return Lookup::System,
            Resolver::Hickory => TokioResolver::builder_tokio(),
            Resolver::At(address) => Ok(TokioResolver::builder_with_config(
                only(*address),
                TokioRuntimeProvider::default(),
            )),
        };
        let built = built.and_then(|mut builder| {
            tune(builder.options_mut());
            builder.build()
        });
        built.map_or_else(
            |error| {
                tracing::warn!(%error, "no nameserver to ask, using the system's resolver");
                Lookup::System
            },
            |resolver| Lookup::Hickory(Arc::new(resolver)),
        )
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        if is_localhost(host) {
            // RFC 6761 §6.3: never a question for a nameserver.
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        match self {
            Lookup::Hickory(resolver) => {
                // Not as strict as the RFCs on hosts: an underscore is fine for DNS and browsers.
                let name = Name::from_str_relaxed(host).map_err(|error| error.to_string());
                let mut name = name?;
                // A name with a dot is whole; the search list is for one-label names only.
                if host.contains('.') {
                    name.set_fqdn(true);
                }
                let found = resolver.lookup_ip(name).await.map_err(|error| {
                    if error.is_nx_domain() {
                        "no such name".to_owned()
                    } else if error.is_no_records_found() {
                        "the name has no address".to_owned()
                    } else {
                        error.to_string()
                    }
                })?;
                Ok(found.iter().collect())
            }
            Lookup::System => {
                let found = tokio::net::lookup_host((host, 0)).await;
                let found = found.map_err(|error: io::Error| error.to_string())?;
                Ok(found.map(|address| address.ip()).collect())
            }
        }
    }
}

fn tune(options: &mut ResolverOpts) {
    options.timeout = ASK_TIMEOUT;
    options.attempts = 1;
    options.cache_size = CACHED_ANSWERS;
    // Both families at once: the connector tries them in turn (RFC 8305).
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
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
    /// The proxy's own host, which may be anywhere: the operator named it.
    pub(super) proxy_host: Option<String>,
    /// When to give up, below the limit on connecting, so that the error can say what was slow.
    pub(super) patience: Duration,
    /// Whether only the first address of a name, in their order, is used: whoever keeps a delay per address must know which it will be.
    pub(super) only_first: bool,
}

impl Guarded {
    /// The addresses that a host may be asked at; never none.
    pub(super) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        let is_proxy = self.proxy_host.as_deref() == Some(host);
        let found = tokio::time::timeout(self.patience, self.lookup.addresses(host)).await;
        let failure = |reason: String| Failure::Lookup {
            host: host.to_owned(),
            is_proxy,
            reason,
        };
        let mut found = found
            .map_err(|_| failure(format!("no nameserver answered within {:?}", self.patience)))?
            .map_err(failure)?;
        let private = found.iter().copied().find(|&ip| !is_public(ip));
        if let Some(ip) = private
            && !is_proxy
            && !self.guard.allows(host)
        {
            found.retain(|&ip| is_public(ip));
            if found.is_empty() {
                let host = host.to_owned();
                return Err(Failure::Private { host, ip });
            }
        }
        if self.only_first && !is_proxy {
            found = found.into_iter().min().into_iter().collect();
        }
        match found.is_empty() {
            true => Err(failure("the name has no address".to_owned())),
            false => Ok(found),
        }
    }
}

/// For reqwest.
impl Resolve for Guarded {
    fn resolve(&self, name: reqwest::dns::Name) -> Resolving {
        let (guarded, host) = (self.clone(), name.as_str().to_owned());
        Box::pin(async move {
            let found = guarded.addresses(&host).await?;
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
            (Failure::Lookup { host, reason, .. }, _) => FetchError::Dns {
                host: host.clone(),
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
}
