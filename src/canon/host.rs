//! Hosts and sites: the units of politeness and of scope.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use url::{Position, Url};

use super::{CanonError, shown};

/// The longest name of a host, in characters: 255 octets on the wire, where each label has its length before it and the
/// root's empty one comes last (RFC 1035 §2.3.4).
const MAX_HOST_CHARS: usize = 253;

/// Scheme, host and port, as `https://example.org` or `http://example.org:8080`; a default port is left out.
///
/// The unit of politeness and of robots.txt (RFC 9309 §2.3). No host is longer than a name can be: 253 characters
/// (RFC 1035 §2.3.4), the root's dot at the end not counted. The URL parser does not mind (WHATWG URL, "domain to ASCII": VerifyDnsLength is false).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostKey(Arc<str>);

impl HostKey {
    /// Whether both are one site by any custom: the same name, with or without `www.`, over http or https. Ports must be the defaults of both,
    /// or the same. Each is its own twin.
    pub fn is_twin_of(&self, other: &HostKey) -> bool {
        fn bare(host: &HostKey) -> &str {
            host.host().strip_prefix("www.").unwrap_or(host.host())
        }
        let is_default = |host: &HostKey| host.authority() == host.host();
        let same_port = (is_default(self) && is_default(other)) || self.port() == other.port();
        self == other || (bare(self) == bare(other) && same_port)
    }

    /// Reads a host key as it is stored; a trailing slash is allowed.
    ///
    /// # Errors
    /// [`CanonError`] if the text is no http or https URL, has a path, query, fragment or userinfo, or its
    /// host is too long.
    pub fn parse(text: &str) -> Result<HostKey, CanonError> {
        let url = Url::parse(text).map_err(|source| CanonError::invalid(text, source))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(CanonError::Scheme {
                scheme: shown(url.scheme()),
            });
        }
        let key = HostKey::of(&url)?;
        match url.as_str().strip_prefix(key.as_str()) {
            Some("/") => Ok(key),
            _ => Err(CanonError::NotAHost { text: shown(text) }),
        }
    }

    /// The host of an http or https URL without userinfo.
    ///
    /// # Errors
    /// [`CanonError::HostLength`] if it is too long.
    pub(super) fn of(url: &Url) -> Result<HostKey, CanonError> {
        let name = url.host_str().unwrap_or_default();
        // ASCII alone, so that bytes are characters.
        let chars = name.strip_suffix('.').unwrap_or(name).len();
        if chars > MAX_HOST_CHARS {
            return Err(CanonError::HostLength {
                host: shown(name),
                chars,
            });
        }
        let (scheme, host) = (
            &url[..Position::AfterScheme],
            &url[Position::BeforeHost..Position::AfterPort],
        );
        Ok(HostKey([scheme, "://", host].concat().into()))
    }

    /// Whether this is the host of a URL without userinfo.
    pub(super) fn is_of(&self, url: &Url) -> bool {
        &url[..Position::BeforePath] == self.as_str()
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.split().0
    }

    /// The host alone: `example.org`, `192.0.2.1` or `[2001:db8::1]`.
    pub fn host(&self) -> &str {
        let authority = self.split().1;
        match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => host,
            _ => authority,
        }
    }

    /// The port, the scheme's default where none is written.
    pub fn port(&self) -> u16 {
        let written = self
            .authority()
            .get(self.host().len() + 1..)
            .and_then(|port| port.parse().ok());
        written.unwrap_or(if self.scheme() == "https" { 443 } else { 80 })
    }

    /// Host and, if it is not the scheme's default, port: the key without its scheme.
    pub(crate) fn authority(&self) -> &str {
        self.split().1
    }

    /// Where the rules for robots lie (RFC 9309 §2.3).
    pub fn robots_url(&self) -> Url {
        Url::parse(&format!("{self}/robots.txt"))
            .expect("a host key was taken from a URL, a path makes it one again")
    }

    /// The site that this host belongs to.
    pub fn site(&self) -> SiteKey {
        SiteKey::of(self.host())
    }

    fn split(&self) -> (&str, &str) {
        self.0.split_once("://").unwrap_or(("", &self.0))
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({:?})", &self.0)
    }
}

/// The registrable domain: the public suffix and one label before it (publicsuffix.org, its private part included).
///
/// An IP address, a host of one label and a host that is a public suffix itself are their own sites.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteKey(Arc<str>);

impl SiteKey {
    fn of(host: &str) -> SiteKey {
        let name = host
            .strip_suffix('.')
            .filter(|name| !name.is_empty())
            .unwrap_or(host);
        let is_address = name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok();
        let domain = if is_address {
            None
        } else {
            psl::domain_str(name)
        };
        SiteKey(domain.unwrap_or(name).into())
    }

    /// The site as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SiteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SiteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SiteKey({:?})", &self.0)
    }
}
