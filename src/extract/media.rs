//! Media types: what the header says, and a look at the bytes where it says nothing (MIME Sniffing standard).

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::{Wants, prescan};

/// The longest media type believed, in bytes: twice RFC 6838's 127 for type and subtype, and the slash.
const MAX_TYPE_BYTES: usize = 255;

/// How many bytes are looked at (MIME Sniffing §5.2: the resource header is 1,445 bytes).
const SNIFFED_BYTES: usize = 1445;

/// How a page that starts thus begins in HTML (MIME Sniffing §7.1; the last three are ours, for fragments).
const HTML_STARTS: [&[u8]; 19] = [
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a",
    b"<style",
    b"<title",
    b"<b",
    b"<body",
    b"<br",
    b"<p",
    b"<meta",
    b"<link",
    b"<ul",
];

/// How a body is marked up, and so where its encoding and its links are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markup {
    /// HTML, and XHTML, which is read as HTML.
    Html,
    /// A feed in XML.
    Feed,
    /// A JSON Feed.
    JsonFeed,
    /// Other XML.
    Xml,
    /// A style sheet.
    Css,
    /// Plain text.
    Text,
    /// Other text.
    Other,
}

impl Markup {
    /// The markup of a body of this type; none where it is not read as text.
    pub(super) fn of(media_type: Option<&str>, body: &[u8], wants: &Wants) -> Option<Markup> {
        let head = &body[..body.len().min(SNIFFED_BYTES)];
        let markup = match media_type {
            Some("text/html") if is_feed(head) => Markup::Feed,
            Some("text/html" | "application/xhtml+xml") => Markup::Html,
            Some("application/rss+xml" | "application/atom+xml") => Markup::Feed,
            Some("application/feed+json") => Markup::JsonFeed,
            Some("text/css") => Markup::Css,
            Some("text/plain") => Markup::Text,
            Some("image/svg+xml") if wants.assets => Markup::Html,
            Some(name) if is_xml(name) => {
                let is_xhtml = memchr::memmem::find(head, b"http://www.w3.org/1999/xhtml")
                    .is_some()
                    && memchr::memmem::find(head, b"<html").is_some();
                match () {
                    () if is_xhtml => Markup::Html,
                    () if is_feed(head) => Markup::Feed,
                    () => Markup::Xml,
                }
            }
            _ => Markup::Other,
        };
        let is_read = markup != Markup::Other || is_wanted(media_type);
        is_read.then_some(markup)
    }

    /// Whether it begins with an XML declaration, if with any.
    pub(super) fn is_xml(self) -> bool {
        matches!(self, Markup::Xml | Markup::Feed)
    }
}

/// Whether this is the head of a feed (MIME Sniffing §7.3, also for what is served as `text/html`).
fn is_feed(head: &[u8]) -> bool {
    let has = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    match root_name(head) {
        Some(b"rss" | b"feed") => true,
        Some(b"RDF") => has(b"http://purl.org/rss/1.0/") || has(b"http://my.netscape.com/rdf/"),
        _ => false,
    }
}

/// The name of the first element, without its prefix: behind declarations and comments.
fn root_name(head: &[u8]) -> Option<&[u8]> {
    let mut rest = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    loop {
        rest = rest.trim_ascii_start().strip_prefix(b"<")?;
        let end: &[u8] = match rest {
            [b'?', ..] => b"?>",
            [b'!', b'-', b'-', ..] => b"-->",
            [b'!', ..] => b">",
            _ => break,
        };
        rest = &rest[memchr::memmem::find(rest, end)? + end.len()..];
    }
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
    let name = &rest[..rest.iter().position(is_end)?];
    Some(match name.iter().position(|byte| *byte == b':') {
        Some(colon) => &name[colon + 1..],
        None => name,
    })
}

/// Types by which servers say that they do not know (MIME Sniffing §5.1); `*/*` is none anyway.
const UNKNOWN: [&str; 2] = ["unknown/unknown", "application/unknown"];

/// The media type that the header names: type and subtype in lower case; none where it says that it does not know; the last field that holds one counts, as in
/// the Fetch standard. Sloppy fields are read: doubled semicolons, capitals, a blank or comma for a semicolon.
pub fn media_type(headers: &HeaderMap) -> Option<String> {
    fields(headers)
        .filter_map(|field| essence(&field))
        .next_back()
        .filter(|name| !UNKNOWN.contains(&name.as_str()))
}

/// Whether a body of this type is read: HTML, XHTML, XML, text and JSON Feed; a missing type may be one of them. Others are
/// cut after the headers.
pub fn is_wanted(media_type: Option<&str>) -> bool {
    media_type.is_none_or(|name| {
        name.starts_with("text/") || is_xml(name) || name == "application/feed+json"
    })
}

/// Types of assets that do not begin as pictures, sounds, films and fonts do.
const ASSET_TYPES: [&str; 10] = [
    "application/ecmascript",
    "application/font-woff",
    "application/javascript",
    "application/json",
    "application/manifest+json",
    "application/octet-stream",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-font-ttf",
    "application/x-javascript",
];

/// The same where assets are wanted: also pictures, sounds, films, fonts, scripts. Documents and archives are cut as before.
pub fn is_wanted_or_asset(media_type: Option<&str>) -> bool {
    is_wanted(media_type)
        || media_type.is_some_and(|name| {
            ["image/", "audio/", "video/", "font/"]
                .iter()
                .any(|main| name.starts_with(main))
                || ASSET_TYPES.contains(&name)
        })
}

/// XML types (RFC 7303) but images, which have no pages behind their links.
fn is_xml(name: &str) -> bool {
    matches!(name, "application/xml" | "text/xml")
        || (name.ends_with("+xml") && name.starts_with("application/"))
}

fn fields(headers: &HeaderMap) -> impl DoubleEndedIterator<Item = String> {
    headers
        .get_all(CONTENT_TYPE)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn essence(field: &str) -> Option<String> {
    let name = field.trim().split([';', ',', ' ', '\t']).next()?;
    let (main, sub) = name.split_once('/')?;
    let is_token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let believed = is_token(main)
        && is_token(sub)
        && main != "*"
        && sub != "*"
        && name.len() <= MAX_TYPE_BYTES;
    believed.then(|| name.to_ascii_lowercase())
}

/// The `charset` parameter of the header: as MIME Sniffing §4.4 reads it, else as `<meta>` is read, for fields so broken
/// that they have no parameters.
pub fn charset(headers: &HeaderMap) -> Option<String> {
    fields(headers)
        .filter_map(|field| parameter(&field, "charset").or_else(|| prescan::in_content(&field)))
        .next_back()
}

pub(super) fn parameter(field: &str, wanted: &str) -> Option<String> {
    let mut rest = field.split_once(';')?.1;
    loop {
        rest = rest.trim_start_matches(|c: char| c == ';' || c.is_ascii_whitespace());
        let end = rest.find([';', '='])?;
        let (name, after) = rest.split_at(end);
        let Some(after) = after.strip_prefix('=') else {
            rest = after;
            continue;
        };
        let value;
        (value, rest) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let (value, rest) = after.split_at(after.find(';').unwrap_or(after.len()));
                (value.trim_end().to_owned(), rest)
            }
        };
        if name.eq_ignore_ascii_case(wanted) && !value.is_empty() {
            return Some(value);
        }
    }
}

/// The value of a quoted string after its opening quote, and what follows it up to the next semicolon.
fn unquote(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                let rest = &quoted[at + 1..];
                return (value, &rest[rest.find(';').unwrap_or(rest.len())..]);
            }
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            _ => value.push(c),
        }
    }
    (value, "")
}

/// The type that the bytes look like; asked only where the header names none (MIME Sniffing §7.1, "unknown type").
pub(super) fn sniff(body: &[u8]) -> Option<&'static str> {
    let head = &body[..body.len().min(SNIFFED_BYTES)];
    if head.is_empty() {
        return None;
    }
    if encoding_rs::Encoding::for_bom(head)
        .is_some_and(|(encoding, _)| encoding != encoding_rs::UTF_8)
    {
        return Some("text/plain");
    }
    let start = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let begins = |tag: &[u8]| {
        let (Some(text), Some(after)) = (start.get(..tag.len()), start.get(tag.len())) else {
            return false;
        };
        text.eq_ignore_ascii_case(tag)
            && matches!(after, b' ' | b'>' | b'\t' | b'\r' | b'\n' | 0x0C | b'/')
    };
    if start.starts_with(b"<!--") || HTML_STARTS.into_iter().any(begins) {
        Some("text/html")
    } else if start.starts_with(b"<?xml") {
        Some("text/xml")
    } else if start.starts_with(b"%PDF-") {
        Some("application/pdf")
    } else if head
        .iter()
        .any(|byte| matches!(byte, 0x00..=0x08 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F))
    {
        Some("application/octet-stream")
    } else {
        Some("text/plain")
    }
}
