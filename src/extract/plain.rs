//! URLs in plain text.

use linkify::{LinkFinder, LinkKind as Found};

use super::html::{RawLink, RawPage};
use super::{LinkKind, MAX_LINKS};

/// How often more references are looked at than links are kept: most repeat, and what is above is not counted.
const LOOKED_AT: usize = 20 * MAX_LINKS;

/// The URLs in a text: with their scheme, without the punctuation that ends a sentence.
pub(super) fn read(text: &str) -> RawPage<'static> {
    let mut finder = LinkFinder::new();
    finder.kinds(&[Found::Url]).url_must_have_scheme(true);
    let links = finder
        .links(text)
        .map(|link| RawLink::new(link.as_str().to_owned(), LinkKind::Text))
        .take(LOOKED_AT)
        .collect();
    RawPage {
        links,
        ..RawPage::default()
    }
}
