//! Proxies: the list of `[proxies]` with a label each, and which of them `fetch.proxy` chooses.
//!
//! What stands for a proxy is a secret, since it may hold a password: it is written out, or is `env:NAME` or `file:/path`. `[proxies]` stands
//! beside [`super::KEYS`], since its keys are the operator's own.

use secrecy::{ExposeSecret, SecretString};
use toml::Value;
use toml::de::DeValue;
use url::Url;

use super::secret::{Secret, Variables};
use super::setting::{redact, split_label};
use super::{Config, Origin, Problem, Problems, Sessions, Setting, nearest, setting};
use crate::fetch::{ProxyChoice, ProxyEnvironment};

/// The table of the file.
pub(super) const PROXIES: &str = "proxies";

const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// An entry of `[proxies]`.
#[derive(Debug, Clone)]
pub struct NamedProxy {
    /// Its label.
    pub label: String,
    /// Its URL.
    pub url: Secret,
    /// Where it stands.
    pub origin: Option<Origin>,
}

/// What `fetch.proxy` chooses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProxyList(Vec<Chosen>);

#[derive(Debug, Clone, PartialEq)]
enum Chosen {
    /// `direct`, or a label of `[proxies]`.
    Word(String),
    /// A proxy of its own, with `label=` in front if it has one.
    Own { label: String, url: Secret },
}

impl Chosen {
    fn read(text: &str) -> Chosen {
        let is_place = text.starts_with("env:") || text.starts_with("file:");
        let (label, rest) = if is_place {
            ("", text)
        } else {
            split_label(text)
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        match Secret::of(rest) {
            Secret::Literal(_) if label.is_empty() && rest.chars().all(is_word) => {
                Chosen::Word(rest.to_owned())
            }
            url => Chosen::Own {
                label: label.to_owned(),
                url,
            },
        }
    }

    fn show(&self) -> String {
        match self {
            Chosen::Word(word) => word.clone(),
            Chosen::Own { label, url } => format!("{label}{}", show(url)),
        }
    }
}

/// The place, or the URL without its password.
fn show(secret: &Secret) -> String {
    match secret {
        Secret::Literal(text) => redact(text.expose_secret()),
        place => place.to_string(),
    }
}

impl Setting for ProxyList {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        // A value itself stays out of the complaint.
        let wrong = || Err("expected a URL, a label of [proxies], or a list of them".to_owned());
        match (value.as_str(), value.as_array()) {
            (Some("none"), _) => Ok(ProxyList::default()),
            (Some(text), _) if !text.is_empty() => Ok(ProxyList(vec![Chosen::read(text)])),
            (_, Some(values)) => {
                let texts = values.iter().map(|value| value.get_ref().as_str());
                let all: Option<Vec<Chosen>> = texts.map(|text| text.map(Chosen::read)).collect();
                all.map_or_else(wrong, |all| Ok(ProxyList(all)))
            }
            _ => wrong(),
        }
    }

    fn read_text(text: &str) -> Result<Self, String> {
        match text.starts_with('[') {
            true => match DeValue::parse(text) {
                Ok(value) => Self::read(value.get_ref()),
                Err(_) => Err("expected a list like [\"a\", \"b\"]".to_owned()),
            },
            false => Self::read(&DeValue::String(text.into())),
        }
    }

    fn write(&self) -> Value {
        let text = |chosen: &Chosen| Value::String(chosen.show());
        match &self.0[..] {
            [] => Value::String("none".into()),
            [one] => text(one),
            several => Value::Array(several.iter().map(text).collect()),
        }
    }
}

impl NamedProxy {
    /// Reads an entry.
    ///
    /// # Errors
    ///
    /// What is wrong with its label or its value, which is not shown.
    pub(super) fn read(label: &str, value: &DeValue<'_>) -> Result<NamedProxy, String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if label.is_empty() || !label.chars().all(is_word) {
            return Err(format!(
                "\"{label}\" is no label: letters, digits, `-` and `_`"
            ));
        }
        if label == ProxyChoice::DIRECT || label == "none" {
            return Err(format!(
                "{label} is no label: it means that no proxy is asked"
            ));
        }
        Ok(NamedProxy {
            label: label.to_owned(),
            url: Secret::read(value)?,
            origin: None,
        })
    }

    /// Its value as TOML, without a password.
    pub fn show(&self) -> Value {
        Value::String(show(&self.url))
    }
}

/// Says whether a text is a proxy's URL.
fn is_proxy(text: &SecretString) -> bool {
    Url::parse(text.expose_secret()).is_ok_and(|url| {
        SCHEMES.contains(&url.scheme()) && url.host_str().is_some_and(|host| !host.is_empty())
    })
}

fn is_literal_proxy(secret: &Secret) -> bool {
    match secret {
        Secret::Literal(text) => is_proxy(text),
        _ => true,
    }
}

const NO_PROXY: &str = "must be an http, https, socks5 or socks5h URL";

/// What is wrong with the entries of `[proxies]`.
pub(super) fn check(config: &Config) -> Vec<Problem> {
    let wrong = config
        .proxies
        .iter()
        .filter(|entry| !is_literal_proxy(&entry.url));
    wrong
        .map(|entry| Problem {
            place: entry.origin.as_ref().map(ToString::to_string),
            message: format!("{PROXIES}.{}: {NO_PROXY}", entry.label),
            hint: Some("or env:NAME or file:/path, where it stands".to_owned()),
        })
        .collect()
}

/// What is wrong with the choice of `fetch.proxy`: message and hint.
pub(super) fn check_choice(config: &Config) -> Option<(String, String)> {
    let chosen = &config.fetch.proxy.0;
    chosen.iter().find_map(|chosen| match chosen {
        Chosen::Own { url, .. } => (!is_literal_proxy(url)).then(|| {
            let hint = "for example \"socks5h://127.0.0.1:9050\"";
            (format!("{NO_PROXY}, or label=URL"), hint.to_owned())
        }),
        Chosen::Word(word) if word == ProxyChoice::DIRECT => {
            (config.fetch.proxy.0.len() > 1).then(|| {
                let hint = "direct stands alone, and means that no proxy is asked";
                ("there is direct among proxies".to_owned(), hint.to_owned())
            })
        }
        Chosen::Word(word) => {
            let labels = || config.proxies.iter().map(|entry| entry.label.as_str());
            let near = || match nearest(word, labels()) {
                Some(near) => format!("did you mean {near}?"),
                None => "for example \"socks5h://127.0.0.1:9050\"".to_owned(),
            };
            let known = labels().any(|label| label == word);
            (!known).then(|| {
                (
                    format!("\"{word}\" is neither a URL nor a label of [{PROXIES}]"),
                    near(),
                )
            })
        }
    })
}

/// Proxies as the fetcher takes them.
struct Proxies {
    rotating: Vec<String>,
    named: Vec<String>,
    /// Whether those of the environment count, if there are no others.
    environment: bool,
}

/// Everything about requests that stands outside of the configuration: secrets and cookies, ways, and the environment's proxies.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// What requests carry.
    pub sessions: Sessions,
    /// The proxies that take turns, `label=URL` or a URL, with their credentials.
    pub proxies: Vec<String>,
    /// Those that only hosts of their own go through.
    pub named_proxies: Vec<String>,
    /// The environment's, where the operator named none.
    pub proxy_environment: ProxyEnvironment,
}

impl std::fmt::Debug for Surroundings {
    /// Leaves all of it out: the proxies are with their passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

impl Config {
    /// Looks up secrets, cookies and proxies. `now` in seconds since 1970.
    ///
    /// # Errors
    ///
    /// Everything that cannot be had or read.
    pub fn surroundings(
        &self,
        variables: Variables<'_>,
        now: i64,
    ) -> Result<Surroundings, Problems> {
        let mut problems = Vec::new();
        let sessions = self.sessions(variables, now).unwrap_or_else(|found| {
            problems.extend(found.0);
            Sessions::default()
        });
        let proxies = self.reveal_proxies(variables).unwrap_or_else(|found| {
            problems.extend(found);
            Proxies {
                rotating: Vec::new(),
                named: Vec::new(),
                environment: false,
            }
        });
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        Ok(Surroundings {
            sessions,
            proxies: proxies.rotating,
            named_proxies: proxies.named,
            proxy_environment: match proxies.environment {
                true => ProxyEnvironment::read(variables),
                false => ProxyEnvironment::default(),
            },
        })
    }

    fn reveal_proxies(&self, variables: Variables<'_>) -> Result<Proxies, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut reveal = |label: &str, url: &Secret, place: Option<&Origin>, key: String| {
            let found = url.reveal(variables).and_then(|url| match is_proxy(&url) {
                true => Ok(format!("{label}{}", url.expose_secret())),
                false => Err(NO_PROXY.to_owned()),
            });
            found
                .map_err(|message| {
                    problems.push(Problem {
                        place: place.map(ToString::to_string),
                        message: format!("{key}: {message}"),
                        hint: Some("a proxy is written out, or env:NAME, or file:/path".to_owned()),
                    });
                })
                .ok()
        };
        let mut listed = Vec::new();
        for entry in &self.proxies {
            let (label, key) = (
                format!("{}=", entry.label),
                format!("{PROXIES}.{}", entry.label),
            );
            let revealed = reveal(&label, &entry.url, entry.origin.as_ref(), key);
            listed.extend(revealed.map(|text| (entry.label.as_str(), text)));
        }
        let mut rotating = Vec::new();
        for chosen in &self.fetch.proxy.0 {
            match chosen {
                Chosen::Own { label, url } => {
                    rotating.extend(reveal(label, url, None, "fetch.proxy".to_owned()));
                }
                Chosen::Word(word) => {
                    let listed = listed.iter().filter(|(label, _)| label == word);
                    rotating.extend(listed.map(|(_, text)| text.clone()));
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let all = listed.into_iter().map(|(_, text)| text);
        let no_choice = self.fetch.proxy.0.is_empty();
        if no_choice {
            rotating = all.collect();
            return Ok(Proxies {
                environment: rotating.is_empty(),
                rotating,
                named: Vec::new(),
            });
        }
        let named = all.filter(|text| !rotating.contains(text)).collect();
        Ok(Proxies {
            rotating,
            named,
            environment: false,
        })
    }
}

/// Says whether a text may be a proxy's label: a word, or the `host:port` of one that was given none.
fn is_label(text: &str) -> bool {
    let is_plain = |text: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !text.is_empty() && text.chars().all(is_part)
    };
    match text.rsplit_once(':') {
        Some((host, port)) => {
            let is_host = is_plain(host) || (host.starts_with('[') && host.ends_with(']'));
            is_host && port.parse::<u16>().is_ok()
        }
        None => is_plain(text),
    }
}

/// The way to some hosts, in an entry of `[[hosts]]`.
impl Setting for ProxyChoice {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some(text) if is_label(text) => Ok(ProxyChoice::of(text)),
            // What is none might be a URL, with a password.
            _ => setting::expected_of_secret("a label of [proxies], or \"direct\"", value),
        }
    }

    fn write(&self) -> Value {
        Value::String(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Layers, Loaded};

    fn loaded(text: &str) -> Result<Loaded, Problems> {
        Layers::new().toml(Path::new("p.toml"), text).finish()
    }

    fn surroundings(text: &str) -> Surroundings {
        let variables = |name: &str| match name {
            "EXIT" => Some("socks5h://me:hunter2@exit.test:1".to_owned()),
            "http_proxy" => Some("http://env.test".to_owned()),
            _ => None,
        };
        loaded(text)
            .unwrap()
            .config
            .surroundings(&variables, 0)
            .unwrap()
    }

    const LIST: &str = "[proxies]\neu = \"http://me:hunter2@eu.test:3128\"\nus = \"env:EXIT\"\n";

    #[test]
    fn the_list_takes_turns_unless_some_are_chosen_and_the_environment_s_are_left() {
        let all = surroundings(LIST);
        let (eu, us) = (
            "eu=http://me:hunter2@eu.test:3128",
            "us=socks5h://me:hunter2@exit.test:1",
        );
        assert_eq!(all.proxies, [eu, us]);
        assert_eq!(all.proxy_environment, ProxyEnvironment::default());
        let one = surroundings(&format!("{LIST}[fetch]\nproxy = \"us\"\n"));
        assert_eq!(
            (one.proxies, one.named_proxies),
            (vec![us.to_owned()], vec![eu.to_owned()])
        );
        let own = surroundings(&format!(
            "{LIST}[fetch]\nproxy = [\"us\", \"x=http://x.test\"]\n"
        ));
        assert_eq!(own.proxies, [us, "x=http://x.test"]);
        let none = surroundings(&format!("{LIST}[fetch]\nproxy = \"direct\"\n"));
        assert_eq!((none.proxies.len(), none.named_proxies.len()), (0, 2));
        assert_eq!(none.proxy_environment, ProxyEnvironment::default());
        assert_eq!(
            surroundings("").proxy_environment.http.as_deref(),
            Some("http://env.test")
        );
    }

    #[test]
    fn no_password_is_shown_or_told() {
        let text =
            format!("{LIST}[fetch]\nproxy = [\"a=http://me:hunter2@a.test\", \"env:EXIT\"]\n");
        let config = loaded(&text).unwrap().config;
        let shown = format!(
            "{} {:?} {}",
            config.fetch.proxy.write(),
            config,
            config.proxies[0].show()
        );
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(
            shown.contains("a=http://me:***@a.test") && shown.contains("env:EXIT"),
            "{shown}"
        );
        for wrong in [
            "[proxies]\na = \"ftp://me:hunter2@a.test\"",
            "[proxies]\ndirect = \"http://me:hunter2@a.test\"",
            "[proxies]\n\"a b\" = \"http://me:hunter2@a.test\"",
            "[fetch]\nproxy = \"ftp://me:hunter2@a.test\"",
            "[fetch]\nproxy = [\"direct\", \"http://me:hunter2@a.test\"]",
            "[fetch]\nproxy = \"nobody\"",
            "[[hosts]]\nhost = \"a.test\"\nproxy = \"http://me:hunter2@a.test\"",
            "[[hosts]]\nhost = \"a.test\"\nproxy = \"me:hunter2@a.test:3128\"",
            "[[hosts]]\nhost = \"a.test\"\nproxy = \"hunter2@a.test\"",
            "[fetch]\nproxy = \"me:hunter2@a.test:3128\"",
        ] {
            let complaint = loaded(wrong).unwrap_err().to_string();
            assert!(!complaint.contains("hunter2"), "{complaint}");
        }
    }

    #[test]
    fn a_host_s_proxy_is_a_word_or_the_host_and_port_of_one_without_a_label() {
        for label in ["eu", "exit_1-b", "proxy.test:3128", "[::1]:1080", "direct"] {
            assert!(is_label(label), "{label}");
        }
        for other in ["", "me:hunter2", "http://a.test", "a b", "me@a.test:1"] {
            assert!(!is_label(other), "{other}");
        }
    }

    #[test]
    fn what_is_missing_is_told_with_its_line() {
        let config = loaded("[proxies]\na = \"env:NOT_SET\"\nb = \"file:/no/such\"\n")
            .unwrap()
            .config;
        let complaint = config.surroundings(&|_| None, 0).err().unwrap().to_string();
        assert!(
            complaint.contains("p.toml:2: proxies.a: the variable NOT_SET is not set"),
            "{complaint}"
        );
        assert!(
            complaint.contains("p.toml:3: proxies.b: cannot read /no/such"),
            "{complaint}"
        );
    }
}
