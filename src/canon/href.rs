//! The cache of resolved links: the navigation that each page of a host repeats costs one look-up.

use std::fmt;

use quick_cache::unsync::Cache;
use url::{Position, Url};

use super::PageUrl;

/// Entries of a cache made by default: the navigation of some dozens of hosts.
const DEFAULT_ENTRIES: usize = 8192;

/// The longest key that is kept, in bytes. Longer links are hardly repeated, and so the cache is bounded in bytes too
/// (about 2 KiB an entry at worst, 400 bytes as a rule).
const MAX_KEY_BYTES: usize = 512;

/// Resolves links, remembering those it has seen.
///
/// The key is the reference *and* all of the base that its resolution can depend on, so a hit is always right:
/// nothing for `http://…` and `https://…`, scheme and authority for `/…`, all up to the last slash of the path for
/// other relative references. What depends on more (`?…`, an empty reference, `http:x`, inner tabs and line breaks,
/// which the parser removes) is never cached.
pub struct HrefCache {
    known: Cache<Box<str>, Option<PageUrl>>,
    /// The key under construction; kept to save its allocation.
    key: String,
}

impl HrefCache {
    /// A cache of at most so many links.
    pub fn new(entries: usize) -> HrefCache {
        HrefCache {
            known: Cache::new(entries),
            key: String::new(),
        }
    }

    /// Resolves a reference, already free of character references, against a base; `None` if no page comes of it.
    pub fn resolve(&mut self, base: &Url, href: &str) -> Option<PageUrl> {
        let href = without_fragment(href);
        let Some(context) = context(base, href) else {
            return join(base, href);
        };
        self.key.clear();
        self.key.push_str(context);
        // Neither side contains a line break, so the key can be read in one way only.
        self.key.push('\n');
        self.key.push_str(href);
        if self.key.len() > MAX_KEY_BYTES {
            return join(base, href);
        }
        if let Some(known) = self.known.get(self.key.as_str()) {
            return known.clone();
        }
        let resolved = join(base, href);
        self.known
            .insert(self.key.as_str().into(), resolved.clone());
        resolved
    }
}

impl Default for HrefCache {
    fn default() -> HrefCache {
        HrefCache::new(DEFAULT_ENTRIES)
    }
}

impl fmt::Debug for HrefCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HrefCache")
            .field("entries", &self.known.len())
            .finish_non_exhaustive()
    }
}

fn join(base: &Url, href: &str) -> Option<PageUrl> {
    if is_other_scheme(href) {
        return None;
    }
    PageUrl::from_url(base.join(href).ok()?).ok()
}

/// The reference without the blanks around it, which the URL parser strips, and without its fragment.
pub(crate) fn without_fragment(href: &str) -> &str {
    let is_stripped = |byte: Option<&u8>| byte.is_some_and(|byte| *byte <= b' ');
    let mut href = href;
    if is_stripped(href.as_bytes().first()) || is_stripped(href.as_bytes().last()) {
        href = href.trim_matches(|c: char| c <= ' ');
    }
    match memchr::memchr(b'#', href.as_bytes()) {
        // Blanks before the `#` belong to the path or query: they must not come to stand at the end.
        Some(end) if !is_stripped(href.as_bytes()[..end].last()) => &href[..end],
        _ => href,
    }
}

/// The part of the base that decides, together with the reference, what the reference means; `None`: not cacheable.
fn context<'a>(base: &'a Url, href: &str) -> Option<&'a str> {
    let broken = memchr::memchr3(b'\t', b'\n', b'\r', href.as_bytes());
    if base.cannot_be_a_base() || broken.is_some() {
        return None;
    }
    let bytes = href.as_bytes();
    match bytes.first()? {
        b'?' | b'#' => None,
        b'/' | b'\\' => Some(&base[..Position::BeforePath]),
        _ if has_prefix(bytes, b"http://") || has_prefix(bytes, b"https://") => Some(""),
        // With the scheme of the base and no slashes this is a relative reference (WHATWG URL §4.4, scheme state).
        _ if has_prefix(bytes, b"http:") || has_prefix(bytes, b"https:") => None,
        _ => {
            let path = &base[..Position::AfterPath];
            memchr::memrchr(b'/', path.as_bytes()).map(|slash| &path[..=slash])
        }
    }
}

/// Whether the reference is absolute and leads out of the web (`mailto:`, `javascript:`, `data:`…), which spares the
/// parser megabytes of inline images.
fn is_other_scheme(href: &str) -> bool {
    let end = href.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
    let Some((scheme, rest)) = end.and_then(|end| href.split_at_checked(end)) else {
        return false;
    };
    rest.starts_with(':')
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && !scheme.eq_ignore_ascii_case("http")
        && !scheme.eq_ignore_ascii_case("https")
}

fn has_prefix(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes
        .get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
