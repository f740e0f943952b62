//! What a rule of each kind says, and its hash.
//!
//! A URL is covered if one of a few texts that it yields is a rule: its host, its site, or its host with one of the
//! folders above it. So a set of hashes answers in the time of a look-up (a folder: one for each of its parents).

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::canon::PageUrl;

use super::ScopeKind;

/// The text of the rule that covers a seed.
pub(super) fn text(kind: ScopeKind, seed: &PageUrl) -> String {
    match kind {
        ScopeKind::Host => seed.host().authority().to_owned(),
        ScopeKind::Site => seed.host().site().as_str().to_owned(),
        ScopeKind::Prefix => format!("{}{}", seed.host(), folder(&seed.canonical_path())),
        ScopeKind::Any => "*".to_owned(),
    }
}

/// A path up to its last slash.
fn folder(path: &str) -> &str {
    path.rfind('/').map_or("/", |slash| &path[..=slash])
}

/// Hashes rules to 128 bits. Two keyed SipHashes, drawn anew for each scope: a site cannot choose names that collide,
/// and a million rules collide with a chance of 10⁻²⁶.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleHasher {
    halves: (RandomState, RandomState),
}

impl RuleHasher {
    /// The hash of a rule's text, if it is a rule.
    pub(super) fn of_rule(&self, kind: ScopeKind, rule: &str) -> Option<u128> {
        let rule = rule.trim();
        match kind {
            ScopeKind::Any => None,
            ScopeKind::Host | ScopeKind::Site => {
                (!rule.is_empty()).then(|| self.start(kind, &rule.to_ascii_lowercase()).finish())
            }
            ScopeKind::Prefix => {
                let url = PageUrl::seed(rule).ok()?;
                let path = url.canonical_path();
                let folder = folder(&path);
                let mut hash = self.start(kind, url.host().authority());
                folder
                    .split_inclusive('/')
                    .for_each(|segment| hash.write(segment));
                Some(hash.finish())
            }
        }
    }

    /// Whether the hash of any rule that would cover the URL is known.
    pub(super) fn any_of_url(
        &self,
        kind: ScopeKind,
        url: &PageUrl,
        known: impl Fn(u128) -> bool,
    ) -> bool {
        match kind {
            ScopeKind::Any => true,
            ScopeKind::Host => known(self.start(kind, url.host().authority()).finish()),
            ScopeKind::Site => known(self.start(kind, url.host().site().as_str()).finish()),
            ScopeKind::Prefix => {
                let path = url.canonical_path();
                let mut hash = self.start(kind, url.host().authority());
                folder(&path).split_inclusive('/').any(|segment| {
                    hash.write(segment);
                    known(hash.finish())
                })
            }
        }
    }

    /// Rules of several kinds may stand in one set: `example.org` as a host is another rule than as a site.
    fn start(&self, kind: ScopeKind, name: &str) -> Both<impl Hasher + use<>> {
        let mut both = Both(self.halves.0.build_hasher(), self.halves.1.build_hasher());
        both.write(kind.as_str());
        both.write(name);
        both
    }
}

/// Two hashers fed alike.
struct Both<H>(H, H);

impl<H: Hasher> Both<H> {
    fn write(&mut self, part: &str) {
        self.0.write(part.as_bytes());
        self.1.write(part.as_bytes());
    }

    fn finish(&self) -> u128 {
        u128::from(self.0.finish()) << 64 | u128::from(self.1.finish())
    }
}
