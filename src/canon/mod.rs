//! URLs: the form that is fetched and the key that is compared, kept apart.
//!
//! A [`PageUrl`] is *fetched* as it was linked: serialised by the WHATWG URL parser, without fragment and userinfo,
//! else untouched, because a server may tell apart what a standard calls equal. Whether it is *the same page* as
//! another is decided by [`PageUrl::canonical`], and stored as its [`UrlDigest`].
//!
//! The key's rules ([`VERSION`] 1; a change of any of them is a new version, since digests are stored):
//!
//! 1. The WHATWG URL serialisation: scheme and host in lower case, IDNA to ASCII, one form of IPv4 and IPv6
//!    addresses, the default port left out, dot segments resolved, `\` read as `/`, blanks around and tabs and line
//!    breaks inside removed, an empty path is `/` (WHATWG URL §4.4, §4.5; RFC 5952; RFC 3986 §6.2.3).
//! 2. No fragment (RFC 3986 §3.5: it never leaves the client) and no userinfo (never sent, never stored).
//! 3. Percent escapes of path and query have upper-case digits (RFC 3986 §6.2.2.1).
//! 4. Escapes of unreserved characters (`A-Z a-z 0-9 - . _ ~`) are decoded, no others (RFC 3986 §6.2.2.2, §2.2):
//!    `%2F` is not `/`. An escape whose decoding would complete another escape (`%%32F`) stays.
//! 5. A percent sign that begins no escape stays as it is (WHATWG URL: a validation error, no failure).
//! 6. The pairs of the query, as split at `&`, are sorted by name; pairs of one name keep their order, since servers
//!    read it. Empty pairs are dropped (WHATWG URL §5.1), and with the last of them the `?`.
//!
//! What the key never does, because it would merge pages that differ: change the case of the path, strip a trailing
//! slash, `www.` or an index file, or equate http and https.
//!
//! What it does where a crawl has asked for it ([`CanonOptions`]), because it merges pages that differ on some sites:
//! leave out session ids, tracking parameters, and parameters of an operator's own list. The fetched form keeps them.

mod host;
mod href;
mod listed;
mod options;
mod rules;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};
use url::Url;
use uuid::Uuid;

pub use host::{HostKey, SiteKey};
pub use href::HrefCache;
pub(crate) use href::without_fragment;
pub use listed::LISTS;
pub use options::{BASE, Canon, CanonOptions, IgnoreParams, Listed};
pub(crate) use rules::percent_encoded;

/// Version of the key's rules. It is stored with a crawl, whose digests are comparable within one version only.
pub const VERSION: i32 = 1;

/// How much of an unreadable URL an error repeats, in characters: enough to find it, and a log line stays a line.
const SHOWN_CHARS: usize = 200;

/// Why a text is no URL of a page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CanonError {
    /// The text is empty or blank.
    #[error("the URL is empty")]
    Empty,
    /// The WHATWG URL parser refuses the text.
    #[error("cannot read {text:?} as a URL")]
    Invalid {
        /// The text, its first 200 characters.
        text: String,
        /// What the parser says.
        #[source]
        source: url::ParseError,
    },
    /// The URL is not one of the web.
    #[error("scheme {scheme:?} is not http or https")]
    Scheme {
        /// The scheme, without colon.
        scheme: String,
    },
    /// The host is longer than a name can be: 253 characters (RFC 1035 §2.3.4).
    #[error("host {host:?} has {chars} characters, a name has 253 at most")]
    HostLength {
        /// The host, its first 200 characters.
        host: String,
        /// Its length in characters, without the root's dot.
        chars: usize,
    },
    /// An operator's URL has a user name or password in it, which would be lost. The text is not repeated.
    #[error(
        "a URL holds no user name and password here: they belong in [[hosts]] of the configuration file"
    )]
    Userinfo,
    /// The text has more parts than a host key has.
    #[error("{text:?} is not scheme, host and port alone")]
    NotAHost {
        /// The text, its first 200 characters.
        text: String,
    },
}

impl CanonError {
    fn invalid(text: &str, source: url::ParseError) -> CanonError {
        CanonError::Invalid {
            text: shown(&without_login(text)),
            source,
        }
    }
}

/// A text that may be a URL, with `***` for a user name and password in it: for messages, which go to logs.
pub(crate) fn without_login(text: &str) -> Cow<'_, str> {
    let start = text.find("//").map_or(0, |slashes| slashes + 2);
    let end = text[start..].find(['/', '?', '#']);
    let end = end.map_or(text.len(), |length| start + length);
    match text[start..end].rfind('@') {
        Some(at) => Cow::Owned(format!("{}***{}", &text[..start], &text[start + at..])),
        None => Cow::Borrowed(text),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

/// The URL of a page: absolute, http or https, without fragment and userinfo.
///
/// Cheap to clone. Equality and order of hashing are those of the fetched form ([`PageUrl::as_str`]); two URLs of one
/// page have equal [`PageUrl::digest`]s.
#[derive(Clone)]
pub struct PageUrl(Arc<Parts>);

struct Parts {
    url: Url,
    host: HostKey,
    /// With the mark of the rules that it was made by.
    digest: OnceLock<(u64, UrlDigest)>,
}

impl PageUrl {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// [`CanonError`] if the text is no absolute http or https URL, or its host is too long.
    pub fn parse(text: &str) -> Result<PageUrl, CanonError> {
        if text.trim().is_empty() {
            return Err(CanonError::Empty);
        }
        PageUrl::from_url(Url::parse(text).map_err(|source| CanonError::invalid(text, source))?)
    }

    /// Reads a URL as an operator types it: where the scheme is missing, https is meant.
    ///
    /// `example.org:8080/x` is a host and a port, `mailto:someone` is another scheme.
    ///
    /// # Errors
    /// [`CanonError`] if no http or https URL comes of it, its host is too long, or there is a user name or password in it: a page's link
    /// loses those without a word, an operator meant something by them.
    pub fn seed(text: &str) -> Result<PageUrl, CanonError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(CanonError::Empty);
        }
        let text = match rules::typed_scheme(text) {
            Some(_) => Cow::Borrowed(text),
            None => Cow::Owned(format!("https://{}", text.trim_start_matches('/'))),
        };
        let url = Url::parse(&text).map_err(|source| CanonError::invalid(&text, source))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(CanonError::Userinfo);
        }
        PageUrl::from_url(url)
    }

    /// Takes a parsed URL; its fragment and userinfo are dropped.
    ///
    /// # Errors
    /// [`CanonError::Scheme`] if it is not http or https, [`CanonError::HostLength`] if its host is too long.
    pub fn from_url(url: Url) -> Result<PageUrl, CanonError> {
        PageUrl::with_known_host(url, None)
    }

    /// Resolves a reference against this URL, as a browser does.
    ///
    /// # Errors
    /// [`CanonError`] if the reference cannot be read, leads to another scheme or to a host that is too long.
    pub fn join(&self, href: &str) -> Result<PageUrl, CanonError> {
        let url = self
            .0
            .url
            .join(href)
            .map_err(|source| CanonError::invalid(href, source))?;
        PageUrl::with_known_host(url, Some(&self.0.host))
    }

    /// `known` saves an allocation where the URL lies on that host, as most links of a page do.
    fn with_known_host(mut url: Url, known: Option<&HostKey>) -> Result<PageUrl, CanonError> {
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(CanonError::Scheme {
                scheme: shown(url.scheme()),
            });
        }
        url.set_fragment(None);
        if !url.username().is_empty() || url.password().is_some() {
            // Fails for URLs without a host alone, which are refused above.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        let host = match known {
            Some(host) if host.is_of(&url) => host.clone(),
            _ => HostKey::of(&url)?,
        };
        Ok(PageUrl(Arc::new(Parts {
            url,
            host,
            digest: OnceLock::new(),
        })))
    }

    /// The URL to fetch.
    pub fn as_url(&self) -> &Url {
        &self.0.url
    }

    /// The URL to fetch, as text; ASCII alone.
    pub fn as_str(&self) -> &str {
        self.0.url.as_str()
    }

    /// Scheme, host and port: the unit of politeness and of robots.txt (RFC 9309 §2.3).
    pub fn host(&self) -> &HostKey {
        &self.0.host
    }

    /// The first 128 bits of the SHA-256 of [`PageUrl::canonical`]: the identity of the page under these rules. Computed
    /// once, for the rules that ask first.
    pub fn digest(&self, canon: &Canon) -> UrlDigest {
        let make = || UrlDigest::of(&rules::canonical(&self.0.url, canon));
        let (mark, digest) = *self.0.digest.get_or_init(|| (canon.mark(), make()));
        match mark == canon.mark() {
            true => digest,
            false => make(),
        }
    }

    /// The compared key, after the rules of the module and these. It is a URL itself, and its own canonical form.
    pub fn canonical(&self, canon: &Canon) -> String {
        rules::canonical(&self.0.url, canon).into_owned()
    }

    /// The path of the key, without the query.
    pub(crate) fn canonical_path(&self) -> Cow<'_, str> {
        rules::escapes(self.0.url.path())
    }
}

impl PartialEq for PageUrl {
    fn eq(&self, other: &PageUrl) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl Eq for PageUrl {}

impl Hash for PageUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PageUrl").field(&self.as_str()).finish()
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The identity of a page: the first 128 bits of the SHA-256 of its canonical URL.
///
/// 128 bits, because a collision hides a page for ever: among ten thousand million URLs the chance of one is 10⁻¹⁹.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UrlDigest([u8; 16]);

impl UrlDigest {
    fn of(canonical: &str) -> UrlDigest {
        let full = Sha256::digest(canonical.as_bytes());
        let mut half = [0; 16];
        half.copy_from_slice(&full[..16]);
        UrlDigest(half)
    }

    /// The bytes, in the digest's order.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The same 128 bits under the type of the column; they are no RFC 9562 version.
impl From<UrlDigest> for Uuid {
    fn from(digest: UrlDigest) -> Uuid {
        Uuid::from_bytes(digest.0)
    }
}

impl From<Uuid> for UrlDigest {
    fn from(uuid: Uuid) -> UrlDigest {
        UrlDigest(uuid.into_bytes())
    }
}

impl fmt::Debug for UrlDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlDigest({self})")
    }
}

impl fmt::Display for UrlDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
