//! Defaults, file, environment and flags, laid upon one another.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::Standpoint;
use super::hosts::{HOSTS, HostEntry};
use super::proxies::{NamedProxy, PROXIES};
use super::{Config, KEYS, Key, Problem, Problems, nearest};

/// The file that is read from the working directory when none is named.
pub const FILE_NAME: &str = "pgcrawl.toml";

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of the file, counted from 1.
    File(PathBuf, usize),
    /// A variable of the environment.
    Environment(String),
    /// A flag, with its dashes.
    Flag(&'static str),
    /// The settings of the crawl that this process takes part in.
    Crawl,
}

/// The value that a flag gives a key.
#[derive(Debug, Clone)]
pub struct FlagValue {
    /// The flag as typed, with its dashes.
    pub flag: &'static str,
    /// The key, as `section.name`.
    pub key: &'static str,
    /// The value as text.
    pub text: String,
}

/// A checked configuration that knows where each value came from.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What is allowed but most likely not meant, for the log.
    pub warnings: Vec<Problem>,
    origins: BTreeMap<String, Origin>,
}

/// Lays one layer after another; complaints are kept to the end.
#[derive(Debug, Default)]
pub struct Layers {
    config: Config,
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Layers {
    /// Starts from the defaults.
    pub fn new() -> Self {
        Layers::default()
    }

    /// Reads the named file, or [`FILE_NAME`] of the working directory if that exists.
    pub fn file(self, named: Option<&Path>) -> Self {
        let path = named.unwrap_or(Path::new(FILE_NAME));
        match std::fs::read_to_string(path) {
            Ok(text) => self.toml(path, &text),
            Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => self,
            Err(error) => {
                let hint = (error.kind() == ErrorKind::NotFound).then(|| {
                    format!("without --config, {FILE_NAME} of the working directory is read, if there is one")
                });
                self.complain(
                    Some(path.display().to_string()),
                    format!("cannot read: {error}"),
                    hint,
                )
            }
        }
    }

    /// Reads the text of a file.
    pub fn toml(mut self, path: &Path, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let line = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
        let place = |offset: usize| Some(format!("{}:{}", path.display(), line(offset)));
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let at = error.span().map_or_else(
                || Some(path.display().to_string()),
                |span| place(span.start),
            );
            self = self.complain(at, error.message().to_owned(), None);
        }
        for (section, value) in in_order(document.get_ref()) {
            let (name, at) = (section.get_ref().as_ref(), section.span().start);
            if name == HOSTS {
                self = self.hosts(at, value.get_ref(), place, |offset| {
                    Origin::File(path.into(), line(offset))
                });
                continue;
            }
            if name == PROXIES {
                self = self.proxies(at, value.get_ref(), place, |offset| {
                    Origin::File(path.into(), line(offset))
                });
                continue;
            }
            let Some(table) = value.get_ref().as_table() else {
                self = self.complain(
                    place(at),
                    format!("key `{name}` stands outside a section"),
                    home_of(name),
                );
                continue;
            };
            if !sections().any(|known| known == name) {
                let hint = suggest(
                    name,
                    sections().chain([HOSTS, PROXIES]),
                    |near| match near {
                        HOSTS => format!("[[{HOSTS}]]"),
                        near => format!("[{near}]"),
                    },
                );
                self = self.complain(place(at), format!("unknown section [{name}]"), hint);
                continue;
            }
            for (key, value) in in_order(table) {
                self = self.entry(name, key, value, place, |offset| {
                    Origin::File(path.into(), line(offset))
                });
            }
        }
        self
    }

    fn entry(
        mut self,
        section: &str,
        name: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        place: impl Fn(usize) -> Option<String>,
        origin: impl Fn(usize) -> Origin,
    ) -> Self {
        let at = name.span().start;
        let name = name.get_ref().as_ref();
        let Some(key) = Key::find(section, name) else {
            let siblings = KEYS
                .iter()
                .filter(|key| key.section == section)
                .map(|key| key.name);
            let hint =
                suggest(name, siblings, |near| format!("`{near}`")).or_else(|| home_of(name));
            return self.complain(
                place(at),
                format!("unknown key `{name}` in [{section}]"),
                hint,
            );
        };
        match key.set(&mut self.config, value.get_ref()) {
            Ok(()) => {
                self.origins.insert(key.path(), origin(at));
                self
            }
            Err(message) => self.complain(place(at), format!("{}: {message}", key.path()), None),
        }
    }

    fn proxies(
        mut self,
        at: usize,
        value: &DeValue<'_>,
        place: impl Fn(usize) -> Option<String>,
        origin: impl Fn(usize) -> Origin,
    ) -> Self {
        let Some(table) = value.as_table() else {
            let hint = format!("write [{PROXIES}], and below it label = \"URL\" for each");
            return self.complain(place(at), format!("`{PROXIES}` is a table"), Some(hint));
        };
        for (label, value) in in_order(table) {
            let at = label.span().start;
            match NamedProxy::read(label.get_ref(), value.get_ref()) {
                Ok(entry) => self.config.proxies.push(NamedProxy {
                    origin: Some(origin(at)),
                    ..entry
                }),
                Err(message) => {
                    self = self.complain(place(at), format!("{PROXIES}: {message}"), None);
                }
            }
        }
        self
    }

    fn hosts(
        mut self,
        at: usize,
        value: &DeValue<'_>,
        place: impl Fn(usize) -> Option<String>,
        origin: impl Fn(usize) -> Origin,
    ) -> Self {
        let Some(entries) = value.as_array() else {
            let hint = "write [[hosts]], once for each host".to_owned();
            return self.complain(place(at), format!("`{HOSTS}` is a list"), Some(hint));
        };
        for value in entries {
            let at = value.span().start;
            let Some(table) = value.get_ref().as_table() else {
                let message = format!("an entry of `{HOSTS}` is a table");
                self = self.complain(place(at), message, None);
                continue;
            };
            let mut entry = HostEntry {
                origin: Some(origin(at)),
                ..HostEntry::default()
            };
            for (key, value) in in_order(table) {
                if let Err((message, hint)) = entry.set(key.get_ref(), value.get_ref()) {
                    self = self.complain(place(key.span().start), message, hint);
                }
            }
            if !table.contains_key("host") {
                let hint = "host = \"intranet.example\" says for which host it is";
                let message = format!("an entry of [[{HOSTS}]] has no host");
                self = self.complain(place(at), message, Some(hint.into()));
            }
            self.config.hosts.push(entry);
        }
        self
    }

    /// Reads the variables of an environment: `PGCRAWL_SECTION_NAME` for each key, and `DATABASE_URL`. Empty ones count
    /// as not set.
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut variables: BTreeMap<String, String> = variables
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        for key in KEYS {
            let own = key.variable();
            let common = (key.path() == "database.url").then_some("DATABASE_URL");
            // Ours is the more precise, so it wins; but the common one is then no stranger either.
            for name in common.into_iter().chain([own.as_str()]) {
                if let Some(text) = variables.remove(name) {
                    self = self.text(
                        key,
                        &text,
                        name.to_owned(),
                        Origin::Environment(name.to_owned()),
                    );
                }
            }
        }
        // A warning only: a cluster invents such names, as PGCRAWL_DATABASE_PORT for a service called pgcrawl-database.
        for name in variables.keys().filter(|name| is_ours(name)) {
            let known: Vec<String> = KEYS.iter().map(Key::variable).collect();
            let hint = suggest(name, known.iter().map(String::as_str), str::to_owned);
            self.warnings.push(Problem {
                place: Some(name.clone()),
                message: "sets no key".into(),
                hint,
            });
        }
        self
    }

    /// Reads flags.
    pub fn flags(mut self, values: impl IntoIterator<Item = FlagValue>) -> Self {
        for value in values {
            let key = Key::find_path(value.key)
                .expect("a flag names a key of the list; a test tries each");
            self = self.text(
                key,
                &value.text,
                value.flag.to_owned(),
                Origin::Flag(value.flag),
            );
        }
        self
    }

    fn text(mut self, key: &Key, text: &str, place: String, origin: Origin) -> Self {
        match key.set_text(&mut self.config, text) {
            Ok(()) => {
                self.origins.insert(key.path(), origin);
                self
            }
            Err(message) => self.complain(Some(place), message, None),
        }
    }

    fn complain(mut self, place: Option<String>, message: String, hint: Option<String>) -> Self {
        self.problems.push(Problem {
            place,
            message,
            hint,
        });
        self
    }

    /// Checks that the values go together.
    ///
    /// # Errors
    ///
    /// Everything that was found wrong with any layer or with their sum.
    pub fn finish(self) -> Result<Loaded, Problems> {
        self.end(Standpoint::Alone)
    }

    /// The same for a process that takes part in a crawl: what it leaves out is the crawl's, and is checked when that is known
    /// ([`Loaded::agree`]).
    ///
    /// # Errors
    ///
    /// Everything that is wrong whatever the crawl has.
    pub fn finish_with_the_crawl(self) -> Result<Loaded, Problems> {
        self.end(Standpoint::BeforeTheCrawl)
    }

    fn end(self, standpoint: Standpoint) -> Result<Loaded, Problems> {
        let Layers {
            config,
            origins,
            mut problems,
            warnings,
        } = self;
        let mut loaded = Loaded {
            config,
            warnings,
            origins,
        };
        problems.extend(super::check::check(&loaded, standpoint));
        let doubts = super::check::doubts(&loaded);
        loaded.warnings.extend(doubts);
        if problems.is_empty() {
            Ok(loaded)
        } else {
            Err(Problems(problems))
        }
    }
}

impl FlagValue {
    /// Returns the value that a flag gives the key `section.name`.
    pub fn new(flag: &'static str, key: &'static str, text: impl Into<String>) -> Self {
        FlagValue {
            flag,
            key,
            text: text.into(),
        }
    }
}

impl Loaded {
    /// Checks that the values go together.
    pub(super) fn check(&self) -> Result<(), Problems> {
        match super::check::check(self, Standpoint::Alone) {
            problems if problems.is_empty() => Ok(()),
            problems => Err(Problems(problems)),
        }
    }

    pub(super) fn set_origin(&mut self, path: String, origin: Origin) {
        self.origins.insert(path, origin);
    }

    /// Returns where the value of `section.name` came from.
    pub fn origin(&self, path: &str) -> &Origin {
        self.origins.get(path).unwrap_or(&Origin::Default)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => f.write_str(name),
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Crawl => f.write_str("the crawl"),
        }
    }
}

fn sections() -> impl Iterator<Item = &'static str> {
    KEYS.chunk_by(|a, b| a.section == b.section)
        .map(|keys| keys[0].section)
}

/// Returns the entries of a table as they stand in the file; the table itself has them in the order of the alphabet.
fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Says whether a variable looks like one of ours: `PGCRAWL_` and a section.
fn is_ours(variable: &str) -> bool {
    variable
        .strip_prefix("PGCRAWL_")
        .and_then(|rest| rest.split('_').next())
        .is_some_and(|first| {
            let first = first.to_ascii_lowercase();
            sections().any(|section| section == first)
        })
}

fn suggest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    quote: impl Fn(&str) -> String,
) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean {}?", quote(near)))
}

/// Names the section in which a key stands that was written into another or into none.
fn home_of(name: &str) -> Option<String> {
    KEYS.iter()
        .find(|key| key.name == name)
        .map(|key| format!("`{name}` stands in [{}]", key.section))
}
