//! What is said to some hosts only: their headers, logins and cookies.
//!
//! The one idea: it is looked up by the URL of each single request, the hops of a visit and of robots.txt included, and never carried
//! from one request to the next. So nothing leaves its host on a redirect, because nothing is there to be carried along. A host's
//! robots.txt is asked for as its pages are: a site behind a login has its robots.txt behind it, too. Where it redirects to another host,
//! that one is asked as a stranger would ask it.

mod pattern;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{COOKIE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::cookies::KeepCookies;
pub use pattern::{HostPattern, PatternError};
pub(super) use pattern::{Secrecy, is_loopback, is_public_suffix};

use super::proxy::ProxyChoice;

/// What holds for the hosts of one entry.
#[derive(Clone, Debug, Default)]
pub struct HostSettings {
    /// Which hosts; one that matches is enough.
    pub hosts: Vec<HostPattern>,
    /// Headers of each request to them, values marked as sensitive.
    pub headers: HeaderMap,
    /// What is shown to them as `Authorization`.
    pub login: Option<Login>,
    /// Whether they keep cookies with us; none: as other hosts do.
    pub cookies: Option<KeepCookies>,
    /// Whether their certificates go unverified.
    pub insecure: bool,
    /// The way to them; none: as all others.
    pub proxy: Option<ProxyChoice>,
}

/// Credentials for a host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Login {
    /// RFC 7617.
    Basic {
        /// Without a colon.
        username: String,
        /// In UTF-8.
        password: SecretString,
    },
    /// RFC 6750.
    Bearer(SecretString),
}

/// The entries of all hosts. Clones share them.
#[derive(Clone, Default)]
pub struct HostRules {
    entries: Arc<[HostSettings]>,
    /// Patterns whose secrets were kept back, and of which that was said.
    kept_back: Arc<Mutex<HashSet<HostPattern>>>,
}

impl HostRules {
    /// Rules of these entries.
    pub fn new(entries: Vec<HostSettings>) -> HostRules {
        HostRules {
            entries: entries.into(),
            kept_back: Arc::default(),
        }
    }

    /// The entry for a request, whole: of those that match the one with the most precise pattern (a name before all below one, the longer
    /// name before the shorter, then one with a port, then one with a scheme); of two as precise the first.
    pub fn of(&self, url: &Url) -> Option<&HostSettings> {
        self.find(url).map(|(_, settings)| settings)
    }

    /// The same with the pattern by which it was found.
    pub(super) fn find(&self, url: &Url) -> Option<(&HostPattern, &HostSettings)> {
        // From behind: `max_by_key` answers the last of equals.
        let all = self.entries.iter().rev().flat_map(|settings| {
            let patterns = settings.hosts.iter().rev();
            patterns.map(move |pattern| (pattern, settings))
        });
        all.filter(|(pattern, _)| pattern.matches(url))
            .max_by_key(|(pattern, _)| pattern.rank())
    }

    /// The ways that entries ask for.
    pub(super) fn proxies(&self) -> impl Iterator<Item = &ProxyChoice> {
        self.entries.iter().filter_map(|entry| entry.proxy.as_ref())
    }

    /// Whether there are hosts whose certificates go unverified.
    pub(super) fn has_insecure(&self) -> bool {
        self.entries.iter().any(|entry| entry.insecure)
    }

    /// What a host is to be told whose entry was found, if that may be said on its way.
    pub(super) fn said_to<'a>(
        &self,
        (pattern, settings): (&HostPattern, &'a HostSettings),
        secrecy: Secrecy,
    ) -> Option<&'a HostSettings> {
        if settings.headers.is_empty() && settings.login.is_none() {
            return None;
        }
        if !pattern.may_carry_secrets(secrecy) {
            self.keep_back(pattern);
            return None;
        }
        Some(settings)
    }

    /// Says once a pattern what will else be wondered about.
    fn keep_back(&self, pattern: &HostPattern) {
        let mut told = self
            .kept_back
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if told.insert(pattern.clone()) {
            tracing::warn!(
                host = %pattern,
                "what is set for {pattern} is not sent over plain http; write http:// before the host if it should be"
            );
        }
    }
}

impl HostSettings {
    /// What stands in `Cookie`, beside the cookies of jars.
    pub(super) fn cookie(&self) -> Option<&HeaderValue> {
        self.headers.get(COOKIE)
    }

    /// Adds headers and login to a request.
    pub(super) fn dress(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let mut headers = self.headers.clone();
        headers.remove(COOKIE);
        let request = request.headers(headers);
        match &self.login {
            Some(Login::Basic { username, password }) => {
                request.basic_auth(username, Some(password.expose_secret()))
            }
            Some(Login::Bearer(token)) => request.bearer_auth(token.expose_secret()),
            None => request,
        }
    }
}

impl fmt::Debug for HostRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_precise_entry_counts_and_counts_alone() {
        let entry = |hosts: &[&str]| HostSettings {
            hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
            ..HostSettings::default()
        };
        let rules = HostRules::new(vec![
            entry(&["*.example.org"]),
            entry(&["*.a.example.org"]),
            entry(&["b.a.example.org", "c.example.org"]),
            entry(&["b.a.example.org:443"]),
            entry(&["http://b.a.example.org"]),
        ]);
        let of = |url: &str| {
            let found = rules.of(&Url::parse(url).unwrap())?;
            rules
                .entries
                .iter()
                .position(|entry| std::ptr::eq(entry, found))
        };
        assert_eq!(of("https://x.example.org/"), Some(0));
        assert_eq!(of("https://x.a.example.org/"), Some(1));
        assert_eq!(of("https://c.example.org/"), Some(2));
        assert_eq!(of("https://b.a.example.org/"), Some(3));
        assert_eq!(of("http://b.a.example.org/"), Some(4));
        assert_eq!(of("https://example.org/"), None);
    }

    #[test]
    fn no_secret_is_in_debug_output() {
        let mut settings = HostSettings {
            hosts: vec!["a.example".parse().unwrap()],
            login: Some(Login::Bearer("hunter2".into())),
            ..HostSettings::default()
        };
        let mut value = http::HeaderValue::from_static("hunter2");
        value.set_sensitive(true);
        settings.headers.insert("x-api-key", value);
        assert!(!format!("{:?}", HostRules::new(vec![settings])).contains("hunter2"));
    }
}
