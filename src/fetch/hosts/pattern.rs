//! Which hosts an entry of `[[hosts]]` is for.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::{Host, Url};

/// A host by its name, or all hosts below a name; with or without a scheme and a port.
///
/// `intranet.example` is that name at the default ports of http and https, `localhost:8080` at that port, `http://localhost:8080` over
/// http alone, and `*.example.org` each host below that name, which itself is none of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    scheme: Option<String>,
    /// Without the root's dot.
    name: String,
    below: bool,
    port: Option<u16>,
}

/// How precise a pattern is: a name above all that is below one, the longer name above the shorter, then a port, then a scheme.
pub(super) type Rank = (bool, usize, bool, bool);

/// Why a text is no pattern of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// There is a user name or password in it; the text is not repeated.
    #[error("a host has no user name or password in it: write them as username and password")]
    Userinfo,
    /// It has a path, a query or a fragment.
    #[error("\"{0}\" is more than scheme, host and port")]
    MoreThanAHost(String),
    /// The scheme is not one of the web.
    #[error("\"{0}\" is neither http nor https")]
    Scheme(String),
    /// No host can be read in it.
    #[error(
        "\"{0}\" is no host: write a name, an address or *.name, with a port if it is not the default"
    )]
    NoHost(String),
    /// Hosts of many owners lie below it.
    #[error("\"*.{0}\" covers hosts of many owners: {0} is a public suffix")]
    PublicSuffix(String),
}

impl HostPattern {
    /// Whether a request for this URL goes to such a host.
    pub fn matches(&self, url: &Url) -> bool {
        let Some(name) = url.host_str() else {
            return false;
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_of_name = if self.below {
            name.strip_suffix(self.name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        } else {
            name == self.name
        };
        is_of_name
            && self.scheme.as_deref().is_none_or(|own| own == url.scheme())
            && match self.port {
                Some(port) => url.port_or_known_default() == Some(port),
                None => url.port().is_none(),
            }
    }

    /// Whether what is secret may be said in a request for a URL that matches: where nobody reads along, or where the operator wrote
    /// that http is meant. So no redirect from https to http can lead a password into the open.
    pub(in crate::fetch) fn may_carry_secrets(&self, secrecy: Secrecy) -> bool {
        secrecy == Secrecy::Kept || self.scheme.is_some()
    }

    pub(super) fn rank(&self) -> Rank {
        (
            !self.below,
            self.name.len(),
            self.port.is_some(),
            self.scheme.is_some(),
        )
    }
}

/// Whether somebody on its way can read a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fetch) enum Secrecy {
    /// Nobody can: it goes over https, or stays on this machine.
    Kept,
    /// Who is on its way can, a proxy too.
    Open,
}

impl Secrecy {
    /// Of a request for this URL, by the direct way or by a proxy.
    pub(in crate::fetch) fn of(url: &Url, is_direct: bool) -> Secrecy {
        match url.scheme() == "https" || (is_direct && is_loopback(url)) {
            true => Secrecy::Kept,
            false => Secrecy::Open,
        }
    }
}

/// Whether a request stays on this machine (W3C Secure Contexts §3.1): our resolver takes `localhost` for nothing else.
pub(in crate::fetch) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => Ipv4Addr::is_loopback(&ip),
        Some(Host::Ipv6(ip)) => Ipv6Addr::is_loopback(&ip),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<HostPattern, PatternError> {
        if text.contains('@') {
            return Err(PatternError::Userinfo);
        }
        let no_host = || PatternError::NoHost(text.to_owned());
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        if let Some(other) = scheme
            .as_deref()
            .filter(|s| !matches!(*s, "http" | "https"))
        {
            return Err(PatternError::Scheme(other.to_owned()));
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '\\', '?', '#']) {
            return Err(PatternError::MoreThanAHost(text.to_owned()));
        }
        let (below, rest) = match rest.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let assumed = scheme.as_deref().unwrap_or("https");
        let url = Url::parse(&format!("{assumed}://{rest}/")).map_err(|_| no_host())?;
        let name = url.host_str().unwrap_or_default();
        let name = name.strip_suffix('.').unwrap_or(name).to_owned();
        let is_name = matches!(url.host(), Some(Host::Domain(_)));
        if name.is_empty() || name.contains('*') || (below && !is_name) {
            return Err(no_host());
        }
        if below && is_public_suffix(&name) {
            return Err(PatternError::PublicSuffix(name));
        }
        // The parser leaves the default port of the assumed scheme out, which without a scheme is a port all the same.
        let port = match (&scheme, url.port()) {
            (None, None) if rest.ends_with(":443") => Some(443),
            (_, port) => port,
        };
        Ok(HostPattern {
            scheme,
            name,
            below,
            port,
        })
    }
}

/// Whether a name is a suffix on the list of them (publicsuffix.org, private part included), not just one label.
pub(in crate::fetch) fn is_public_suffix(name: &str) -> bool {
    psl::suffix(name.as_bytes())
        .is_some_and(|suffix| suffix.is_known() && suffix.as_bytes() == name.as_bytes())
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scheme) = &self.scheme {
            write!(f, "{scheme}://")?;
        }
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, url: &str) -> bool {
        let pattern: HostPattern = pattern.parse().unwrap();
        pattern.matches(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_name_is_that_host_at_its_default_ports_alone() {
        for url in [
            "http://a.example/",
            "https://a.example/x",
            "https://A.example.:443/",
        ] {
            assert!(matches("a.example", url), "{url}");
        }
        for url in [
            "https://a.example:8443/",
            "https://b.a.example/",
            "https://xa.example/",
        ] {
            assert!(!matches("a.example", url), "{url}");
        }
    }

    #[test]
    fn a_port_and_a_scheme_narrow_it() {
        assert!(matches("localhost:8080", "http://localhost:8080/"));
        assert!(!matches("localhost:8080", "http://localhost:8081/"));
        assert!(matches("a.example:443", "https://a.example/"));
        assert!(!matches("a.example:443", "http://a.example/"));
        assert!(matches("http://a.example", "http://a.example/"));
        assert!(!matches("http://a.example/", "https://a.example/"));
        assert!(matches("[::1]:80", "http://[0:0::1]/"));
        assert!(matches("bücher.example", "https://xn--bcher-kva.example/"));
    }

    #[test]
    fn a_star_is_all_below_a_name_and_not_the_name() {
        assert!(matches("*.example.org", "https://a.example.org/"));
        assert!(matches("*.example.org", "https://a.b.example.org/"));
        for url in [
            "https://example.org/",
            "https://badexample.org/",
            "https://.example.org/",
        ] {
            assert!(!matches("*.example.org", url), "{url}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused_and_a_password_not_repeated() {
        let refused = |text: &str| text.parse::<HostPattern>().unwrap_err();
        assert_eq!(
            refused("https://me:hunter2@a.example"),
            PatternError::Userinfo
        );
        assert!(matches!(
            refused("a.example/x"),
            PatternError::MoreThanAHost(_)
        ));
        assert!(matches!(
            refused("ftp://a.example"),
            PatternError::Scheme(_)
        ));
        for text in [
            "",
            "*",
            "*.",
            "a.*.example",
            "*.127.0.0.1",
            "a.example:99999",
            "a b",
        ] {
            assert!(matches!(refused(text), PatternError::NoHost(_)), "{text}");
        }
        for text in ["*.com", "*.co.uk", "*.github.io"] {
            assert!(
                matches!(refused(text), PatternError::PublicSuffix(_)),
                "{text}"
            );
        }
        assert!("*.internal".parse::<HostPattern>().is_ok());
    }

    #[test]
    fn secrets_go_over_http_only_where_http_was_written_or_to_this_machine() {
        let may = |pattern: &str, url: &str| {
            let pattern: HostPattern = pattern.parse().unwrap();
            pattern.may_carry_secrets(Secrecy::of(&Url::parse(url).unwrap(), true))
        };
        assert!(may("a.example", "https://a.example/"));
        assert!(!may("a.example", "http://a.example/"));
        assert!(may("http://a.example", "http://a.example/"));
        assert!(may("localhost:8080", "http://localhost:8080/"));
        assert!(may("127.0.0.1:8080", "http://127.0.0.1:8080/"));
        let through_a_proxy = |url: &str| Secrecy::of(&Url::parse(url).unwrap(), false);
        assert_eq!(through_a_proxy("http://localhost:8080/"), Secrecy::Open);
        assert_eq!(through_a_proxy("https://localhost:8080/"), Secrecy::Kept);
    }

    #[test]
    fn a_pattern_is_shown_as_it_is_read() {
        for text in [
            "a.example",
            "*.a.example:8080",
            "http://[::1]:8080",
            "a.example:443",
        ] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), text);
        }
    }
}
