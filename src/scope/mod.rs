//! Which URLs belong to the crawl.
//!
//! A [`Scope`] is a set of rules of one kind, one a seed at most, and limits against endless URL spaces. Rules are
//! texts in a table, shared by all machines; in memory a rule is 128 bits of a hash under a key of this process, so
//! that a million seeds cost some 36 MB, whatever their kind.

mod rule;
#[cfg(test)]
mod tests;
mod trap;

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::canon::PageUrl;

pub use trap::TrapLimits;

/// How far a crawl goes from its seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    /// The hosts of the seeds; http and https alike, a port that is not the default is another host.
    #[default]
    Host,
    /// The registrable domains of the seeds, all their hosts and ports.
    Site,
    /// The folders of the seeds: all up to the last slash of their path.
    Prefix,
    /// The whole web.
    Any,
}

impl ScopeKind {
    /// All kinds, from the narrowest customary one on.
    pub const ALL: [ScopeKind; 4] = [
        ScopeKind::Host,
        ScopeKind::Site,
        ScopeKind::Prefix,
        ScopeKind::Any,
    ];

    /// The word for it in tables, settings and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            ScopeKind::Host => "host",
            ScopeKind::Site => "site",
            ScopeKind::Prefix => "prefix",
            ScopeKind::Any => "any",
        }
    }
}

impl fmt::Display for ScopeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a scope cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// The word names no kind of scope.
    #[error("scope {0:?} is none of host, site, prefix, any")]
    UnknownKind(String),
}

impl FromStr for ScopeKind {
    type Err = ScopeError;

    fn from_str(word: &str) -> Result<ScopeKind, ScopeError> {
        ScopeKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| ScopeError::UnknownKind(word.to_owned()))
    }
}

/// Whether a URL becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It belongs to the crawl.
    Accept,
    /// It does not.
    Reject(Reason),
}

/// Why a URL does not become a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No rule covers it.
    OutOfScope,
    /// It is more hops away from its seed than [`TrapLimits::max_depth`].
    TooDeep,
    /// It is longer than [`TrapLimits::max_url_length`].
    TooLong,
    /// Its path has more segments than [`TrapLimits::max_segments`].
    TooManySegments,
    /// A segment stands in its path more often than [`TrapLimits::max_repeats`] times.
    RepeatedSegment,
}

impl Reason {
    /// The word for it in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::OutOfScope => "out_of_scope",
            Reason::TooDeep => "depth",
            Reason::TooLong => "url_length",
            Reason::TooManySegments => "segments",
            Reason::RepeatedSegment => "repeated_segment",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The rules of a crawl and its limits.
#[derive(Clone, Debug)]
pub struct Scope {
    kind: ScopeKind,
    limits: TrapLimits,
    hasher: rule::RuleHasher,
    rules: HashSet<u128>,
    /// Kinds that some rule has; to ask of others is idle.
    kinds: [bool; ScopeKind::ALL.len()],
}

impl Scope {
    /// A scope without rules: it contains nothing yet, or everything if its kind is [`ScopeKind::Any`].
    pub fn new(kind: ScopeKind, limits: TrapLimits) -> Scope {
        Scope {
            kind,
            limits,
            hasher: rule::RuleHasher::default(),
            rules: HashSet::new(),
            kinds: [false; ScopeKind::ALL.len()],
        }
    }

    /// The rule that a seed adds, as text for the table of rules.
    ///
    /// `example.org` or `127.0.0.1:8080` of kind host (http and https both match), `example.org` of kind site,
    /// `https://example.org/docs/` of kind prefix (http and https both match), `*` of kind any.
    pub fn rule_for(kind: ScopeKind, seed: &PageUrl) -> String {
        rule::text(kind, seed)
    }

    /// The rule that a seed adds which has a kind of its own, whatever the scope's is: the same behind the kind's word, as
    /// `site example.org`.
    pub fn own_rule_for(kind: ScopeKind, seed: &PageUrl) -> String {
        format!("{kind} {}", rule::text(kind, seed))
    }

    /// The kind of a rule that has one of its own, and the rest of its text.
    pub fn own_kind(rule: &str) -> Option<(ScopeKind, &str)> {
        let (word, rest) = rule.split_once(' ')?;
        Some((word.parse().ok()?, rest))
    }

    /// Adds a seed's rule, read as one of its own kind or else of this scope's; a text that is none is ignored, as is a rule
    /// already there.
    pub fn insert(&mut self, rule: &str) {
        match Scope::own_kind(rule) {
            Some((kind, rest)) => self.insert_as(kind, rest),
            None => self.insert_as(self.kind, rule),
        }
    }

    /// Adds a seed's rule of a kind of its own.
    pub fn insert_as(&mut self, kind: ScopeKind, rule: &str) {
        let hash = self.hasher.of_rule(kind, rule);
        self.kinds[kind as usize] |= hash.is_some() || kind == ScopeKind::Any;
        self.rules.extend(hash);
    }

    /// Judges a URL found so many hops from its seed (seeds are at depth 0): the rules first, then the limits.
    pub fn decide(&self, url: &PageUrl, depth: u16) -> Decision {
        if !self.contains(url) {
            return Decision::Reject(Reason::OutOfScope);
        }
        match self.limits.exceeded_by(url, depth) {
            Some(reason) => Decision::Reject(reason),
            None => Decision::Accept,
        }
    }

    /// Whether a rule covers the URL, whatever the limits say.
    pub fn contains(&self, url: &PageUrl) -> bool {
        self.kind == ScopeKind::Any
            || ScopeKind::ALL.into_iter().any(|kind| {
                self.kinds[kind as usize]
                    && self
                        .hasher
                        .any_of_url(kind, url, |hash| self.rules.contains(&hash))
            })
    }

    /// Its limits against endless URL spaces.
    pub fn limits(&self) -> &TrapLimits {
        &self.limits
    }

    /// What its rules speak of.
    pub fn kind(&self) -> ScopeKind {
        self.kind
    }
}

/// Whether a seed's redirect stays where its operator meant it to go, so that the scope should follow: the target is
/// the seed itself, or any page where the seed is the root of a host, with or without `www.`, over http or https.
///
/// Ports must be the defaults of both, or the same.
pub fn widens(seed: &PageUrl, target: &PageUrl) -> bool {
    let (from, to) = (seed.host(), target.host());
    let bare = |host: &str| host.strip_prefix("www.").unwrap_or(host).to_owned();
    let is_default = |host: &crate::canon::HostKey| host.authority() == host.host();
    let same_port = (is_default(from) && is_default(to)) || from.port() == to.port();
    let same_page = seed.canonical_path() == target.canonical_path()
        && seed.as_url().query() == target.as_url().query();
    let is_root = seed.as_url().path() == "/" && seed.as_url().query().is_none();
    from != to && bare(from.host()) == bare(to.host()) && same_port && (same_page || is_root)
}
