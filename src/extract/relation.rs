//! Relations of `<link>` and of the header field `Link`: which lead to pages, which to assets, which nowhere.

use super::capture::tidy;
use super::media::is_wanted;
use super::{LinkKind, MAX_REL_CHARS, Rel, Wants};

/// Relations that lead to pages (IANA link relations, microformats). `prefetch`, `dns-prefetch`, `preconnect` and `prerender`
/// are hints to a browser about what may come next, and never links.
const PAGE_RELATIONS: [&str; 26] = [
    "alternate",
    "amphtml",
    "appendix",
    "archives",
    "author",
    "canonical",
    "chapter",
    "contents",
    "copyright",
    "first",
    "glossary",
    "help",
    "home",
    "index",
    "last",
    "license",
    "next",
    "prev",
    "previous",
    "search",
    "section",
    "shortlink",
    "start",
    "subsection",
    "top",
    "up",
];

/// Relations that lead to what the page is made of. `preload` and `modulepreload` name what its scripts and styles will ask for.
const ASSET_RELATIONS: [(&str, LinkKind); 10] = [
    ("stylesheet", LinkKind::Stylesheet),
    ("icon", LinkKind::Icon),
    ("apple-touch-icon", LinkKind::Icon),
    ("apple-touch-icon-precomposed", LinkKind::Icon),
    ("apple-touch-startup-image", LinkKind::Icon),
    ("mask-icon", LinkKind::Icon),
    ("image_src", LinkKind::Image),
    ("manifest", LinkKind::Manifest),
    ("modulepreload", LinkKind::Preload),
    ("preload", LinkKind::Preload),
];

/// Whether `rel`, a set of tokens, has this one, without regard to case.
pub(super) fn has_token(rel: &str, token: &str) -> bool {
    rel.split_ascii_whitespace()
        .any(|found| found.eq_ignore_ascii_case(token))
}

impl Rel {
    pub(super) fn of(rel: &str) -> Rel {
        if rel.is_empty() {
            return Rel::default();
        }
        Rel {
            nofollow: has_token(rel, "nofollow"),
            ugc: has_token(rel, "ugc"),
            sponsored: has_token(rel, "sponsored"),
        }
    }

    /// Takes in another link to the same page: one that may be followed is enough.
    pub(super) fn join(&mut self, other: Rel) {
        self.nofollow &= other.nofollow;
        self.ugc |= other.ugc;
        self.sponsored |= other.sponsored;
    }
}

/// The tokens of a `rel` as they are kept.
pub(super) fn rel_text(rel: &str) -> Option<Box<str>> {
    if rel.is_empty() {
        return None;
    }
    tidy(&rel.to_ascii_lowercase(), MAX_REL_CHARS).map(String::into_boxed_str)
}

/// What a link of this relation and type leads to; none where it is to be left alone.
pub(super) fn kind(rel: &str, media_type: Option<&str>, wants: &Wants) -> Option<LinkKind> {
    if leads_to_page(rel, media_type) {
        return Some(kind_of_page(rel));
    }
    let asset = || {
        ASSET_RELATIONS
            .iter()
            .find(|(token, _)| has_token(rel, token))
    };
    wants.assets.then(asset).flatten().map(|(_, kind)| *kind)
}

fn leads_to_page(rel: &str, media_type: Option<&str>) -> bool {
    let is_page = rel.split_ascii_whitespace().any(|token| {
        PAGE_RELATIONS
            .iter()
            .any(|page| token.eq_ignore_ascii_case(page))
    });
    let media_type = media_type.map(|name| {
        name.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    });
    let media_type = media_type.as_deref().filter(|name| !name.is_empty());
    is_page
        && !has_token(rel, "stylesheet")
        && is_wanted(media_type)
        && !media_type.is_some_and(|name| {
            name.ends_with("+oembed") || name.starts_with("application/opensearch")
        })
}

fn kind_of_page(rel: &str) -> LinkKind {
    let has = |token| has_token(rel, token);
    if has("canonical") {
        LinkKind::Canonical
    } else if has("next") {
        LinkKind::Next
    } else if has("prev") || has("previous") {
        LinkKind::Prev
    } else if has("alternate") {
        LinkKind::Alternate
    } else {
        LinkKind::Link
    }
}
