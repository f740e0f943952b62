//! Which proxy a request goes through, and under which label it is recorded.
//!
//! Proxies named by the operator take every request, each in its turn ([`Rotation`]); an entry of a
//! host may name one, or none. Without any the environment's are used, read by us and not by reqwest,
//! so that the page's row can say so: their label is `env`. As curl and Go have it: the lower-case
//! variable wins, `HTTP_PROXY` is ignored in a CGI program (a client's `Proxy:` header would set it),
//! `NO_PROXY` names hosts, suffixes, addresses and networks. This machine itself is never asked
//! through the environment's proxy.
//!
//! A proxy that fails rests, longer each time, and comes back with the next request after that
//! (`health`); meanwhile others take its place (`pool`). What it says of itself and what of the host
//! behind it is told apart in `verdict`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use self::bypass::Bypass;
use super::{FetchError, FetchSettings};

mod bypass;
mod health;
mod pool;
mod verdict;

pub use health::{ProxyReport, ProxyState};
pub use pool::Rotation;
pub(super) use pool::{Pass, Pool};
pub use verdict::Blame;
pub(super) use verdict::{Said, believed, of_headers, of_words};

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
        match label_end(text) {
            Some(at) => Upstream::read(Some(text[..at].trim()), text[at + 1..].trim()),
            None => Upstream::read(None, text),
        }
    }

    fn read(label: Option<&str>, address: &str) -> Result<Upstream, FetchError> {
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
        let default_port = default_port(url.scheme())
            .ok_or_else(|| wrong("a proxy is http, https, socks5 or socks5h"))?;
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| wrong("no host"))?;
        let label = match label {
            Some("") => return Err(wrong("the label is empty")),
            Some(ProxyChoice::DIRECT) => {
                return Err(wrong("the label direct means no proxy at all"));
            }
            Some(label) => label.to_owned(),
            None => format!("{host}:{}", url.port().unwrap_or(default_port)),
        };
        Ok(Upstream {
            label: label.into(),
            url,
        })
    }

    /// Whether the proxy may answer a request for this URL in the host's place: it reads http itself.
    pub(super) fn answers(&self, url: &Url) -> bool {
        url.scheme() == "http" && matches!(self.url.scheme(), "http" | "https")
    }

    /// Whether something listens at its address, a moment after a connection through it failed.
    pub(super) async fn is_there(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port().unwrap_or_else(|| self.default_port());
        let connecting = tokio::net::TcpStream::connect((host, port));
        matches!(tokio::time::timeout(LOOK, connecting).await, Ok(Ok(_)))
    }

    fn default_port(&self) -> u16 {
        default_port(self.url.scheme()).unwrap_or(80)
    }

    fn of_environment(text: &str) -> Result<Upstream, FetchError> {
        // Without a label, as for all others who read it: a `=` there is of the user's name or password.
        let upstream = Upstream::read(None, text.trim())?;
        Ok(Upstream {
            label: ENVIRONMENT_LABEL.into(),
            ..upstream
        })
    }
}

/// How long a look at a proxy takes at most.
const LOOK: Duration = Duration::from_secs(2);

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        "socks5" | "socks5h" => Some(1080),
        _ => None,
    }
}

/// Where the `=` of `label=URL` is. What holds a `:` or an `@` is no label, but a URL without its scheme.
fn label_end(text: &str) -> Option<usize> {
    let scheme = text.find("://").unwrap_or(text.len());
    text[..scheme]
        .find('=')
        .filter(|at| !text[..*at].contains([':', '@']))
}

/// What of a proxy's text may be shown: not what stands before the last `@` of its authority.
pub(super) fn without_credentials(text: &str) -> String {
    let start = text
        .find("://")
        .map_or_else(|| label_end(text).map_or(0, |at| at + 1), |at| at + 3);
    match text[start..].rfind('@') {
        Some(at) => format!("{}{}", &text[..start], &text[start + at + 1..]),
        None => text.to_owned(),
    }
}

/// The way that an entry of a host asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyChoice {
    /// No proxy, whatever there is.
    Direct,
    /// The one with this label.
    Label(String),
}

impl ProxyChoice {
    /// The word for the direct way; no proxy can have it for a label.
    pub const DIRECT: &'static str = "direct";

    /// Reads a label, or `direct`.
    pub fn of(text: &str) -> ProxyChoice {
        match text {
            ProxyChoice::DIRECT => ProxyChoice::Direct,
            label => ProxyChoice::Label(label.to_owned()),
        }
    }
}

impl fmt::Display for ProxyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProxyChoice::Direct => ProxyChoice::DIRECT,
            ProxyChoice::Label(label) => label,
        })
    }
}

/// Says which way a URL goes.
pub(super) struct Routes {
    /// The indices of those that take turns.
    rotating: Vec<usize>,
    http: Option<usize>,
    https: Option<usize>,
    bypass: Bypass,
    labels: Vec<Arc<str>>,
}

impl Routes {
    /// Reads the settings' proxies; returns them in the order of the indices.
    ///
    /// # Errors
    /// [`FetchError::Setting`] for one that cannot be read, and for two of one label.
    pub(super) fn new(settings: &FetchSettings) -> Result<(Routes, Vec<Upstream>), FetchError> {
        let mut upstreams: Vec<Upstream> = Vec::new();
        let mut add = |upstream: Upstream| {
            let double = upstream.label != ENVIRONMENT_LABEL.into()
                && upstreams.iter().any(|known| known.label == upstream.label);
            if double {
                let reason = format!("there are two with the label {}", upstream.label);
                return Err(FetchError::Setting {
                    key: "proxy",
                    reason,
                });
            }
            upstreams.push(upstream);
            Ok(upstreams.len() - 1)
        };
        let mut rotating = Vec::new();
        for text in &settings.proxies {
            rotating.push(add(Upstream::parse(text)?)?);
        }
        for text in &settings.named_proxies {
            add(Upstream::parse(text)?)?;
        }
        let environment = &settings.proxy_environment;
        let mut of_environment = |text: &Option<String>| -> Result<Option<usize>, FetchError> {
            match text.as_deref().or(environment.all.as_deref()) {
                Some(text) if settings.proxies.is_empty() => {
                    Ok(Some(add(Upstream::of_environment(text)?)?))
                }
                _ => Ok(None),
            }
        };
        let http = of_environment(&environment.http)?;
        let https = of_environment(&environment.https)?;
        let routes = Routes {
            rotating,
            http,
            https,
            bypass: Bypass::parse(environment.none.as_deref().unwrap_or_default()),
            labels: upstreams
                .iter()
                .map(|upstream| Arc::clone(&upstream.label))
                .collect(),
        };
        for choice in settings.hosts.proxies() {
            routes.labelled(choice)?;
        }
        Ok((routes, upstreams))
    }

    /// The indices of the proxies that may take a request; none for the direct way.
    pub(super) fn candidates(&self, url: &Url, choice: Option<&ProxyChoice>) -> Vec<usize> {
        if let Some(choice) = choice {
            return self.labelled(choice).ok().flatten().into_iter().collect();
        }
        if !self.rotating.is_empty() {
            return self.rotating.clone();
        }
        let proxy = if url.scheme() == "https" {
            self.https
        } else {
            self.http
        };
        proxy
            .filter(|_| !self.bypass.covers(url))
            .into_iter()
            .collect()
    }

    fn labelled(&self, choice: &ProxyChoice) -> Result<Option<usize>, FetchError> {
        let ProxyChoice::Label(label) = choice else {
            return Ok(None);
        };
        let found = self.labels.iter().position(|known| **known == **label);
        found.map(Some).ok_or_else(|| FetchError::Setting {
            key: "hosts.proxy",
            reason: format!("no proxy has the label {label}"),
        })
    }
}

/// Rests of a proxy after its first, second, … failure in a row; the last stays.
pub(super) fn default_rests() -> Vec<Duration> {
    [10, 30, 120, 600].map(Duration::from_secs).to_vec()
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

    fn only_environment(environment: &ProxyEnvironment) -> FetchSettings {
        FetchSettings {
            proxy_environment: environment.clone(),
            ..FetchSettings::default()
        }
    }

    fn direct(environment: &ProxyEnvironment, url: &str) -> bool {
        let (routes, _) = Routes::new(&only_environment(environment)).unwrap();
        routes
            .candidates(&Url::parse(url).unwrap(), None)
            .is_empty()
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
            (
                "user:pa=ss@h.test:3128",
                "h.test:3128",
                "http://user:pa%3Dss@h.test:3128/",
            ),
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
    fn an_equals_sign_in_a_proxy_of_the_environment_is_of_its_password() {
        for text in ["user:se=cret@h.test", "se=cret@h.test"] {
            let upstream = Upstream::of_environment(text).unwrap();
            assert_eq!(upstream.url.host_str(), Some("h.test"), "{text}");
            assert_eq!(&*upstream.label, "env");
        }
        let shown = format!(
            "{:?}",
            environment(&[("http_proxy", "user:se=cret@h.test")])
        );
        assert!(!shown.contains("se=") && !shown.contains("cret"), "{shown}");
    }

    #[test]
    fn each_scheme_has_its_proxy_and_all_proxy_fills_the_gaps() {
        let environment = environment(&[("http_proxy", "one.test"), ("all_proxy", "two.test")]);
        let (routes, upstreams) = Routes::new(&only_environment(&environment)).unwrap();
        let host = |url: &str| {
            let index = routes.candidates(&Url::parse(url).unwrap(), None)[0];
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
    fn proxies_of_the_operator_take_every_request_but_those_of_hosts_with_another_choice() {
        let url = Url::parse("http://127.0.0.1/").unwrap();
        let settings = FetchSettings {
            proxies: vec!["a=p.test".to_owned(), "b=q.test".to_owned()],
            named_proxies: vec!["c=r.test".to_owned()],
            ..only_environment(&environment(&[("no_proxy", "*"), ("http_proxy", "e.test")]))
        };
        let (routes, upstreams) = Routes::new(&settings).unwrap();
        assert_eq!(
            (routes.candidates(&url, None), upstreams.len()),
            (vec![0, 1], 3)
        );
        let of = |choice: &str| routes.candidates(&url, Some(&ProxyChoice::of(choice)));
        assert_eq!(of("c"), [2]);
        assert_eq!(of("direct"), [0; 0]);
    }

    #[test]
    fn two_proxies_of_one_label_are_refused() {
        let settings = FetchSettings {
            proxies: vec!["a=p.test".to_owned(), "a=q.test".to_owned()],
            ..FetchSettings::default()
        };
        let complaint = Routes::new(&settings).map(|_| ()).unwrap_err().to_string();
        assert_eq!(complaint, "proxy: there are two with the label a");
    }
}
