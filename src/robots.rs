//! What a robots.txt answer means for us (RFC 9309; docs/RFC9309.md goes through it clause by clause).
//!
//! `file` finds the records of a file, however it is encoded and its lines end; `group` picks those that concern us, and
//! keeps their lines, so that each "no" can be shown. Patterns are `robotxt`'s: it brings them into normal form, puts
//! them in order and matches them (`rules`). Nothing of it leaks.

mod file;
mod group;
mod rules;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use url::{Position, Url};

use file::{Key, Record};
use group::Group;
use rules::Rules;

pub use file::MOST_BYTES;

/// The longest crawl delay that is honoured. Above it a host would be hardly crawled at all; its owner is better
/// served by a rule that forbids.
pub const MAX_CRAWL_DELAY: Duration = Duration::from_secs(300);

/// What an entry of a list takes beside its text, in bytes, about: its head, and what an allocation wastes.
const ENTRY_BYTES: usize = 48;

/// How much Content-Usage lines of one path are joined, in bytes, beyond which no further line is added: four for each of
/// the 1,000 characters that are stored with a page.
const MOST_SAID: usize = 4_000;

/// The rules of one robots.txt for one product token. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Robots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Rules,
    delay: Option<Duration>,
    sitemaps: Vec<String>,
    usage: Option<Usage>,
}

/// The Content-Usage lines: their paths as rules that allow, and what is said for each.
#[derive(Debug)]
struct Usage {
    paths: Rules,
    said: HashMap<String, String>,
}

/// A line of a robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its place in the file, from 1; CR LF ends one line.
    pub number: usize,
    /// What it says, comment and all, without white space around it.
    pub text: String,
}

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

/// What came of a request for robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// An answer with this status.
    Status(u16),
    /// More redirects than are followed.
    RedirectsWithoutEnd,
    /// None.
    Silence,
}

/// Judges what came of a request for robots.txt.
///
/// RFC 9309 §2.3.1: with 2xx the body counts, with 4xx (401 and 403 too) and after too many redirects all is allowed,
/// with 5xx and without an answer nothing is. 429 is told apart, as Nutch and StormCrawler do: just the server that is
/// asked too often must not be taken for one without rules (the RFC leaves it open with a MAY). A redirect that leads
/// nowhere and a 304 that nobody asked for say nothing of rules, and the RFC does not speak of them.
pub fn access(answer: Answer) -> Access {
    match answer {
        Answer::Status(200..=299) => Access::Rules,
        Answer::Status(429) => Access::Defer,
        Answer::Status(400..=499) | Answer::RedirectsWithoutEnd => Access::AllowAll,
        Answer::Status(_) | Answer::Silence => Access::Defer,
    }
}

impl Robots {
    /// Reads a robots.txt for a product token (RFC 9309 §2.2.1; compared without regard to case, a version after `/`
    /// does not count). The first [`MOST_BYTES`] are read; no bytes are an error.
    pub fn parse(body: &[u8], token: &str) -> Robots {
        let text = file::text(body);
        let group = Group::of(&text, token);
        Robots(Arc::new(Inner {
            rules: Rules::of(&group.rules),
            delay: group.delay,
            sitemaps: group::sitemaps(&text),
            usage: Usage::of(&group.usage),
        }))
    }

    /// No rules.
    pub fn allow_all() -> Robots {
        Robots::parse(b"", "")
    }

    /// Judges a URL of the host whose rules these are. How long that takes is [`work`](Robots::work)'s to say.
    pub fn judge(&self, url: &Url) -> Verdict {
        let path = path(url);
        if self.0.rules.allow(&path) {
            return Verdict::Allowed;
        }
        let decided = self.0.rules.deciding(&path);
        let pattern = decided.map_or("/", robotxt::Rule::pattern);
        Verdict::Disallowed {
            rule: format!("disallow: {pattern}"),
        }
    }

    /// The line that decides about a URL, in the file that these rules are from; none where no rule matches it, and for
    /// `/robots.txt` itself.
    pub fn deciding_line(body: &[u8], token: &str, url: &Url) -> Option<Line> {
        let text = file::text(body);
        let group = Group::of(&text, token);
        let path = path(url);
        let rules = Rules::of(&group.rules);
        if path == "/robots.txt" {
            return None;
        }
        let decided = rules.deciding(&path)?;
        let record = group
            .rules
            .iter()
            .find(|record| Rules::of(std::slice::from_ref(*record)).first() == Some(decided))?;
        Some(Line {
            number: record.number,
            text: String::from_utf8_lossy(record.line).into_owned(),
        })
    }

    /// How much there is to look at for a URL of this many characters, in bytes: every pattern, and for each that has a
    /// star the URL. Neither is gone over more than a few times; a byte takes six nanoseconds at worst, and most take
    /// none.
    pub fn work(&self, characters: usize) -> usize {
        let size = self.0.rules.size();
        size.starred
            .saturating_mul(characters)
            .saturating_add(size.bytes + size.count)
    }

    /// About how much memory it takes, in bytes.
    pub fn size_bytes(&self) -> usize {
        let said = self.0.usage.as_ref().map_or(0, |usage| {
            let said = usage.said.iter();
            let said = said.map(|(path, said)| path.len() + said.len() + ENTRY_BYTES);
            said.sum::<usize>() + usage.paths.size_bytes()
        });
        let sitemaps = self.0.sitemaps.iter().map(|url| url.len() + ENTRY_BYTES);
        self.0.rules.size_bytes() + said + sitemaps.sum::<usize>()
    }

    /// The delay between fetches that the file asks for, at most [`MAX_CRAWL_DELAY`]; of several the longest. Not in the
    /// RFC, yet widely used.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.asked_delay().map(|delay| delay.min(MAX_CRAWL_DELAY))
    }

    /// The delay that it asks for, however long.
    pub fn asked_delay(&self) -> Option<Duration> {
        self.0.delay
    }

    /// The absolute URLs of the file's sitemap lines (sitemaps.org), in its order; they may lie on other hosts.
    pub fn sitemaps(&self) -> &[String] {
        &self.0.sitemaps
    }

    /// What the file says of the use of a page's content: `train-ai=n`. Of several lines the one with the longest path
    /// that matches (draft-ietf-aipref-attach §3); with the same path all of them, joined with `, `.
    pub fn content_usage(&self, url: &Url) -> Option<&str> {
        let usage = self.0.usage.as_ref()?;
        let rule = usage.paths.deciding(&path(url))?;
        usage.said.get(rule.pattern()).map(String::as_str)
    }
}

impl Usage {
    fn of(records: &[Record<'_>]) -> Option<Usage> {
        let mut said: HashMap<String, String> = HashMap::new();
        let mut paths = Vec::new();
        for record in records {
            let (path, preference) = match record.value.iter().position(u8::is_ascii_whitespace) {
                Some(end) if record.value.starts_with(b"/") => record.value.split_at(end),
                // A path without a preference says nothing.
                None if record.value.starts_with(b"/") => continue,
                _ => (&b"/"[..], record.value),
            };
            let preference = String::from_utf8_lossy(preference.trim_ascii());
            let rule = Record {
                key: Key::Allow,
                value: path,
                ..*record
            };
            let normal = Rules::of(std::slice::from_ref(&rule));
            let Some(pattern) = normal.first().map(robotxt::Rule::pattern) else {
                continue;
            };
            if preference.is_empty() {
                continue;
            }
            match said.get_mut(pattern) {
                Some(known) if known.len() >= MOST_SAID => {}
                Some(known) => {
                    known.push_str(", ");
                    known.push_str(&preference);
                }
                None => {
                    said.insert(pattern.to_owned(), preference.into_owned());
                    paths.push(rule);
                }
            }
        }
        (!paths.is_empty()).then(|| Usage {
            paths: Rules::of(&paths),
            said,
        })
    }
}

/// Path and query as they are sent. Stars and dollar signs are escaped: in a rule `%2A` means a star, and `*` anything
/// (RFC 9309 §2.2.3). So is the apostrophe, which the URL standard escapes in queries, unlike the people who write rules.
fn path(url: &Url) -> Cow<'_, str> {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    if path.contains(['*', '$', '\'']) {
        Cow::Owned(
            path.replace('*', "%2A")
                .replace('$', "%24")
                .replace('\'', "%27"),
        )
    } else {
        Cow::Borrowed(path)
    }
}

#[cfg(test)]
mod tests;
