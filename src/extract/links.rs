//! From references to pages: the base, the header's links, and each page once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use foldhash::fast::RandomState;
use http::header::{LINK, REFRESH};
use url::Url;

use crate::canon::{Canon, HrefCache, PageUrl, UrlDigest, without_fragment};

use super::html::{RawLink, RawPage};
use super::media::parameter;
use super::relation::{self, has_token, rel_text};
use super::{Extraction, Input, Link, LinkKind, MAX_LINKS, Rel};

/// The longest declared canonical URL kept, in bytes: four times the longest URL that a crawl accepts by default.
const MAX_CANONICAL_BYTES: usize = 8 * 1024;

/// The target of a refresh's content, `3; url='next.html'` (HTML standard, "shared declarative refresh steps").
pub(super) fn refresh_target(content: &str) -> Option<&str> {
    let rest = content.trim_ascii_start();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if after.len() == rest.len()
        || !after.starts_with(|c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace())
    {
        return None;
    }
    let after = after.trim_ascii_start();
    let mut target = after
        .strip_prefix([';', ','])
        .unwrap_or(after)
        .trim_ascii_start();
    // The word may be missing: then all of it is the URL.
    if let Some(named) = target
        .get(..3)
        .filter(|word| word.eq_ignore_ascii_case("url"))
        && let Some(value) = target[named.len()..].trim_ascii_start().strip_prefix('=')
    {
        target = value.trim_ascii_start();
    }
    if let Some(quote) = target.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        target = target[1..].split(quote).next().unwrap_or_default();
    }
    let target = target.trim_ascii();
    (!target.is_empty()).then_some(target)
}

/// Resolves a page's references and its header's, and puts the result into `found`.
pub(super) fn resolve(
    page: &RawPage<'_>,
    input: &Input<'_>,
    encoding: &'static Encoding,
    cache: &mut HrefCache,
    found: &mut Extraction,
) {
    let document = input.url.as_url();
    let base = base(page, document);
    // Most references are written several times, and many differ in their fragment alone.
    let room = page.links.len().min(MAX_LINKS);
    let mut kept = Kept::under(input.canon, room);
    let mut seen: HashMap<&str, Option<usize>, RandomState> =
        HashMap::with_capacity_and_hasher(room, RandomState::default());
    for link in &page.links {
        let href = without_fragment(&link.href);
        match seen.entry(href) {
            Entry::Occupied(entry) => kept.repeat(*entry.get(), link),
            // Not resolved any more, and each once: what an endless page has is only counted.
            Entry::Vacant(entry) if kept.is_full() => {
                entry.insert(None);
                kept.excess = kept.excess.saturating_add(1);
            }
            Entry::Vacant(entry) => {
                let url = cache.resolve(&base, &with_query_in(encoding, href));
                entry.insert(url.map(|url| kept.add(url, link)));
            }
        }
    }
    let mut canonical = page
        .canonical
        .as_deref()
        .and_then(|href| cache.resolve(&base, href));
    for HeaderLink {
        target,
        rel,
        media_type,
    } in header_links(input)
    {
        let Some(url) = cache.resolve(document, &target) else {
            continue;
        };
        if has_token(&rel, "canonical") && canonical.is_none() {
            canonical = Some(url.clone());
        }
        let kind = relation::kind(&rel, media_type.as_deref(), &input.wants);
        if let Some(kind) = kind {
            let kind = if kind.is_asset() {
                kind
            } else {
                LinkKind::Header
            };
            let mut link = RawLink::new(target, kind);
            link.rel = Rel::of(&rel);
            link.rel_text = input.anchors.then(|| rel_text(&rel)).flatten();
            kept.offer(url, &link);
        }
    }
    for field in input.headers.get_all(REFRESH) {
        let field = String::from_utf8_lossy(field.as_bytes());
        if let Some(url) = refresh_target(&field).and_then(|target| cache.resolve(document, target))
        {
            kept.offer(url, &RawLink::new(String::new(), LinkKind::Refresh));
        }
    }
    found.canonical_url = canonical
        .map(|url| url.as_str().to_owned())
        .filter(|url| url.len() <= MAX_CANONICAL_BYTES);
    found.links = kept.links;
    found.links_excess = kept.excess;
}

/// The links kept so far, each page once.
struct Kept<'a> {
    canon: &'a Canon,
    links: Vec<Link>,
    places: HashMap<UrlDigest, usize, RandomState>,
    excess: u32,
}

impl Kept<'_> {
    fn under(canon: &Canon, room: usize) -> Kept<'_> {
        Kept {
            canon,
            links: Vec::with_capacity(room / 2),
            places: HashMap::with_capacity_and_hasher(room / 2, RandomState::default()),
            excess: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.links.len() >= MAX_LINKS
    }

    /// Adds one, or counts it where there are enough.
    fn offer(&mut self, url: PageUrl, raw: &RawLink<'_>) {
        if self.is_full() && !self.places.contains_key(&url.digest(self.canon)) {
            self.excess = self.excess.saturating_add(1);
        } else {
            self.add(url, raw);
        }
    }

    fn add(&mut self, url: PageUrl, raw: &RawLink<'_>) -> usize {
        match self.places.entry(url.digest(self.canon)) {
            Entry::Occupied(entry) => {
                let place = *entry.get();
                self.repeat(Some(place), raw);
                place
            }
            Entry::Vacant(entry) => {
                self.links.push(Link {
                    url,
                    rel: raw.rel,
                    kind: raw.kind,
                    rel_text: raw.rel_text.clone(),
                    anchor: raw.anchor.clone(),
                });
                *entry.insert(self.links.len() - 1)
            }
        }
    }

    /// Notes that a reference came again: one that may be followed is enough, and the first text counts.
    fn repeat(&mut self, place: Option<usize>, raw: &RawLink<'_>) {
        if let Some(link) = place.and_then(|place| self.links.get_mut(place)) {
            link.rel.join(raw.rel);
            if link.anchor.is_none() {
                link.anchor.clone_from(&raw.anchor);
            }
        }
    }
}

/// The document's base URL (HTML standard §4.2.3): of the first `<base href>`, unless it is unreadable or no place.
fn base<'a>(page: &RawPage<'_>, document: &'a Url) -> Cow<'a, Url> {
    let declared = page
        .base
        .as_deref()
        .and_then(|href| document.join(href).ok());
    match declared {
        Some(url) if !matches!(url.scheme(), "data" | "javascript") => Cow::Owned(url),
        _ => Cow::Borrowed(document),
    }
}

/// A link in the header.
struct HeaderLink {
    target: String,
    rel: String,
    media_type: Option<String>,
}

/// The links in the header (RFC 8288 §3), without those that are about another page (§3.2, `anchor`).
fn header_links(input: &Input<'_>) -> Vec<HeaderLink> {
    let mut found = Vec::new();
    let document = input.url.as_url();
    let is_elsewhere = |anchor: String| {
        document.join(&anchor).is_ok_and(|mut context| {
            context.set_fragment(None);
            context != *document
        })
    };
    for field in input.headers.get_all(LINK) {
        let field = String::from_utf8_lossy(field.as_bytes());
        let mut rest = &*field;
        while let Some((target, after)) = rest
            .split_once('<')
            .and_then(|(_, after)| after.split_once('>'))
        {
            let mut quoted = false;
            let end = after.find(|c| {
                quoted ^= c == '"';
                c == ',' && !quoted
            });
            let (parameters, next) = after.split_at(end.unwrap_or(after.len()));
            if let Some(rel) = parameter(parameters, "rel")
                && !parameter(parameters, "anchor").is_some_and(is_elsewhere)
            {
                found.push(HeaderLink {
                    target: target.to_owned(),
                    rel,
                    media_type: parameter(parameters, "type"),
                });
            }
            rest = next;
        }
    }
    found
}

/// The reference with its query percent-encoded in the page's encoding, as browsers do on pages in an old one (WHATWG
/// URL, query state; HTML "encoding-parse a URL"); path and all else are UTF-8 always.
fn with_query_in<'a>(encoding: &'static Encoding, href: &'a str) -> Cow<'a, str> {
    let encoding = encoding.output_encoding();
    if href.is_ascii() || encoding == UTF_8 {
        return Cow::Borrowed(href);
    }
    let (before, fragment) = href.split_at(href.find('#').unwrap_or(href.len()));
    let Some((path, query)) = before
        .split_once('?')
        .filter(|(_, query)| !query.is_ascii())
    else {
        return Cow::Borrowed(href);
    };
    let mut out = format!("{path}?");
    let mut encoder = encoding.new_encoder();
    let mut rest = query;
    let mut buffer = [0; 1024];
    loop {
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(rest, &mut buffer, true);
        buffer[..written]
            .iter()
            .for_each(|byte| push_escaped(&mut out, *byte));
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => break,
            EncoderResult::OutputFull => {}
            // What the encoding lacks is sent as a character reference, escaped.
            EncoderResult::Unmappable(c) => out.push_str(&format!("%26%23{}%3B", u32::from(c))),
        }
    }
    out.push_str(fragment);
    Cow::Owned(out)
}

/// Appends a byte of a query, escaped if it is in the "special-query percent-encode set" of the URL standard.
fn push_escaped(out: &mut String, byte: u8) {
    if matches!(byte, 0x21..=0x7E) && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\'') {
        out.push(char::from(byte));
    } else {
        out.push_str(&format!("%{byte:02X}"));
    }
}
