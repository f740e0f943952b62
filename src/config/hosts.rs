//! `[[hosts]]`: what holds for some hosts only. These entries are each machine's own and never in the database.
//!
//! They stand beside [`super::KEYS`], since a key has one value and these are a list; only the file can hold them. Their own keys are the
//! rows of `HOST_KEYS`. A secret may be written out or be `env:NAME` or `file:/path`; what stands elsewhere is fetched when
//! requests are about to be made ([`Config::host_rules`]).

use std::collections::HashSet;

use http::header;
use secrecy::ExposeSecret;
use toml::Value;
use toml::de::DeValue;

use super::headers::Headers;
use super::secret::{Secret, Variables};
use super::{Config, Origin, Problem, Problems, Setting, nearest, setting};
use crate::fetch::{HostPattern, HostRules, HostSettings, KeepCookies, Login, ProxyChoice};

/// The table of the file.
pub(super) const HOSTS: &str = "hosts";

/// One entry of `[[hosts]]`.
#[derive(Debug, Clone, Default)]
pub struct HostEntry {
    /// Which hosts it is for.
    pub host: HostList,
    /// Headers of each request to them.
    pub headers: Headers,
    /// Of basic authentication (RFC 7617).
    pub username: Option<String>,
    /// The same.
    pub password: Option<Secret>,
    /// A bearer token (RFC 6750).
    pub bearer: Option<Secret>,
    /// Whether a jar is kept for them, whatever `fetch.cookies` says of others.
    pub cookies: Option<bool>,
    /// Whether their certificates go unchecked.
    pub insecure: bool,
    /// The proxy to them: a label, or none at all.
    pub proxy: Option<ProxyChoice>,
    /// Where it stands.
    pub origin: Option<Origin>,
}

/// One pattern of hosts, or several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostList(pub Vec<HostPattern>);

/// A key of an entry.
struct HostKey {
    name: &'static str,
    read: fn(&mut HostEntry, &DeValue<'_>) -> Result<(), String>,
    write: fn(&HostEntry) -> Value,
}

macro_rules! host_keys {
    ($($name:ident)*) => {
        &[$(HostKey {
            name: stringify!($name),
            read: |entry, value| Setting::read(value).map(|value| entry.$name = value),
            write: |entry| entry.$name.write(),
        }),*]
    };
}

/// The keys of an entry, in the order in which they are shown.
const HOST_KEYS: &[HostKey] = host_keys! {
    host headers username password bearer cookies insecure proxy
};

impl Setting for HostList {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let one = |text: &str| text.parse().map_err(|error| format!("{error}"));
        if let Some(text) = value.as_str() {
            return one(text).map(|pattern| HostList(vec![pattern]));
        }
        let texts: Option<Vec<&str>> = value
            .as_array()
            .filter(|values| !values.is_empty())
            .and_then(|values| {
                values
                    .iter()
                    .map(|value| value.get_ref().as_str())
                    .collect()
            });
        match texts {
            Some(texts) => texts
                .into_iter()
                .map(one)
                .collect::<Result<_, _>>()
                .map(HostList),
            None => setting::expected("a host like \"intranet.example\", or a list of them", value),
        }
    }

    fn write(&self) -> Value {
        let mut all = self
            .0
            .iter()
            .map(|pattern| Value::String(pattern.to_string()));
        match (all.next(), self.0.len()) {
            (Some(one), 1) => one,
            (one, _) => Value::Array(one.into_iter().chain(all).collect()),
        }
    }
}

impl HostEntry {
    /// Sets a key.
    ///
    /// # Errors
    ///
    /// Message and hint: no such key, or a value that is none.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: &DeValue<'_>,
    ) -> Result<(), (String, Option<String>)> {
        let Some(key) = HOST_KEYS.iter().find(|key| key.name == name) else {
            let near = nearest(name, HOST_KEYS.iter().map(|key| key.name));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            return Err((format!("unknown key `{name}` in [[{HOSTS}]]"), hint));
        };
        (key.read)(self, value).map_err(|message| (format!("{HOSTS}.{name}: {message}"), None))
    }

    /// Returns the keys that differ from an empty entry's, with their values as TOML; secrets are redacted.
    pub fn show(&self) -> Vec<(&'static str, Value)> {
        let empty = HostEntry::default();
        HOST_KEYS
            .iter()
            .map(|key| (key.name, (key.write)(self), (key.write)(&empty)))
            .filter(|(_, value, unset)| value != unset)
            .map(|(name, value, _)| (name, value))
            .collect()
    }

    fn problem(&self, message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem {
            place: self.origin.as_ref().map(ToString::to_string),
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// What is wrong with its values taken together.
    fn check(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if self.username.is_some() != self.password.is_some() {
            found.push(self.problem(
                "hosts: username and password go together",
                "password = \"\" is a password, too",
            ));
        }
        let ways = usize::from(self.username.is_some())
            + usize::from(self.bearer.is_some())
            + usize::from(self.headers.has(&header::AUTHORIZATION));
        if ways > 1 {
            found.push(self.problem(
                "hosts: more than one login for a host",
                "username and password, bearer and an Authorization header exclude each other",
            ));
        }
        let is_username = |name: &String| !name.contains(|c: char| c == ':' || c.is_control());
        if !self.username.as_ref().is_none_or(is_username) {
            found.push(self.problem(
                "hosts.username: must be without colons and control characters (RFC 7617 §2)",
                "what stands behind the colon is the password",
            ));
        }
        found
    }

    /// The entry with its secrets.
    fn reveal(&self, variables: Variables<'_>) -> Result<HostSettings, Vec<Problem>> {
        let mut found = Vec::new();
        let mut wrong = |key: &str, message: String| {
            let hint = "a secret is written out, or env:NAME, or file:/path";
            found.push(self.problem(format!("{HOSTS}.{key}: {message}"), hint));
        };
        let headers = self.headers.reveal(variables).unwrap_or_else(|messages| {
            messages.into_iter().for_each(|text| wrong("headers", text));
            Default::default()
        });
        let login = match (&self.username, &self.password, &self.bearer) {
            (Some(username), Some(password), _) => password
                .reveal(variables)
                .map_err(|message| wrong("password", message))
                .ok()
                .map(|password| Login::Basic {
                    username: username.clone(),
                    password,
                }),
            (_, _, Some(token)) => token
                .reveal(variables)
                .and_then(|token| match is_token(token.expose_secret()) {
                    true => Ok(Login::Bearer(token)),
                    false => Err("must be printable ASCII without blanks".to_owned()),
                })
                .map_err(|message| wrong("bearer", message))
                .ok(),
            _ => None,
        };
        if !found.is_empty() {
            return Err(found);
        }
        Ok(HostSettings {
            hosts: self.host.0.clone(),
            headers,
            login,
            cookies: self.cookies.map(|keeps| match keeps {
                true => KeepCookies::Host,
                false => KeepCookies::Off,
            }),
            insecure: self.insecure,
            proxy: self.proxy.clone(),
        })
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What is wrong with the entries, taken alone or together.
pub(super) fn check(entries: &[HostEntry]) -> Vec<Problem> {
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for entry in entries {
        found.extend(entry.check());
        for pattern in &entry.host.0 {
            if !known.insert(pattern) {
                found.push(entry.problem(
                    format!("hosts.host: {pattern} has an entry already"),
                    "one entry holds for a host: put all its keys there",
                ));
            }
        }
    }
    found
}

impl Config {
    /// Returns what holds for some hosts only, secrets included.
    ///
    /// # Errors
    ///
    /// Each secret that cannot be had.
    pub fn host_rules(&self, variables: Variables<'_>) -> Result<HostRules, Problems> {
        let mut entries = Vec::new();
        let mut problems = Vec::new();
        for entry in &self.hosts {
            match entry.reveal(variables) {
                Ok(settings) => entries.push(settings),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() {
            Ok(HostRules::new(entries))
        } else {
            Err(Problems(problems))
        }
    }
}
