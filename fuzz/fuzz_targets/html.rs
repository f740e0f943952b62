//! Any bytes as an HTML page, under all wishes.
//!
//! The first byte chooses what is wanted, the rest is the page.

#![no_main]

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use pgcrawl::canon::{HrefCache, PageUrl};
use pgcrawl::extract::{self, Input, Wants};

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    let is = |bit: u8| choice & (1 << bit) != 0;
    let kind = match (is(6), is(7)) {
        (false, _) => "text/html",
        (true, false) => "application/xhtml+xml",
        (true, true) => "text/css",
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let page = PageUrl::parse("http://host.test/d/i.html").expect("a constant");
    let input = Input {
        url: &page,
        headers: &headers,
        body,
        robots_token: "ourbot",
        anchors: is(0),
        canon: &pgcrawl::canon::BASE,
        wants: Wants {
            assets: is(1),
            forms: is(2),
            text_links: is(3),
            noscript: is(4),
            templates: is(5),
        },
    };
    let found = extract::extract(&input, &mut HrefCache::new(64));
    assert!(found.links.len() <= extract::MAX_LINKS);
    let mut seen = std::collections::HashSet::new();
    for link in &found.links {
        assert!(
            seen.insert(link.url.digest(&pgcrawl::canon::BASE)),
            "each page once"
        );
        assert!(link.url.as_str().is_ascii() && link.url.as_url().fragment().is_none());
        assert!(!link.kind.is_asset() || input.wants.assets);
        for (text, limit) in [
            (&link.anchor, extract::MAX_ANCHOR_CHARS),
            (&link.rel_text, extract::MAX_REL_CHARS),
        ] {
            assert!(text.is_none() || input.anchors);
            assert!(
                text.as_ref()
                    .is_none_or(|text| !text.contains('\0') && text.chars().count() <= limit)
            );
        }
    }
    // The texts of links change nothing else.
    let other = Input {
        anchors: !input.anchors,
        ..input
    };
    let again = extract::extract(&other, &mut HrefCache::new(64));
    assert!(
        found.links.len() == again.links.len()
            && found.links.iter().zip(&again.links).all(|(one, two)| {
                (&one.url, one.kind, one.rel) == (&two.url, two.kind, two.rel)
            })
    );
});
