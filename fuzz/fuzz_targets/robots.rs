//! Any bytes as a robots.txt, and any path of its host.
//!
//! The first line is the path, the rest the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pgcrawl::robots::{Robots, Verdict};
use url::Url;

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == b'\n');
    let (path, body) = data.split_at(at.unwrap_or(0));
    let body = body.strip_prefix(b"\n").unwrap_or(body);
    let host = Url::parse("http://host.test/").expect("a constant");
    let robots = Robots::parse(body, "ourbot");

    let file = host.join("/robots.txt").expect("a constant");
    assert_eq!(
        robots.judge(&file),
        Verdict::Allowed,
        "the file itself may always be asked for"
    );
    if let Ok(url) = host.join(&String::from_utf8_lossy(path)) {
        let verdict = robots.judge(&url);
        assert_eq!(
            verdict,
            robots.judge(&url),
            "the same question has the same answer"
        );
        assert_eq!(
            verdict,
            Robots::parse(body, "OURBOT/1.0").judge(&url),
            "neither case nor version count"
        );
        assert_eq!(Robots::allow_all().judge(&url), Verdict::Allowed);
    }
    assert!(
        robots
            .crawl_delay()
            .is_none_or(|delay| delay.as_secs() <= 300)
    );
    for sitemap in robots.sitemaps() {
        assert!(Url::parse(&sitemap).is_ok());
    }
});
