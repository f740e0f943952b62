//! What must not be visited whatever the rules say: entries of block and opt-out lists.
//!
//! | entry | what it covers |
//! |---|---|
//! | `example.org` | this host, over http and https, at any port |
//! | `example.org:8080` | the same at this port only |
//! | `*.example.org` | `example.org` and all hosts below it |
//! | `https://example.org/a/b` | this path and all below it, with any query, over http and https |
//! | `https://example.org/a/b?c=1` | this URL only |
//!
//! In memory an entry is 128 bits of a hash under a key of this process, as a rule of the scope is: a million of them cost some 36 MB. A URL is
//! covered if one of a few texts that it yields is an entry, so the time for it does not depend on how many there are.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::ControlFlow;

use url::Url;

use crate::canon::{BASE, HostKey, PageUrl};

/// Longest entry, in characters: the database has an index of them.
const LONGEST: usize = 2_000;

/// The entries that count.
#[derive(Debug, Default)]
pub struct Blocks {
    hashers: (RandomState, RandomState),
    entries: HashSet<u128>,
    /// Entries with a path, by their host and port: only hosts among them need a look at each of their URLs.
    paths: HashMap<u128, u32>,
}

impl Blocks {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry in the form of [`entry`]; one that is there already changes nothing.
    pub fn insert(&mut self, entry: &str) {
        if self.entries.insert(self.hash(entry))
            && let Some((authority, _)) = entry.split_once('/')
        {
            *self.paths.entry(self.hash(authority)).or_default() += 1;
        }
    }

    /// Takes an entry away; one that is not there changes nothing.
    pub fn remove(&mut self, entry: &str) {
        if self.entries.remove(&self.hash(entry))
            && let Some((authority, _)) = entry.split_once('/')
        {
            let hash = self.hash(authority);
            if let Some(count) = self.paths.get_mut(&hash) {
                *count -= 1;
                if *count == 0 {
                    self.paths.remove(&hash);
                }
            }
        }
    }

    /// The entry that covers a URL; the widest of several.
    pub fn covering(&self, url: &PageUrl) -> Option<String> {
        if self.entries.is_empty() {
            return None;
        }
        self.covering_host(url.host()).or_else(|| {
            let has_paths = self.has_paths(url.host());
            has_paths.then(|| self.first(|found| paths(url, found)))?
        })
    }

    /// The entry that covers all of a host.
    pub fn covering_host(&self, host: &HostKey) -> Option<String> {
        if self.entries.is_empty() {
            return None;
        }
        self.first(|found| hosts(host, found))
    }

    /// Whether some entries cover a part of a host.
    pub fn has_paths(&self, host: &HostKey) -> bool {
        self.paths
            .contains_key(&self.hash(&without_root(host.authority())))
    }

    fn first(
        &self,
        texts: impl FnOnce(&mut dyn FnMut(&str) -> ControlFlow<String>) -> ControlFlow<String>,
    ) -> Option<String> {
        let mut look = |text: &str| match self.entries.contains(&self.hash(text)) {
            true => ControlFlow::Break(text.to_owned()),
            false => ControlFlow::Continue(()),
        };
        texts(&mut look).break_value()
    }

    fn hash(&self, text: &str) -> u128 {
        let half = |hasher: &RandomState| u128::from(hasher.hash_one(text));
        half(&self.hashers.0) << 64 | half(&self.hashers.1)
    }
}

/// All entries that would cover a URL, the widest first.
pub fn candidates(url: &PageUrl) -> Vec<String> {
    let mut all = Vec::new();
    let mut take = |text: &str| {
        all.push(text.to_owned());
        ControlFlow::Continue(())
    };
    let _ = hosts(url.host(), &mut take);
    let _ = paths(url, &mut take);
    all
}

/// The entries that would cover a host.
fn hosts(
    host: &HostKey,
    found: &mut dyn FnMut(&str) -> ControlFlow<String>,
) -> ControlFlow<String> {
    let name = host.host();
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut text = String::with_capacity(name.len() + 8);
    // Parts of an address are none of a name, and no entry.
    for (at, _) in name.match_indices('.') {
        text.clear();
        text.push_str("*.");
        text.push_str(&name[at + 1..]);
        found(&text)?;
    }
    text.clear();
    text.push_str("*.");
    text.push_str(name);
    found(&text)?;
    found(name)?;
    text.clear();
    text.push_str(name);
    text.push_str(&format!(":{}", host.port()));
    found(&text)
}

/// The entries with a path that would cover a URL.
fn paths(url: &PageUrl, found: &mut dyn FnMut(&str) -> ControlFlow<String>) -> ControlFlow<String> {
    let path = url.canonical_path();
    let mut text = without_root(url.host().authority()).into_owned();
    for segment in path.split('/').skip(1) {
        text.push('/');
        found(&text)?;
        if !segment.is_empty() {
            text.push_str(segment);
            found(&text)?;
        }
    }
    if url.as_url().query().is_some() {
        found(&without_root(without_scheme(&url.canonical(&BASE))))?;
    }
    ControlFlow::Continue(())
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// A host with its port and what follows, without the root's dot: both spellings are one host.
fn without_root(text: &str) -> Cow<'_, str> {
    let end = text.find('/').unwrap_or(text.len());
    // No colon of an IPv6 address: behind one of a port there is no bracket.
    let port = text[..end]
        .rfind(':')
        .filter(|at| !text[*at..end].contains(']'));
    let (host, rest) = text.split_at(port.unwrap_or(end));
    match host.strip_suffix('.') {
        Some(host) => Cow::Owned([host, rest].concat()),
        None => Cow::Borrowed(text),
    }
}

/// Reads a line of a list: an entry in its one form, or `None` for a blank line or a comment (`#` at its start or after a
/// space).
///
/// # Errors
/// What is wrong with it, in words.
pub fn entry(line: &str) -> Result<Option<String>, String> {
    let text = line.trim().trim_start_matches('\u{feff}');
    let text = text
        .find([' ', '\t'])
        .filter(|at| text[*at..].trim_start().starts_with('#'))
        .map_or(text, |at| &text[..at]);
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let rest = without_scheme(text);
    let found = match rest.contains('/') || rest.len() < text.len() {
        true => {
            let url = PageUrl::seed(text).map_err(|error| error.to_string())?;
            without_root(without_scheme(&url.canonical(&BASE))).into_owned()
        }
        false => host_entry(rest)?,
    };
    match found.chars().count() <= LONGEST {
        true => Ok(Some(found)),
        false => Err(format!("longer than {LONGEST} characters")),
    }
}

fn host_entry(text: &str) -> Result<String, String> {
    let no_entry = || format!("{text:?} is neither a host, nor *.name, nor a URL");
    let (below, host) = match text.strip_prefix("*.") {
        Some(host) => (true, host),
        None => (false, text),
    };
    let url = Url::parse(&format!("http://{host}/")).map_err(|_| no_entry())?;
    let name = url.host_str().unwrap_or_default();
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() || host.contains(['?', '#', '@', '\\', '*', ' ']) {
        return Err(no_entry());
    }
    let port = url.port().or(host.ends_with(":80").then_some(80));
    match (below, port) {
        (true, None) => Ok(format!("*.{name}")),
        (true, Some(_)) => Err(no_entry()),
        (false, None) => Ok(name.to_owned()),
        (false, Some(port)) => Ok(format!("{name}:{port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(entries: &[&str], url: &str) -> Option<String> {
        let mut blocks = Blocks::default();
        for line in entries {
            blocks.insert(&entry(line).unwrap().unwrap());
        }
        let url = PageUrl::parse(url).unwrap();
        let found = blocks.covering(&url);
        assert!(
            found
                .as_ref()
                .is_none_or(|found| candidates(&url).contains(found))
        );
        found
    }

    #[test]
    fn an_entry_covers_what_it_says_and_nothing_beside_it() {
        for (entry, covered, beside) in [
            (
                "Example.ORG",
                &[
                    "http://example.org/a",
                    "https://example.org:8443/",
                    "http://example.org./",
                ][..],
                &["http://www.example.org/", "http://example.org.test/"][..],
            ),
            (
                "example.org:8080 # why",
                &["http://example.org:8080/a"],
                &["http://example.org/", "http://example.org:808/"],
            ),
            (
                "example.org:80",
                &["http://example.org/"],
                &["https://example.org/"],
            ),
            (
                "*.example.org",
                &["http://example.org/", "https://a.b.example.org:81/x"],
                &["http://notexample.org/", "http://org/"],
            ),
            (
                "*.bücher.example",
                &["http://a.xn--bcher-kva.example/"],
                &["http://a.example/"],
            ),
            (
                "https://example.org/a/b",
                &[
                    "http://example.org/a/b",
                    "https://example.org/a/b/",
                    "https://example.org/a/b/c?d",
                    "https://example.org/a/b?x=1",
                    "https://example.org./a/b",
                ],
                &[
                    "https://example.org/a/bc",
                    "https://example.org/a",
                    "https://example.org:81/a/b",
                    "https://www.example.org/a/b",
                ],
            ),
            (
                "example.org/a/",
                &["https://example.org/a/", "http://example.org/a/b"],
                &["https://example.org/a"],
            ),
            (
                "example.org/%7ea",
                &["http://example.org/~a/b"],
                &["http://example.org/"],
            ),
            (
                "http://example.org",
                &["https://example.org/x"],
                &["http://example.org:81/x"],
            ),
            (
                "http://example.org.:81/a",
                &["http://example.org:81/a", "http://example.org.:81/a/b"],
                &["http://example.org./a", "http://example.org:81/"],
            ),
            (
                "example.org/a?y=2&x=1",
                &[
                    "http://example.org/a?x=1&y=2",
                    "http://example.org./a?x=1&y=2",
                ],
                &["http://example.org/a", "http://example.org/a?x=1"],
            ),
            (
                "127.0.0.1",
                &["http://127.0.0.1:81/"],
                &["http://1.127.0.0/"],
            ),
            ("[::1]", &["http://[0::1]:81/"], &["http://[::2]/"]),
        ] {
            for url in covered {
                assert!(covers(&[entry], url).is_some(), "{entry}: {url}");
            }
            for url in beside {
                assert_eq!(covers(&[entry], url), None, "{entry}: {url}");
            }
        }
        let several = ["example.org/a", "*.example.org", "example.org"];
        assert_eq!(
            covers(&several, "http://example.org/a").as_deref(),
            Some("*.example.org")
        );
    }

    #[test]
    fn comments_and_blank_lines_say_nothing_and_what_is_no_entry_is_told() {
        for line in ["", "  ", "# all", "\t# x", "\u{feff}# x"] {
            assert_eq!(entry(line), Ok(None), "{line:?}");
        }
        assert_eq!(
            entry("\u{feff}a.test\r").unwrap().as_deref(),
            Some("a.test")
        );
        for line in [
            "0.0.0.0 ads.example",
            "a b",
            "*",
            "*.",
            "*.a.test:80",
            "a@b",
            "ftp://a.test/",
            "a*b.test",
            "http://u:p@a.test/",
            "a.test:99999",
        ] {
            assert!(entry(line).is_err(), "{line:?}: {:?}", entry(line));
        }
        assert!(entry(&format!("a.test/{}", "x".repeat(2_000))).is_err());
    }

    #[test]
    fn what_is_taken_away_covers_nothing_more() {
        let mut blocks = Blocks::default();
        let (host, a, b) = ("a.test", "b.test/a", "b.test/b");
        for text in [host, a, b, b] {
            blocks.insert(text);
        }
        assert_eq!(blocks.len(), 3);
        let key = HostKey::parse("http://b.test").unwrap();
        assert!(blocks.has_paths(&key) && blocks.covering_host(&key).is_none());
        for text in [b, b, host, "c.test/x"] {
            blocks.remove(text);
        }
        assert!(blocks.has_paths(&key));
        blocks.remove(a);
        assert!(!blocks.has_paths(&key) && blocks.is_empty());
    }
}
