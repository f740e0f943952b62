//! The operator's rules: in order, and the last one that has an opinion of a URL decides, whatever its seed's rule says.
//!
//! A rule is a line of words, `exclude glob /print/** on example.org`: what is to become of a URL, what the rule looks
//! at, what it looks for there, and optionally the host that it is meant for. As text it is shown, stored and compared.

use std::fmt;
use std::str::FromStr;

use regex::Regex;

use super::pattern::{self, Glob, HostPattern};
use crate::canon::PageUrl;

/// Rules that a crawl may have: each link is asked of all of them, and each regex takes some memory.
pub const MOST_RULES: usize = 500;

/// Characters of a rule: it is a line that people read.
const LONGEST: usize = 2_000;

/// One rule of the operator's.
#[derive(Clone)]
pub struct Rule {
    text: String,
    includes: bool,
    test: Test,
    on: Option<HostPattern>,
}

/// What a rule looks at.
#[derive(Clone)]
enum Test {
    Host(HostPattern),
    Site(String),
    Prefix(PageUrl),
    Glob(Glob),
    Regex(Regex),
    Deeper(u16),
    Shallower(u16),
    Scheme(&'static str),
    Port(u16),
    /// The media type, in lower case; `image/` for all of `image/*`.
    Type(String),
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// It does not begin with what is to be done.
    #[error(
        "rule {rule:?}: it begins with \"include\" or \"exclude\", as in \"exclude glob /print/**\""
    )]
    Verb {
        /// As it was given.
        rule: String,
    },
    /// It does not say what it looks at.
    #[error(
        "rule {rule:?}: {word:?} is none of host, site, prefix, glob, regex, depth, scheme, port, type"
    )]
    Kind {
        /// As it was given.
        rule: String,
        /// What stands in the place of the kind.
        word: String,
    },
    /// What it looks for cannot be read.
    #[error("rule {rule:?}: {said}")]
    Value {
        /// As it was given.
        rule: String,
        /// What is wrong, and what would be right.
        said: String,
    },
    /// It is longer than a line that people read.
    #[error("a rule of {chars} characters: at most {LONGEST}; it begins with {begin:?}")]
    Length {
        /// Its length.
        chars: usize,
        /// Its first words.
        begin: String,
    },
}

impl Rule {
    /// The rule as text, its words a space apart.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it says of a URL found so many links from a seed: true takes it in, false leaves it out, none is no opinion.
    pub fn opinion(&self, url: &PageUrl, depth: u16) -> Option<bool> {
        let holds = self.speaks_of(url) && self.test.holds(url, depth);
        holds.then_some(self.includes)
    }

    /// What it says of an answer of this media type (in lower case, without parameters).
    pub fn opinion_of_type(&self, url: &PageUrl, media_type: &str) -> Option<bool> {
        let Test::Type(wanted) = &self.test else {
            return None;
        };
        let holds = match wanted.ends_with('/') {
            true => media_type.starts_with(wanted.as_str()),
            false => media_type == wanted,
        };
        (holds && self.speaks_of(url)).then_some(self.includes)
    }

    fn speaks_of(&self, url: &PageUrl) -> bool {
        self.on.as_ref().is_none_or(|on| on.covers(url.host()))
    }
}

impl Test {
    fn holds(&self, url: &PageUrl, depth: u16) -> bool {
        match self {
            Test::Host(host) => host.covers(url.host()),
            Test::Site(site) => url.host().site().as_str() == site,
            Test::Prefix(prefix) => {
                let path = |url: &PageUrl| url.canonical_path().into_owned();
                prefix.host().authority() == url.host().authority()
                    && path(url).starts_with(&path(prefix))
            }
            Test::Glob(glob) => glob.matches(url),
            Test::Regex(regex) => regex.is_match(url.as_str()),
            Test::Deeper(most) => depth > *most,
            Test::Shallower(least) => depth < *least,
            Test::Scheme(scheme) => url.host().scheme() == *scheme,
            Test::Port(port) => url.host().port() == *port,
            Test::Type(_) => false,
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(given: &str) -> Result<Rule, RuleError> {
        let chars = given.chars().count();
        if chars > LONGEST {
            return Err(RuleError::Length {
                chars,
                begin: given.chars().take(40).collect(),
            });
        }
        let words: Vec<&str> = given.split_ascii_whitespace().collect();
        let text = words.join(" ");
        let includes = match words.first() {
            Some(&"include") => true,
            Some(&"exclude") => false,
            _ => return Err(RuleError::Verb { rule: text }),
        };
        let kind = words.get(1).copied().unwrap_or_default();
        let mut rest = words.get(2..).unwrap_or_default();
        let value = |said: String| RuleError::Value {
            rule: text.clone(),
            said,
        };
        let on = match rest {
            [before @ .., "on", host] if !before.is_empty() => {
                rest = before;
                Some(host.parse().map_err(value)?)
            }
            _ => None,
        };
        let test = Test::of(kind, &rest.join(" "))
            .ok_or_else(|| RuleError::Kind {
                rule: text.clone(),
                word: kind.to_owned(),
            })?
            .map_err(value)?;
        Ok(Rule {
            text,
            includes,
            test,
            on,
        })
    }
}

impl Test {
    /// None: there is no such kind.
    fn of(kind: &str, value: &str) -> Option<Result<Test, String>> {
        let read = match kind {
            "host" => value.parse().map(Test::Host),
            "site" => site(value),
            // It is compared with paths: the rest would be dropped, and the rule cover more than it says.
            "prefix" if value.contains(['?', '#']) => Err(format!(
                "{value:?} has a query or a fragment; a prefix ends with the path, a glob like https://example.org/docs?page=* or a regex \
                 looks at queries"
            )),
            "prefix" => match PageUrl::seed(value) {
                Ok(url) => Ok(Test::Prefix(url)),
                Err(error) => Err(format!(
                    "{error}; a prefix is the beginning of a URL, like https://example.org/docs/"
                )),
            },
            "glob" => Glob::new(value).map(Test::Glob),
            "regex" => pattern::regex(value).map(Test::Regex),
            "depth" => depth(value),
            "scheme" => match value {
                "http" => Ok(Test::Scheme("http")),
                "https" => Ok(Test::Scheme("https")),
                _ => Err(format!("{value:?} is neither http nor https")),
            },
            "port" => value
                .parse()
                .map(Test::Port)
                .map_err(|_| format!("{value:?} is no port from 0 to 65535")),
            "type" => media_type(value),
            _ => return None,
        };
        Some(read)
    }
}

fn site(value: &str) -> Result<Test, String> {
    let url = PageUrl::seed(value).map_err(|error| format!("{error}; a site is example.org"))?;
    Ok(Test::Site(url.host().site().as_str().to_owned()))
}

fn depth(value: &str) -> Result<Test, String> {
    let said = || format!("{value:?} is no depth; write >3 or <3, in links from a seed");
    let number = |text: &str| text.trim().parse::<u16>().map_err(|_| said());
    match value.split_at_checked(1) {
        Some((">", most)) => number(most).map(Test::Deeper),
        Some(("<", least)) => number(least).map(Test::Shallower),
        _ => Err(said()),
    }
}

fn media_type(value: &str) -> Result<Test, String> {
    let value = value.to_ascii_lowercase();
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    match value.split_once('/') {
        Some((main, "*")) if is_part(main) => Ok(Test::Type(format!("{main}/"))),
        Some((main, sub)) if is_part(main) && is_part(sub) => Ok(Test::Type(value)),
        _ => Err(format!(
            "{value:?} is no media type; write application/pdf or image/*"
        )),
    }
}

/// As text they are the same rule.
impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({:?})", self.text)
    }
}
