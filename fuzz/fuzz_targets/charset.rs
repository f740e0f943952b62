//! Any bytes as a page in any encoding.
//!
//! The first line is the `Content-Type`, the rest the body.

#![no_main]

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use pgcrawl::canon::{HrefCache, PageUrl};
use pgcrawl::extract::{self, CharsetFrom, Input};

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == b'\n');
    let (line, body) = data.split_at(at.unwrap_or(0));
    let body = body.strip_prefix(b"\n").unwrap_or(body);
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(line) {
        headers.insert(CONTENT_TYPE, value);
    }
    let page = PageUrl::parse("http://host.test/").expect("a constant");
    let input = Input {
        url: &page,
        headers: &headers,
        body,
        robots_token: "ourbot",
        anchors: false,
        canon: &pgcrawl::canon::BASE,
        wants: extract::Wants::default(),
    };
    let found = extract::extract(&input, &mut HrefCache::new(64));
    let Some(text) = &found.text else {
        assert!(found.charset.is_none() && found.charset_from.is_none());
        return;
    };
    let name = found.charset.expect("text has a charset");
    let encoding = encoding_rs::Encoding::for_label(name.as_bytes()).expect("one of the standard");
    assert_eq!(encoding.name(), name);
    // The longest that a byte becomes is U+FFFD.
    assert!(text.len() <= 3 * body.len() + 3);
    match found.charset_from.expect("something told it") {
        CharsetFrom::Bom => assert!(encoding_rs::Encoding::for_bom(body).is_some()),
        CharsetFrom::Header => assert!(!line.is_empty()),
        CharsetFrom::Meta => {
            let wide = encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE;
            assert!(
                !wide || body[..2].contains(&0),
                "what is read as ASCII is not UTF-16"
            );
        }
        CharsetFrom::Detected => assert!(!body.is_ascii()),
        CharsetFrom::Default => assert!(body.is_ascii() && text.as_bytes() == body),
    }
    for told in [&found.title, &found.description, &found.h1, &found.lang] {
        assert!(
            told.as_ref()
                .is_none_or(|text| !text.contains('\0') && text.chars().count() <= 2_000)
        );
    }
});
