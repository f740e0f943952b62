//! Which URLs belong to the crawl.
//!
//! A [`Scope`] is asked in this order:
//!
//! 1. Do the seeds' own rules cover the URL? They are texts in a table, shared by all machines; in memory a rule is 128
//!    bits of a hash under a key of this process, so that a million seeds cost some 36 MB, whatever their kind.
//! 2. The operator's [`Rule`]s, in order: the last one that has an opinion decides instead.
//! 3. Where no rule took it in: is it so few hops outside that it may be fetched all the same (`scope.extra_hops`)?
//! 4. The limits against endless URL spaces, [`TrapLimits`].
//!
//! [`shape`] judges what pages of one URL shape brought.

pub mod block;
mod growth;
mod opinion;
mod pattern;
mod rule;
pub mod shape;
#[cfg(test)]
mod tests;
mod trap;

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::canon::PageUrl;

pub use opinion::{MOST_RULES, Rule, RuleError};
pub use pattern::HostPattern;
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

/// Why a URL does not become a task, or a task is not visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No seed's rule covers it.
    OutOfScope,
    /// A rule of the operator's leaves it out.
    Rule,
    /// It is more hops away from its seed than [`TrapLimits::max_depth`].
    TooDeep,
    /// It is longer than [`TrapLimits::max_url_length`].
    TooLong,
    /// Its path has more segments than [`TrapLimits::max_segments`].
    TooManySegments,
    /// A segment stands in its path more often than [`TrapLimits::max_repeats`] times.
    RepeatedSegment,
    /// Its query has more parameters than [`TrapLimits::max_parameters`].
    TooManyParameters,
    /// A parameter stands in its query with the same value more often than [`TrapLimits::max_repeats`] times.
    RepeatedParameter,
    /// Its escapes are escaped more often than [`TrapLimits::max_nesting`] times.
    NestedEscapes,
    /// A date in it lies more years ahead than [`TrapLimits::max_years_ahead`].
    FarDate,
    /// Pages of its shape bring no new content, see [`shape`].
    Shape,
    /// As many URLs of its host are known as its budget allows.
    HostUrls,
    /// As many pages of its host were visited as its budget allows.
    HostPages,
}

impl Reason {
    /// All of them, in the order in which they were declared.
    pub const ALL: [Reason; 13] = [
        Reason::OutOfScope,
        Reason::Rule,
        Reason::TooDeep,
        Reason::TooLong,
        Reason::TooManySegments,
        Reason::RepeatedSegment,
        Reason::TooManyParameters,
        Reason::RepeatedParameter,
        Reason::NestedEscapes,
        Reason::FarDate,
        Reason::Shape,
        Reason::HostUrls,
        Reason::HostPages,
    ];

    /// The word for it in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::OutOfScope => "out_of_scope",
            Reason::Rule => "scope_rule",
            Reason::TooDeep => "depth",
            Reason::TooLong => "url_length",
            Reason::TooManySegments => "segments",
            Reason::RepeatedSegment => "repeated_segment",
            Reason::TooManyParameters => "parameters",
            Reason::RepeatedParameter => "repeated_parameter",
            Reason::NestedEscapes => "nested_escapes",
            Reason::FarDate => "far_date",
            Reason::Shape => "trap_shape",
            Reason::HostUrls => "host_urls",
            Reason::HostPages => "host_pages",
        }
    }

    /// The word for it where a redirect was not followed because of it.
    pub fn of_redirect(self) -> &'static str {
        match self {
            Reason::OutOfScope => "redirect_out_of_scope",
            Reason::Rule => "redirect_scope_rule",
            Reason::TooDeep => "redirect_depth",
            Reason::TooLong => "redirect_url_length",
            Reason::TooManySegments => "redirect_segments",
            Reason::RepeatedSegment => "redirect_repeated_segment",
            Reason::TooManyParameters => "redirect_parameters",
            Reason::RepeatedParameter => "redirect_repeated_parameter",
            Reason::NestedEscapes => "redirect_nested_escapes",
            Reason::FarDate => "redirect_far_date",
            Reason::Shape => "redirect_trap_shape",
            Reason::HostUrls => "redirect_host_urls",
            Reason::HostPages => "redirect_host_pages",
        }
    }

    /// Whether rules and limits alone say so: under others the answer may be another.
    pub fn is_of_rules(self) -> bool {
        !matches!(self, Reason::Shape | Reason::HostUrls | Reason::HostPages)
    }
}

/// Where a URL was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Links from a seed, the one to it counted.
    pub depth: u16,
    /// Links in a row that led outside the scope, the one to it counted, if it is outside itself.
    pub outside: u16,
}

impl Place {
    /// Where an asset of a page counts as lying: inside, as long as its page is in the crawl, and not deep. The pages that a crawl ends with are
    /// shown with their pictures, and many sites keep these on other hosts (Heritrix's rule for transclusions). The operator's rules hold.
    pub const TRANSCLUDED: Place = Place {
        depth: 0,
        outside: 0,
    };

    /// A URL so many links from a seed, of which no more is known: no hops outside are allowed to it.
    pub fn at_depth(depth: u16) -> Place {
        Place {
            depth,
            outside: u16::MAX,
        }
    }
}

/// A decision, and what decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement<'a> {
    /// What becomes of the URL.
    pub decision: Decision,
    /// What decided whether it belongs to the crawl; the limits come after.
    pub by: By<'a>,
}

/// What decided whether a URL belongs to the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By<'a> {
    /// The rules of the seeds.
    Seeds,
    /// A rule of the operator's.
    Rule(&'a Rule),
    /// The hops outside that are allowed; this is which one it is.
    ExtraHop(u16),
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
    opinions: Arc<[Rule]>,
    extra_hops: u16,
    year: Option<u16>,
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
            opinions: Arc::new([]),
            extra_hops: 0,
            year: None,
        }
    }

    /// The same with the operator's rules, in their order.
    pub fn with_rules(mut self, rules: &[Rule]) -> Scope {
        self.opinions = rules.into();
        self
    }

    /// The same, where so many links in a row may lead outside; 0 by default.
    pub fn with_extra_hops(mut self, hops: u16) -> Scope {
        self.extra_hops = hops;
        self
    }

    /// Tells it what year it is; until then no date lies too far ahead.
    pub fn set_year(&mut self, year: u16) {
        self.year = Some(year);
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

    /// The rule that a seed's redirect to its twin adds: of the kind of the seed's rule, the widest if several seeds made one of this URL; of this
    /// scope's kind if none of them is known.
    pub fn widened(&self, seed: &PageUrl, target: &PageUrl) -> String {
        const WIDEST_FIRST: [ScopeKind; 3] = [ScopeKind::Site, ScopeKind::Host, ScopeKind::Prefix];
        let has_rule = |kind: ScopeKind| {
            let hash = self.hasher.of_rule(kind, &rule::text(kind, seed));
            hash.is_some_and(|hash| self.rules.contains(&hash))
        };
        match WIDEST_FIRST.into_iter().find(|kind| has_rule(*kind)) {
            Some(kind) if kind != self.kind => Scope::own_rule_for(kind, target),
            _ => Scope::rule_for(self.kind, target),
        }
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
        self.judge(url, Place::at_depth(depth)).decision
    }

    /// Judges a URL, and says what decided.
    pub fn judge(&self, url: &PageUrl, place: Place) -> Judgement<'_> {
        let opinion = self.opinion(url, place.depth);
        let (inside, by) = match opinion {
            Some((rule, takes)) => (takes, By::Rule(rule)),
            None if self.contains(url) => (true, By::Seeds),
            None if place.outside <= self.extra_hops => (true, By::ExtraHop(place.outside)),
            None => (false, By::Seeds),
        };
        let decision = match (inside, opinion) {
            (true, _) => match self.limits.exceeded_by(url, place.depth, self.year) {
                Some(reason) => Decision::Reject(reason),
                None => Decision::Accept,
            },
            (false, Some(_)) => Decision::Reject(Reason::Rule),
            (false, None) => Decision::Reject(Reason::OutOfScope),
        };
        Judgement { decision, by }
    }

    /// The last of the operator's rules that has an opinion of the URL. A URL that is too long is none of their business: regexes would take
    /// their time with it.
    fn opinion(&self, url: &PageUrl, depth: u16) -> Option<(&Rule, bool)> {
        if url.as_str().len() > self.limits.max_url_length {
            return None;
        }
        let rules = self.opinions.iter().rev();
        rules
            .filter_map(|rule| Some((rule, rule.opinion(url, depth)?)))
            .next()
    }

    /// Whether the operator's rules want an answer of this media type read (true) or not (false); none: they do not say.
    pub fn wants_type(&self, url: &PageUrl, media_type: &str) -> Option<bool> {
        let rules = self.opinions.iter().rev();
        rules
            .filter_map(|rule| rule.opinion_of_type(url, media_type))
            .next()
    }

    /// Whether it lies inside: by the seeds' rules or the operator's, whatever the limits say.
    pub fn is_inside(&self, url: &PageUrl, depth: u16) -> bool {
        match self.opinion(url, depth) {
            Some((_, takes)) => takes,
            None => self.contains(url),
        }
    }

    /// Whether a seed's rule covers the URL, whatever the operator's rules and the limits say.
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

    /// The operator's rules.
    pub fn rules(&self) -> &[Rule] {
        &self.opinions
    }

    /// Links in a row that may lead outside.
    pub fn extra_hops(&self) -> u16 {
        self.extra_hops
    }
}

/// Whether a seed's redirect stays where its operator meant it to go, so that the scope should follow: the target is
/// the seed itself, or any page where the seed is the root of a host, with or without `www.`, over http or https.
///
/// Ports must be the defaults of both, or the same.
pub fn widens(seed: &PageUrl, target: &PageUrl) -> bool {
    let (from, to) = (seed.host(), target.host());
    let same_page = seed.canonical_path() == target.canonical_path()
        && seed.as_url().query() == target.as_url().query();
    let is_root = seed.as_url().path() == "/" && seed.as_url().query().is_none();
    from != to && from.is_twin_of(to) && (same_page || is_root)
}
