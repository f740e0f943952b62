//! What a page says: its text in UTF-8, its links, its title, its wishes towards robots.
//!
//! One pass over the decoded text, tag by tag (`html`), which collects raw attributes; what they mean
//! depends on the whole page (the first `<base>` counts for the links above it, too), so they are resolved at the end
//! (`links`). Any bytes give an [`Extraction`], if an empty one; hostile ones are bounded in memory and in time.

mod capture;
mod charset;
mod css;
#[cfg(test)]
mod differential;
mod directives;
mod entities;
mod feed;
pub mod fields;
mod html;
mod link;
mod links;
mod media;
mod plain;
mod prescan;
mod relation;
mod signals;
pub mod simhash;
pub mod sitemap;
mod srcset;
#[cfg(test)]
mod tests;
mod wants;
mod xhtml;

use std::borrow::Cow;
use std::cell::OnceCell;

use http::HeaderMap;

use crate::canon::{Canon, HrefCache, PageUrl};

use html::RawPage;
use media::Markup;

pub use link::{Link, LinkKind, MAX_ANCHOR_CHARS, MAX_REL_CHARS, Rel};
pub use media::{charset as charset_of, is_wanted, is_wanted_or_asset, media_type};
pub use signals::Signals;
pub use wants::Wants;

/// Raise it when what is read of a page changes: pages that were read by another version are not asked for conditionally, so that they
/// are read anew.
pub const VERSION: i32 = 3;

/// Links kept of one page; what is above is counted. Heritrix keeps 6,000.
pub const MAX_LINKS: usize = 5_000;

/// An answer to read.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The URL that the answer is from, after redirects.
    pub url: &'a PageUrl,
    /// Its header fields.
    pub headers: &'a HeaderMap,
    /// Its body after content coding; may be cut at any byte.
    pub body: &'a [u8],
    /// The product token under which pages may address us in `<meta>` and `X-Robots-Tag`; compared without case.
    pub robots_token: &'a str,
    /// Whether the texts of links and of their `rel` are kept. That costs time, and changes nothing else.
    pub anchors: bool,
    /// The rules under which two links are one page.
    pub canon: &'a Canon,
    /// Which links are read.
    pub wants: Wants,
}

/// What an answer holds. Texts have their white space collapsed, and neither NUL nor more than their limit.
#[derive(Clone, Debug, Default)]
pub struct Extraction {
    /// Type and subtype in lower case, as `text/html`; sniffed where the header does not tell.
    pub media_type: Option<String>,
    /// The encoding's name in the Encoding standard, as `UTF-8`; of textual types.
    pub charset: Option<&'static str>,
    /// What told the encoding.
    pub charset_from: Option<CharsetFrom>,
    /// The body of textual types in UTF-8; may hold NUL.
    pub text: Option<String>,
    /// The first `<title>` with text, at most 1,000 characters.
    pub title: Option<String>,
    /// The first meta description with text, at most 2,000 characters.
    pub description: Option<String>,
    /// The text of the first `<h1>` with text, at most 1,000 characters.
    pub h1: Option<String>,
    /// The declared canonical URL, resolved: of the page, else of the header.
    pub canonical_url: Option<String>,
    /// All robots directives that apply to us, of `X-Robots-Tag` and meta, joined with `, `; at most 1,000 characters.
    pub robots: Option<String>,
    /// The `lang` of the root element, at most 64 characters.
    pub lang: Option<String>,
    /// Whether page or header ask us to follow no link of the page. The links are listed all the same.
    pub nofollow: bool,
    /// What page and header say about its use.
    pub signals: Signals,
    /// The pages linked, each once, in the page's order; at most [`MAX_LINKS`].
    pub links: Vec<Link>,
    /// How many different references there were above [`MAX_LINKS`].
    pub links_excess: u32,
}

/// What told the encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CharsetFrom {
    /// The byte-order mark.
    Bom,
    /// The header field `Content-Type`.
    Header,
    /// A `<meta>` or an XML declaration.
    Meta,
    /// The bytes themselves.
    Detected,
    /// Nothing; the text is ASCII.
    Default,
}

impl CharsetFrom {
    /// The word for it in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            CharsetFrom::Bom => "bom",
            CharsetFrom::Header => "header",
            CharsetFrom::Meta => "meta",
            CharsetFrom::Detected => "detected",
            CharsetFrom::Default => "default",
        }
    }
}

/// Reads what the header alone says to robots, of an answer whose body there is nothing to read of.
pub fn of_header(headers: &HeaderMap, robots_token: &str) -> Extraction {
    let directives = directives::of_headers(headers, robots_token);
    Extraction {
        nofollow: directives::forbid_following(&directives),
        robots: capture::tidy(&directives.join(", "), html::MAX_ROBOTS_CHARS),
        signals: Signals::of(&directives, headers, signals::TdmMeta::default()),
        ..Extraction::default()
    }
}

/// Reads an answer. Never panics, whatever the bytes.
///
/// Takes about 0.06 ms for a page of 25 KB: for bodies above a megabyte call it where blocking is allowed.
pub fn extract(input: &Input<'_>, cache: &mut HrefCache) -> Extraction {
    let mut found = Extraction {
        media_type: media_type(input.headers)
            .or_else(|| media::sniff(input.body).map(str::to_owned)),
        ..Extraction::default()
    };
    let mut directives = directives::of_headers(input.headers, input.robots_token);
    let media_type = found.media_type.as_deref();
    let markup = Markup::of(media_type, input.body, &input.wants);
    let decoded = markup.map(|markup| {
        let label = media::charset(input.headers);
        charset::decode(input.body, label.as_deref(), markup, input.url.host())
    });
    let text = decoded.as_ref().map_or("", |decoded| &*decoded.text);
    let (with_end_tags, aside);
    let mut page = RawPage::default();
    let mut encoding = encoding_rs::UTF_8;
    match markup {
        Some(Markup::Html) => {
            // Of a page in an old encoding, queries are in it; all else is in UTF-8 always.
            encoding = decoded
                .as_ref()
                .map_or(encoding, |decoded| decoded.encoding);
            with_end_tags = match media_type {
                Some("text/html") => Cow::Borrowed(text),
                _ => xhtml::with_end_tags(text),
            };
            aside = OnceCell::new();
            page = html::read(&with_end_tags, &aside, input, encoding);
        }
        Some(Markup::Feed) => page = feed::read(text, input),
        Some(Markup::JsonFeed) => page = feed::read_json(text, input),
        Some(Markup::Css) if input.wants.assets => page = css::read(text),
        Some(Markup::Text) if input.wants.text_links => page = plain::read(text),
        Some(Markup::Css | Markup::Text | Markup::Xml | Markup::Other) | None => {}
    }
    directives.append(&mut page.robots);
    found.nofollow = directives::forbid_following(&directives);
    found.signals = Signals::of(&directives, input.headers, std::mem::take(&mut page.tdm));
    found.robots = capture::tidy(&directives.join(", "), html::MAX_ROBOTS_CHARS);
    links::resolve(&page, input, encoding, cache, &mut found);
    found.title = page.title;
    found.description = page.description;
    found.h1 = page.h1;
    found.lang = page.lang;
    if let Some(decoded) = decoded {
        found.charset = Some(decoded.encoding.name());
        found.charset_from = Some(decoded.from);
        found.text = Some(decoded.text);
    }
    found
}
