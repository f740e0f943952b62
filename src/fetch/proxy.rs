//! Which proxy a request goes through, and under which label it is recorded.
//!
//! A proxy named by the operator takes every request. Without one the environment's are used, read
//! by us and not by reqwest, so that the page's row can say so: their label is `env`. As curl and Go
//! have it: the lower-case variable wins, `HTTP_PROXY` is ignored in a CGI program (a client's
//! `Proxy:` header would set it), `NO_PROXY` names hosts, suffixes, addresses and networks. This
//! machine itself is never asked through the environment's proxy.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use url::{Host, Url};

use super::FetchError;

/// The label of proxies that the environment names.
const ENVIRONMENT_LABEL: &str = "env";

/// The environment's proxies, as text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyEnvironment {
    /// For `http` URLs.
    pub http: Option<String>,
    /// For `https` URLs.
    pub https: Option<String>,
    /// For URLs that the two above have none for.
    pub all: Option<String>,
    /// Hosts that are asked directly, separated by commas.
    pub none: Option<String>,
}

impl ProxyEnvironment {
    /// Reads the variables `http_proxy`, `https_proxy`, `all_proxy`, `no_proxy` through `variable`
    /// (`|name| std::env::var(name).ok()`), in lower case first. An empty one counts as unset.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> ProxyEnvironment {
        let either = |name: &str| {
            let lower = variable(name).filter(|value| !value.trim().is_empty());
            lower.or_else(|| {
                let forged = name == "http_proxy" && variable("REQUEST_METHOD").is_some();
                let upper = if forged {
                    None
                } else {
                    variable(&name.to_ascii_uppercase())
                };
                upper.filter(|value| !value.trim().is_empty())
            })
        };
        ProxyEnvironment {
            http: either("http_proxy"),
            https: either("https_proxy"),
            all: either("all_proxy"),
            none: either("no_proxy"),
        }
    }
}

impl fmt::Debug for ProxyEnvironment {
    /// Leaves out credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &Option<String>| text.as_deref().map(without_credentials);
        f.debug_struct("ProxyEnvironment")
            .field("http", &shown(&self.http))
            .field("https", &shown(&self.https))
            .field("all", &shown(&self.all))
            .field("none", &self.none)
            .finish()
    }
}

/// A proxy with its label.
#[derive(Clone)]
pub(super) struct Upstream {
    pub(super) label: Arc<str>,
    pub(super) url: Url,
}

impl Upstream {
    /// Reads `URL` or `label=URL`; a missing scheme is `http`, the default label `host:port`.
    ///
    /// # Errors
    /// [`FetchError::Setting`] for another scheme or no host; it shows no credentials.
    pub(super) fn parse(text: &str) -> Result<Upstream, FetchError> {
        let text = text.trim();
        let scheme_end = text.find("://").unwrap_or(text.len());
        let (label, address) = match text[..scheme_end].split_once('=') {
            Some((label, _)) => (Some(label.trim()), text[label.len() + 1..].trim()),
            None => (None, text),
        };
        let wrong = |reason: &str| FetchError::Setting {
            key: "proxy",
            reason: format!("{}: {reason}", without_credentials(address)),
        };
        let full = if address.contains("://") {
            address.to_owned()
        } else {
            format!("http://{address}")
        };
        let url = Url::parse(&full).map_err(|error| wrong(&error.to_string()))?;
        let default_port = match url.scheme() {
            "http" => 80,
            "https" => 443,
            "socks5" | "socks5h" => 1080,
            _ => return Err(wrong("a proxy is http, https, socks5 or socks5h")),
        };
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| wrong("no host"))?;
        let label = match label {
            Some("") => return Err(wrong("the label is empty")),
            Some(label) => label.to_owned(),
            None => format!("{host}:{}", url.port().unwrap_or(default_port)),
        };
        Ok(Upstream {
            label: label.into(),
            url,
        })
    }

    fn of_environment(text: &str) -> Result<Upstream, FetchError> {
        let upstream = Upstream::parse(text)?;
        Ok(Upstream {
            label: ENVIRONMENT_LABEL.into(),
            ..upstream
        })
    }
}

/// What of a proxy's text may be shown: not what stands before the last `@` of its authority.
pub(super) fn without_credentials(text: &str) -> String {
    let start = text
        .find("://")
        .map_or_else(|| text.find('=').map_or(0, |at| at + 1), |at| at + 3);
    match text[start..].rfind('@') {
        Some(at) => format!("{}{}", &text[..start], &text[start + at + 1..]),
        None => text.to_owned(),
    }
}

/// Which way a URL goes; an index into the list of proxies, none for the direct way.
#[derive(Default)]
pub(super) struct Routes {
    everything: Option<usize>,
    http: Option<usize>,
    https: Option<usize>,
    bypass: Bypass,
}

impl Routes {
    /// Reads the settings' proxies; returns them in the order of the indices.
    ///
    /// # Errors
    /// [`FetchError::Setting`] for one that cannot be read.
    pub(super) fn new(
        proxy: Option<&str>,
        environment: &ProxyEnvironment,
    ) -> Result<(Routes, Vec<Upstream>), FetchError> {
        if let Some(text) = proxy {
            let routes = Routes {
                everything: Some(0),
                ..Routes::default()
            };
            return Ok((routes, vec![Upstream::parse(text)?]));
        }
        let mut upstreams = Vec::new();
        let mut add = |text: &Option<String>| -> Result<Option<usize>, FetchError> {
            let Some(text) = text.as_deref().or(environment.all.as_deref()) else {
                return Ok(None);
            };
            upstreams.push(Upstream::of_environment(text)?);
            Ok(Some(upstreams.len() - 1))
        };
        let (http, https) = (add(&environment.http)?, add(&environment.https)?);
        let bypass = Bypass::parse(environment.none.as_deref().unwrap_or_default());
        Ok((
            Routes {
                everything: None,
                http,
                https,
                bypass,
            },
            upstreams,
        ))
    }

    pub(super) fn choose(&self, url: &Url) -> Option<usize> {
        if self.everything.is_some() {
            return self.everything;
        }
        let proxy = if url.scheme() == "https" {
            self.https
        } else {
            self.http
        };
        proxy.filter(|_| !self.bypass.covers(url))
    }
}

/// `NO_PROXY`.
#[derive(Debug, Default)]
struct Bypass {
    everything: bool,
    networks: Vec<IpNet>,
    /// Lower-case, without a leading dot, with the port if one is named.
    names: Vec<(String, Option<u16>)>,
}

impl Bypass {
    fn parse(text: &str) -> Bypass {
        let mut bypass = Bypass::default();
        for entry in text
            .split([',', ' '])
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let bare = entry.trim_start_matches('[').trim_end_matches(']');
            if entry == "*" {
                bypass.everything = true;
            } else if let Ok(ip) = bare.parse::<IpAddr>() {
                bypass.networks.push(ip.into());
            } else if let Ok(network) = entry.parse::<IpNet>() {
                bypass.networks.push(network);
            } else {
                let (name, port) = match entry.rsplit_once(':') {
                    Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.parse().ok()),
                    _ => (entry, None),
                };
                let name = name.trim_start_matches("*.").trim_start_matches('.');
                bypass.names.push((name.to_ascii_lowercase(), port));
            }
        }
        bypass
    }

    fn covers(&self, url: &Url) -> bool {
        if self.everything {
            return true;
        }
        let ip: IpAddr = match url.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            Some(Host::Domain(name)) => return self.covers_name(name, url.port_or_known_default()),
            None => return false,
        };
        ip.is_loopback()
            || self.networks.iter().any(|network| network.contains(&ip))
            || self.covers_name(&ip.to_string(), url.port_or_known_default())
    }

    fn covers_name(&self, host: &str, port: Option<u16>) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        if host == "localhost" || host.ends_with(".localhost") {
            return true;
        }
        self.names.iter().any(|(name, named_port)| {
            let below = || {
                host.strip_suffix(name.as_str())
                    .is_some_and(|head| head.ends_with('.'))
            };
            (host == name || below()) && (named_port.is_none() || *named_port == port)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> ProxyEnvironment {
        ProxyEnvironment::read(|name| {
            pairs
                .iter()
                .find(|pair| pair.0 == name)
                .map(|pair| pair.1.to_owned())
        })
    }

    fn direct(environment: &ProxyEnvironment, url: &str) -> bool {
        let (routes, _) = Routes::new(None, environment).unwrap();
        routes.choose(&Url::parse(url).unwrap()).is_none()
    }

    #[test]
    fn the_label_is_the_operator_s_or_host_and_port_and_never_shows_credentials() {
        for (text, label, url) in [
            (
                "http://u:p@proxy.test:3128",
                "proxy.test:3128",
                "http://u:p@proxy.test:3128/",
            ),
            (
                "proxy.test:3128",
                "proxy.test:3128",
                "http://proxy.test:3128/",
            ),
            (
                "https://proxy.test",
                "proxy.test:443",
                "https://proxy.test/",
            ),
            ("socks5h://[::1]", "[::1]:1080", "socks5h://[::1]"),
            (
                "exit1=socks5://u:p=@10.0.0.1:9",
                "exit1",
                "socks5://u:p%3D@10.0.0.1:9",
            ),
            ("home = proxy.test", "home", "http://proxy.test/"),
        ] {
            let upstream = Upstream::parse(text).unwrap();
            assert_eq!(
                (&*upstream.label, upstream.url.as_str()),
                (label, url),
                "{text}"
            );
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_is_refused_without_showing_its_password() {
        for text in [
            "ftp://u:secret@h",
            "http://u:secret@",
            "=http://u:secret@h",
            "http://u:secret@h:x",
        ] {
            let complaint = Upstream::parse(text)
                .map(|u| u.label)
                .unwrap_err()
                .to_string();
            assert!(!complaint.contains("secret"), "{complaint}");
        }
    }

    #[test]
    fn the_environment_is_read_in_lower_case_first_and_not_from_a_cgi_client() {
        let both = [
            ("http_proxy", "a"),
            ("HTTP_PROXY", "b"),
            ("HTTPS_PROXY", "c"),
            ("ALL_PROXY", " "),
        ];
        let read = environment(&both);
        assert_eq!(
            (read.http.as_deref(), read.https.as_deref(), read.all),
            (Some("a"), Some("c"), None)
        );
        assert_eq!(
            environment(&[("HTTP_PROXY", "b"), ("REQUEST_METHOD", "GET")]).http,
            None
        );
    }

    #[test]
    fn each_scheme_has_its_proxy_and_all_proxy_fills_the_gaps() {
        let environment = environment(&[("http_proxy", "one.test"), ("all_proxy", "two.test")]);
        let (routes, upstreams) = Routes::new(None, &environment).unwrap();
        let host = |url: &str| {
            let index = routes.choose(&Url::parse(url).unwrap()).unwrap();
            assert_eq!(&*upstreams[index].label, "env");
            upstreams[index].url.host_str().unwrap().to_owned()
        };
        assert_eq!(host("http://example.org/"), "one.test");
        assert_eq!(host("https://example.org/"), "two.test");
    }

    #[test]
    fn no_proxy_names_hosts_suffixes_ports_addresses_and_networks() {
        let environment = environment(&[
            ("all_proxy", "proxy.test"),
            (
                "no_proxy",
                "example.org, .inner.test,host.test:8080 10.0.0.0/8,192.0.2.7,[2001:db8::1]",
            ),
        ]);
        for url in [
            "http://example.org/",
            "https://www.example.org/",
            "http://a.inner.test/",
            "http://host.test:8080/",
            "http://10.9.8.7/",
            "http://192.0.2.7/",
            "http://[2001:db8::1]/",
            "http://localhost/",
            "http://127.0.0.1:99/",
            "http://[::1]/",
            "http://a.localhost/",
        ] {
            assert!(direct(&environment, url), "{url}");
        }
        for url in [
            "http://badexample.org/",
            "http://host.test/",
            "http://11.0.0.1/",
            "http://192.0.2.8/",
        ] {
            assert!(!direct(&environment, url), "{url}");
        }
    }

    #[test]
    fn a_proxy_of_the_operator_takes_every_request() {
        let environment = environment(&[("no_proxy", "*")]);
        let (routes, _) = Routes::new(Some("p.test"), &environment).unwrap();
        assert_eq!(
            routes.choose(&Url::parse("http://127.0.0.1/").unwrap()),
            Some(0)
        );
    }
}
