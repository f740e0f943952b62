//! What a robots.txt answer means for us (RFC 9309).
//!
//! `robotxt` parses and matches; nothing of it leaks. Before it come the repairs that it leaves to its caller: files in
//! UTF-16, agent lines with a version, and the characters `*` and `$` where they are meant literally.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use url::{Position, Url};

/// The longest crawl delay that is honoured. Above it a host would be hardly crawled at all; its owner is better
/// served by a rule that forbids.
const MAX_CRAWL_DELAY: Duration = Duration::from_secs(300);

/// The spellings of the agent line's key, as `robotxt` accepts them.
const AGENT_KEYS: [&[u8]; 3] = [b"user-agent", b"user agent", b"useragent"];

/// The rules of one robots.txt for one product token. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Robots(Arc<robotxt::Robots>);

/// Whether a URL may be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// It may not.
    Disallowed {
        /// The line that decided, its path in normal form: `disallow: /private/`.
        rule: String,
    },
}

/// What the answer to a request for robots.txt means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The body holds rules.
    Rules,
    /// There are none: all is allowed.
    AllowAll,
    /// Not known now: nothing may be fetched until robots.txt is had.
    Defer,
}

/// Judges the status of the answer to a request for robots.txt; `None`: there was no answer.
///
/// RFC 9309 §2.3.1: with 2xx the body counts, with 4xx (401 and 403 too) and after too many redirects all is allowed,
/// with 5xx and without an answer nothing is. 429 is told apart, as Nutch and StormCrawler do: just the server that is
/// asked too often must not be taken for one without rules (the RFC leaves it open with a MAY).
pub fn access(status: Option<u16>) -> Access {
    match status {
        Some(200..=299) => Access::Rules,
        Some(429) => Access::Defer,
        Some(300..=499) => Access::AllowAll,
        _ => Access::Defer,
    }
}

impl Robots {
    /// Reads a robots.txt for a product token (RFC 9309 §2.2.1; compared without regard to case, a version after `/`
    /// does not count). The first 500 KiB are read; no bytes are an error.
    pub fn parse(body: &[u8], token: &str) -> Robots {
        let body = in_utf8(body);
        let token = String::from_utf8_lossy(product(token.as_bytes()));
        Robots(Arc::new(robotxt::Robots::parse(&repaired(&body), &*token)))
    }

    /// No rules.
    pub fn allow_all() -> Robots {
        Robots(Arc::new(robotxt::Robots::allow_all()))
    }

    /// Judges a URL of the host whose rules these are. The time is linear in the URL's length for each rule.
    pub fn judge(&self, url: &Url) -> Verdict {
        let path = literal(&url[Position::BeforePath..Position::AfterQuery]);
        if self.0.is_allowed(&path) {
            return Verdict::Allowed;
        }
        let pattern = self
            .0
            .matching_rule(&path)
            .map_or("/", robotxt::Rule::pattern);
        Verdict::Disallowed {
            rule: format!("disallow: {pattern}"),
        }
    }

    /// The delay between fetches that the file asks for, at most 300 s. Not in the RFC, yet widely used.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.0.crawl_delay().map(|delay| delay.min(MAX_CRAWL_DELAY))
    }

    /// The absolute URLs of the file's sitemap lines (sitemaps.org), in its order; they may lie on other hosts.
    pub fn sitemaps(&self) -> Vec<String> {
        self.0
            .sitemaps()
            .iter()
            .map(|url| url.as_str().to_owned())
            .collect()
    }
}

/// The file without byte-order mark, decoded if the mark says UTF-16.
fn in_utf8(body: &[u8]) -> Cow<'_, [u8]> {
    match encoding_rs::Encoding::for_bom(body) {
        Some((encoding, mark)) if encoding == encoding_rs::UTF_8 => Cow::Borrowed(&body[mark..]),
        Some((encoding, mark)) => {
            let (text, _) = encoding.decode_without_bom_handling(&body[mark..]);
            Cow::Owned(text.into_owned().into_bytes())
        }
        None => Cow::Borrowed(body),
    }
}

/// The file with each agent line's version cut off, and each `$` that is no end mark escaped.
fn repaired(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    for line in body.split_inclusive(|byte| matches!(byte, b'\r' | b'\n' | b'\0')) {
        let (text, end) = match line.split_last() {
            Some((b'\r' | b'\n' | b'\0', text)) => (text, &line[text.len()..]),
            _ => (line, &[][..]),
        };
        let text = text
            .split(|byte| *byte == b'#')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        match agent_value(text) {
            Some(value) => {
                out.extend_from_slice(b"user-agent: ");
                out.extend_from_slice(product(value));
            }
            None => match text.split_last() {
                Some((last, head)) if head.contains(&b'$') && !is_sitemap(text) => {
                    head.iter().for_each(|byte| match byte {
                        b'$' => out.extend_from_slice(b"%24"),
                        _ => out.push(*byte),
                    });
                    out.push(*last);
                }
                _ => out.extend_from_slice(text),
            },
        }
        out.extend_from_slice(end);
    }
    out
}

/// The value of an agent line, if the line is one.
fn agent_value(line: &[u8]) -> Option<&[u8]> {
    let key = AGENT_KEYS.iter().find(|key| {
        line.get(..key.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(key))
    })?;
    let rest = &line[key.len()..];
    let value = rest.trim_ascii_start();
    match value.strip_prefix(b":") {
        Some(value) => Some(value.trim_ascii()),
        None if value.len() < rest.len() => Some(value),
        None => None,
    }
}

/// Whether the line names a sitemap, in any of the spellings that `robotxt` accepts.
fn is_sitemap(line: &[u8]) -> bool {
    line.get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"site"))
}

/// The product token of `ourbot/1.0 (comment)`.
fn product(agent: &[u8]) -> &[u8] {
    agent
        .trim_ascii()
        .split(|byte| *byte == b'/' || byte.is_ascii_whitespace())
        .next()
        .unwrap_or_default()
}

/// A path whose stars and dollar signs are escaped: in a rule `%2A` means a star, and `*` anything (RFC 9309 §2.2.3).
fn literal(path: &str) -> Cow<'_, str> {
    if path.contains(['*', '$']) {
        Cow::Owned(path.replace('*', "%2A").replace('$', "%24"))
    } else {
        Cow::Borrowed(path)
    }
}

#[cfg(test)]
mod tests;
