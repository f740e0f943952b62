//! Any status, header fields and body: redirects, cookies, waits, content codings, links, and the row that is made of them.
//!
//! The first byte chooses the status; then header lines, an empty line, and the body as it was sent.

#![no_main]

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use libfuzzer_sys::fuzz_target;
use pgcrawl::canon::{HrefCache, PageUrl};
use pgcrawl::clock::Boottime;
use pgcrawl::exchange::{self, Coding, Exchange};
use pgcrawl::extract::{self, Input};
use pgcrawl::fetch::{self, Validators, fuzz};
use pgcrawl::pages::PageRow;

const STATUSES: [u16; 12] = [200, 206, 301, 302, 303, 304, 307, 308, 404, 429, 503, 999];

/// What is kept of a body.
const CAP: usize = 64 * 1024;

fn fields(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(400) {
        let Some(at) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..at]);
        let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let status = STATUSES[usize::from(*first) % STATUSES.len()];
    let end = rest.windows(2).position(|two| two == b"\n\n");
    let (lines, wire) = rest.split_at(end.unwrap_or(rest.len()));
    let wire = Bytes::copy_from_slice(wire.strip_prefix(b"\n\n").unwrap_or(wire));
    let headers = fields(lines);
    let page = PageUrl::parse("http://host.test/d/p?b=2&a=1").expect("a constant");

    let wait = fetch::retry_after(&headers, SystemTime::UNIX_EPOCH);
    assert!(wait.is_none_or(|wait| wait <= Duration::from_secs(3600)));
    if let Some(target) = exchange::location(&headers) {
        assert!(!target.is_empty());
        let joined = page.join(&target);
        let itself = fuzz::to_itself(&page, status, &headers);
        let target = joined.ok().map(|url| url.digest(&pgcrawl::canon::BASE));
        assert!(
            itself.is_none_or(|next| Some(next.digest(&pgcrawl::canon::BASE)) == target
                && next.digest(&pgcrawl::canon::BASE) == page.digest(&pgcrawl::canon::BASE))
        );
    }
    if let Some(cookie) = fuzz::cookie(&page, &headers) {
        assert!(cookie.len() <= 16 * 1024 && cookie.is_sensitive());
    }
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    Validators::stored(page.as_str(), text("etag"), text("last-modified"));

    let (body, coding, truncated) = fuzz::decoded(&headers, wire.clone(), CAP);
    match coding {
        Coding::Decoded => assert!(body.len() <= CAP),
        Coding::Identity => assert!(body == wire && truncated.is_none()),
        _ => assert!(body.len() <= wire.len().max(CAP)),
    }
    let answer = Exchange {
        streamed: false,
        url: page.as_url().clone(),
        final_url: page.as_url().clone(),
        hops: 0,
        status,
        version: Version::HTTP_11,
        headers,
        body,
        wire_bytes: wire.len() as u64,
        truncated,
        coding,
        ip: None,
        proxy: None,
        elapsed: Duration::ZERO,
        ended: Boottime::now(),
    };
    let input = Input {
        url: &page,
        headers: &answer.headers,
        body: &answer.body,
        robots_token: "ourbot",
        anchors: false,
        canon: &pgcrawl::canon::BASE,
        wants: extract::Wants::default(),
    };
    let read = extract::extract(&input, &mut HrefCache::new(64));
    assert!(read.links.len() <= extract::MAX_LINKS);
    let row = PageRow::answered(&answer, Some(read), true);
    for value in [
        &row.redirect_to,
        &row.content_type,
        &row.etag,
        &row.title,
        &row.canonical_url,
        &row.headers,
    ] {
        assert!(value.as_ref().is_none_or(|text| !text.contains('\0')));
    }
    assert!(row.etag.is_none_or(|text| text.chars().count() <= 4_000));
    PageRow::unmodified(&answer);
});
