//! Any bytes as a feed.
//!
//! The first byte chooses the type, and whether enclosures are wanted; the rest is the feed.

#![no_main]

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use pgcrawl::canon::{HrefCache, PageUrl};
use pgcrawl::extract::{self, Input, Wants};

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    let kind = match choice & 3 {
        0 => "application/rss+xml",
        1 => "application/atom+xml",
        2 => "application/feed+json",
        _ => "text/xml",
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let page = PageUrl::parse("http://host.test/d/feed").expect("a constant");
    let assets = choice & 4 != 0;
    let input = Input {
        url: &page,
        headers: &headers,
        body,
        robots_token: "ourbot",
        anchors: choice & 8 != 0,
        canon: &pgcrawl::canon::BASE,
        wants: Wants {
            assets,
            ..Wants::default()
        },
    };
    let found = extract::extract(&input, &mut HrefCache::new(64));
    assert!(found.links.len() <= extract::MAX_LINKS);
    for link in &found.links {
        assert!(!link.kind.is_asset() || assets);
        assert!(link.anchor.is_none() || input.anchors);
    }
    for told in [&found.title, &found.description, &found.lang] {
        assert!(
            told.as_ref()
                .is_none_or(|text| !text.contains('\0') && text.chars().count() <= 2_000)
        );
    }
});
