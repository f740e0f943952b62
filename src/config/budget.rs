//! A budget of each host: a number, none, or what suits the crawl.

use std::fmt;

use toml::Value;
use toml::de::DeValue;

use super::setting::{Setting, expected};
use crate::scope::ScopeKind;

/// Pages of a host that are plenty for a crawl that finds its hosts by itself.
const PAGES: u64 = 10_000;

/// A budget of each host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PerHost {
    /// 10,000 pages, and ten times as many URLs, where the scope (site, any) lets the crawl find hosts by itself; none where the operator named
    /// each host.
    #[default]
    Auto,
    /// None.
    None,
    /// So many.
    Most(u64),
}

impl PerHost {
    /// The budget of pages under a scope.
    pub fn pages(self, scope: ScopeKind) -> Option<u64> {
        match self {
            PerHost::Auto => matches!(scope, ScopeKind::Site | ScopeKind::Any).then_some(PAGES),
            PerHost::None => None,
            PerHost::Most(most) => Some(most),
        }
    }

    /// The budget of URLs under a scope.
    pub fn urls(self, scope: ScopeKind) -> Option<u64> {
        match self {
            PerHost::Auto => self.pages(scope).map(|pages| pages * 10),
            other => other.pages(scope),
        }
    }
}

impl fmt::Display for PerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerHost::Auto => f.pad("auto"),
            PerHost::None => f.pad("none"),
            PerHost::Most(most) => most.fmt(f),
        }
    }
}

impl Setting for PerHost {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some("auto") => Ok(PerHost::Auto),
            Some("none") => Ok(PerHost::None),
            _ => u64::read(value)
                .map(PerHost::Most)
                .or_else(|_| expected("a whole number, \"auto\" or \"none\"", value)),
        }
    }

    fn write(&self) -> Value {
        match self {
            PerHost::Most(most) => most.write(),
            word => Value::String(word.to_string()),
        }
    }
}
