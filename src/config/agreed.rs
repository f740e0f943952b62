//! What all machines of a crawl must agree on: what a first start proposes, and what later ones take from the database.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::layers::Loaded;
use super::{Config, KEYS, Key, Origin, Problem, Problems, nearest};

/// A shared key that was set here to something else than the crawl has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `section.name`.
    pub key: String,
    /// As the crawl has it, in TOML.
    pub stored: String,
    /// As it was set here, in TOML.
    pub wanted: String,
    /// Where it was set.
    pub origin: Origin,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} is {} in this crawl, and {} was asked for",
            self.origin, self.key, self.stored, self.wanted
        )
    }
}

/// Why a process cannot take part under the settings of a crawl.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgreementError {
    /// Some were set differently; never empty.
    #[error("{}", lines(.0))]
    Differs(Vec<Difference>),
    /// A value in the database cannot be read, or does not go with those of this machine.
    #[error(transparent)]
    Problems(#[from] Problems),
}

fn lines(differences: &[Difference]) -> String {
    let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl AgreementError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            AgreementError::Differs(differences) => {
                let first = differences.first()?;
                Some(format!(
                    "all machines of a crawl share this: `pgcrawl config set {} {}` changes it for all of them; \
                     or leave it out here, or begin another crawl",
                    first.key,
                    as_argument(&first.wanted)
                ))
            }
            AgreementError::Problems(problems) => problems.0.first()?.hint.clone(),
        }
    }
}

/// The value as a shell takes it: a TOML string without its quotes, if nothing in it needs them.
fn as_argument(toml: &str) -> String {
    let plain = toml.trim_matches('"');
    let safe = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
    match plain.chars().all(safe) && !plain.is_empty() {
        true => plain.to_owned(),
        false => format!("'{toml}'"),
    }
}

impl Loaded {
    /// The values of all shared keys, as the database keeps them.
    pub fn proposal(&self) -> BTreeMap<String, Value> {
        KEYS.iter()
            .filter(|key| key.shared)
            .map(|key| (key.path(), stored_form(key, &self.config)))
            .collect()
    }

    /// Takes the values that a crawl has, and checks that all go together. Keys of another version of the program are left alone.
    ///
    /// # Errors
    ///
    /// What was set here to something else; what does not go together.
    pub fn agree(&self, stored: &BTreeMap<String, Value>) -> Result<Loaded, AgreementError> {
        let (agreed, differences) = self.take(stored)?;
        // A difference is told first: what it leads to may not even be meant.
        if !differences.is_empty() {
            return Err(AgreementError::Differs(differences));
        }
        agreed.check()?;
        Ok(agreed)
    }

    /// The same for a process that had agreed, when the crawl's values have changed: what was set here for its start counts no more.
    ///
    /// # Errors
    ///
    /// What does not go together.
    pub fn follow(&self, stored: &BTreeMap<String, Value>) -> Result<Loaded, AgreementError> {
        let (agreed, _) = self.take(stored)?;
        agreed.check()?;
        Ok(agreed)
    }

    /// The same for whoever looks after a crawl and fetches nothing: how much this machine would do at once is no matter then.
    ///
    /// # Errors
    ///
    /// A value that cannot be read.
    pub fn look_on(&self, stored: &BTreeMap<String, Value>) -> Result<Loaded, AgreementError> {
        let (agreed, _) = self.take(stored)?;
        Ok(agreed)
    }

    /// Takes the values of a crawl unchecked, and what was set here to something else.
    fn take(
        &self,
        stored: &BTreeMap<String, Value>,
    ) -> Result<(Loaded, Vec<Difference>), AgreementError> {
        let mut agreed = self.clone();
        let mut differences = Vec::new();
        let mut problems = Vec::new();
        for key in KEYS.iter().filter(|key| key.shared) {
            let Some(value) = stored.get(&key.path()) else {
                continue;
            };
            let mine = stored_form(key, &self.config);
            if let Err(message) = key.set_text(&mut agreed.config, &as_text(value)) {
                problems.push(Problem {
                    place: Some("the crawl's settings".to_owned()),
                    message: format!("{}: {message}", key.path()),
                    hint: Some(format!(
                        "set it anew with `pgcrawl config set {}`",
                        key.path()
                    )),
                });
                continue;
            }
            let origin = self.origin(&key.path());
            let same = stored_form(key, &agreed.config) == mine;
            if *origin != Origin::Default && !same {
                differences.push(Difference {
                    key: key.path(),
                    stored: key.show(&agreed.config).to_string(),
                    wanted: key.show(&self.config).to_string(),
                    origin: origin.clone(),
                });
            }
            agreed.set_origin(key.path(), Origin::Crawl);
        }
        if !problems.is_empty() {
            return Err(Problems(problems).into());
        }
        agreed.bow();
        Ok((agreed, differences))
    }

    /// Defaults of this machine's own keys give way to what the crawl has: only what somebody set can be wrong.
    fn bow(&mut self) {
        let is_default = |path| *self.origin(path) == Origin::Default;
        let (connect, idle, heartbeat, grace) = (
            is_default("fetch.connect_timeout"),
            is_default("fetch.idle_timeout"),
            is_default("frontier.heartbeat"),
            is_default("shutdown.grace"),
        );
        let config = &mut self.config;
        let at_most = |value: &mut Duration, limit: Duration, bows: bool| {
            if bows {
                *value = (*value).min(limit);
            }
        };
        let (total, lease) = (config.fetch.total_timeout, config.frontier.lease);
        at_most(&mut config.fetch.connect_timeout, total, connect);
        at_most(&mut config.fetch.idle_timeout, total, idle);
        let half = config.frontier.dead_after / 2;
        at_most(&mut config.frontier.heartbeat, half, heartbeat);
        at_most(&mut config.shutdown.grace, lease, grace);
    }
}

/// Reads a new value of a shared key and judges it with the other values of a crawl. Answers it as the database keeps it.
///
/// # Errors
///
/// No such key, one of each machine's own, a value that is none, or that does not go with the others.
pub fn judge(path: &str, text: &str, stored: &BTreeMap<String, Value>) -> Result<Value, Problems> {
    let one = |message: String, hint: Option<String>| {
        Problems(vec![Problem {
            place: None,
            message,
            hint,
        }])
    };
    let Some(key) = Key::find_path(path) else {
        let known: Vec<String> = KEYS.iter().map(Key::path).collect();
        let near = nearest(path, known.iter().map(String::as_str));
        let hint = near.map(|near| format!("did you mean {near}?"));
        return Err(one(format!("unknown key {path}"), hint));
    };
    if !key.shared {
        return Err(one(
            format!("{path} is each machine's own, and not the crawl's"),
            Some(format!(
                "set it in pgcrawl.toml or by {} on that machine, and start the process again",
                key.variable()
            )),
        ));
    }
    let mut config = Config::default();
    key.set_text(&mut config, text)
        .map_err(|message| one(format!("{path}: {message}"), None))?;
    let value = stored_form(key, &config);
    let mut changed = stored.clone();
    changed.insert(path.to_owned(), value.clone());
    match Loaded::default().agree(&changed) {
        Ok(_) => Ok(value),
        Err(AgreementError::Problems(problems)) => Err(problems),
        Err(error @ AgreementError::Differs(_)) => Err(one(error.to_string(), error.hint())),
    }
}

fn stored_form(key: &Key, config: &Config) -> Value {
    serde_json::to_value(key.show(config)).unwrap_or_default()
}

/// A stored value as a text that a key reads: JSON's numbers, truths and lists of strings are TOML's as well.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FlagValue, Layers};

    fn loaded(flags: &[(&'static str, &'static str, &str)]) -> Loaded {
        let values = flags
            .iter()
            .map(|(flag, key, value)| FlagValue::new(flag, key, *value));
        Layers::new().flags(values).finish().unwrap()
    }

    #[test]
    fn every_shared_key_comes_back_from_the_database_as_it_went_in() {
        let first = loaded(&[
            ("--delay", "politeness.delay", "1500ms"),
            ("--contact", "identity.contact", "a@example.org"),
            ("--waits", "retry.waits", "[\"1s\", \"2m\"]"),
            ("--body", "fetch.max_body", "3MiB"),
            ("--jitter", "retry.jitter", "0.25"),
            ("--robots", "crawl.obey_robots", "false"),
        ]);
        let later = loaded(&[]).agree(&first.proposal()).unwrap();
        assert_eq!(later.proposal(), first.proposal());
        assert_eq!(later.config.politeness.delay.as_millis(), 1500);
        assert_eq!(later.config.retry.waits.len(), 2);
        assert_eq!(later.origin("politeness.delay").to_string(), "the crawl");
    }

    #[test]
    fn what_was_set_differently_is_named_and_what_was_left_out_is_taken() {
        let first = loaded(&[("--delay", "politeness.delay", "0s")]);
        let error = loaded(&[("--delay", "politeness.delay", "2s")])
            .agree(&first.proposal())
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "--delay: politeness.delay is \"0s\" in this crawl, and \"2s\" was asked for"
        );
        assert!(
            error
                .hint()
                .unwrap()
                .contains("pgcrawl config set politeness.delay 2s")
        );
        // The same said otherwise is the same.
        let same = loaded(&[("--delay", "politeness.delay", "0ms")]);
        assert!(same.agree(&first.proposal()).is_ok());
    }

    #[test]
    fn a_value_of_the_crawl_that_does_not_go_with_this_machines_is_refused() {
        let first = loaded(&[("--delay", "politeness.delay", "1s")]);
        let fast = Layers::new()
            .flags([FlagValue::new("--per-host", "politeness.per_host", "4")])
            .finish_with_the_crawl()
            .unwrap();
        let error = fast.agree(&first.proposal()).unwrap_err();
        assert!(error.to_string().contains("politeness.per_host"), "{error}");
        // Whoever only looks after it fetches nothing.
        let looks_on = fast.look_on(&first.proposal()).unwrap();
        assert_eq!(looks_on.config.politeness.delay, Duration::from_secs(1));
        let quick = loaded(&[("--delay", "politeness.delay", "0s")]);
        assert!(fast.agree(&quick.proposal()).is_ok());
    }

    #[test]
    fn defaults_of_the_machine_give_way_and_what_was_set_does_not() {
        let short = loaded(&[
            ("--total", "fetch.total_timeout", "5s"),
            ("--connect", "fetch.connect_timeout", "5s"),
            ("--idle", "fetch.idle_timeout", "5s"),
            ("--dead", "frontier.dead_after", "20s"),
            ("--beat", "frontier.heartbeat", "10s"),
        ]);
        let agreed = loaded(&[]).agree(&short.proposal()).unwrap().config;
        assert_eq!(agreed.fetch.connect_timeout, Duration::from_secs(5));
        assert_eq!(agreed.frontier.heartbeat, Duration::from_secs(10));
        let stubborn = Layers::new()
            .flags([FlagValue::new("--idle", "fetch.idle_timeout", "7s")])
            .finish_with_the_crawl()
            .unwrap();
        let error = stubborn.agree(&short.proposal()).unwrap_err();
        assert!(error.to_string().contains("fetch.idle_timeout"), "{error}");
    }

    #[test]
    fn a_new_value_is_judged_with_the_others() {
        let stored = loaded(&[]).proposal();
        let says = |key, value| judge(key, value, &stored).unwrap_err().to_string();
        assert!(says("politeness.dealy", "1s").contains("unknown key"));
        assert!(says("politeness.concurrency", "9").contains("each machine's own"));
        assert!(says("politeness.delay", "soon").contains("politeness.delay"));
        assert!(says("frontier.lease", "61s").contains("twice fetch.total_timeout"));
        assert_eq!(judge("frontier.lease", "3m", &stored).unwrap(), "3m");
    }
}
