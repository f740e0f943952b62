//! A robots.txt as lines, and the lines as records (RFC 9309 §2.2).

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How much of a file is read, in bytes as served: RFC 9309 §2.5 asks for at least 500 KiB.
pub const MOST_BYTES: usize = 512 * 1024;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
    ContentUsage,
}

/// The spellings of each key; the wrong ones are those that Google's parser takes, too.
const SPELLINGS: [(&[u8], Key); 19] = [
    (b"user-agent", Key::UserAgent),
    (b"user agent", Key::UserAgent),
    (b"useragent", Key::UserAgent),
    (b"allow", Key::Allow),
    (b"alow", Key::Allow),
    (b"allaw", Key::Allow),
    (b"disallow", Key::Disallow),
    (b"dissallow", Key::Disallow),
    (b"dissalow", Key::Disallow),
    (b"disalow", Key::Disallow),
    (b"diasllow", Key::Disallow),
    (b"disallaw", Key::Disallow),
    (b"crawl-delay", Key::CrawlDelay),
    (b"crawl delay", Key::CrawlDelay),
    (b"crawldelay", Key::CrawlDelay),
    (b"sitemap", Key::Sitemap),
    (b"site-map", Key::Sitemap),
    (b"site map", Key::Sitemap),
    (b"content-usage", Key::ContentUsage),
];

/// A line that says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// Its place in the file, from 1.
    pub(super) number: usize,
    /// All of it, without white space around it.
    pub(super) line: &'a [u8],
    pub(super) key: Key,
    /// What follows the key, without comment and white space around it.
    pub(super) value: &'a [u8],
}

/// The file in UTF-8 without its byte-order mark, and without a last line that our own limit may have cut: half a path
/// is a rule for more than was meant.
pub(super) fn text(body: &[u8]) -> Cow<'_, [u8]> {
    let is_whole = body.len() < MOST_BYTES;
    let text = in_utf8(&body[..body.len().min(MOST_BYTES)]);
    if is_whole {
        return text;
    }
    let end = text
        .iter()
        .rposition(|byte| matches!(byte, b'\r' | b'\n'))
        .map_or(0, |at| at + 1);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

/// UTF-16 is told by its mark, or by the NUL in each of the first two characters, which are ASCII in any such file.
fn in_utf8(body: &[u8]) -> Cow<'_, [u8]> {
    let (encoding, mark) = match (Encoding::for_bom(body), body) {
        (Some(found), _) => found,
        (None, [1..=0x7F, 0, 1..=0x7F, 0, ..]) => (UTF_16LE, 0),
        (None, [0, 1..=0x7F, 0, 1..=0x7F, ..]) => (UTF_16BE, 0),
        _ => (UTF_8, 0),
    };
    let body = &body[mark..];
    if encoding == UTF_8 {
        // Not decoded: a stray byte is a byte of a path like any other (RFC 9309 §2.2.2).
        return Cow::Borrowed(body);
    }
    let (text, _) = encoding.decode_without_bom_handling(body);
    Cow::Owned(text.into_owned().into_bytes())
}

/// The records of a text from [`text`], in its order.
pub(super) fn records(text: &[u8]) -> impl Iterator<Item = Record<'_>> {
    lines(text)
        .zip(1..)
        .filter_map(|(line, number)| record(line, number))
}

/// Lines end with CR, LF or both (RFC 9309 §2.2).
fn lines(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after
            .strip_prefix(b"\r\n")
            .or_else(|| after.get(1..))
            .unwrap_or_default();
        Some(line)
    })
}

fn record(line: &[u8], number: usize) -> Option<Record<'_>> {
    // What follows a NUL is padding, or no text at all.
    let line = line.split(|byte| *byte == 0).next()?.trim_ascii();
    let said = line.split(|byte| *byte == b'#').next()?.trim_ascii_end();
    let (spelling, key) = SPELLINGS.iter().find(|(spelling, _)| {
        said.get(..spelling.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(spelling))
    })?;
    // A colon, or white space where somebody forgot it.
    let rest = &said[spelling.len()..];
    let after = rest.trim_ascii_start();
    let value = match after.strip_prefix(b":") {
        Some(value) => value.trim_ascii_start(),
        None if after.len() < rest.len() => after,
        None => return None,
    };
    Some(Record {
        number,
        line,
        key: *key,
        value,
    })
}
