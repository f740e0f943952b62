use proptest::prelude::*;

use super::*;

const HOST: &str = "http://host.test";

fn rules(body: impl AsRef<[u8]>) -> Robots {
    Robots::parse(body.as_ref(), "ourbot")
}

fn is_allowed(robots: &Robots, path: &str) -> bool {
    robots.judge(&Url::parse(&format!("{HOST}{path}")).unwrap()) == Verdict::Allowed
}

fn check(body: impl AsRef<[u8]>, allowed: &[&str], forbidden: &[&str]) {
    let robots = rules(body);
    for path in allowed {
        assert!(is_allowed(&robots, path), "{path} is allowed");
    }
    for path in forbidden {
        assert!(!is_allowed(&robots, path), "{path} is forbidden");
    }
}

fn utf_16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{feff}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(unit)
        .collect()
}

#[test]
fn a_byte_order_mark_does_not_hide_the_first_line() {
    check(
        "\u{feff}User-agent: *\nDisallow: /private/\n",
        &["/open"],
        &["/private/a"],
    );
    check(
        "\u{feff}User-agent: ourbot/2\nDisallow: /private/\n",
        &["/open"],
        &["/private/a"],
    );
}

#[test]
fn an_empty_disallow_does_not_wipe_the_other_rules() {
    check(
        "User-agent: *\nDisallow: /hidden/\nAllow: /pub/\nDisallow:\n",
        &["/pub/x", "/"],
        &["/hidden/x"],
    );
    check("User-agent: *\nDisallow:\n", &["/", "/x"], &[]);
}

#[test]
fn an_escaped_slash_is_no_slash_and_an_escaped_star_no_wildcard() {
    check(
        "User-agent: *\nDisallow: /t/5%2F6/\nDisallow: /s/%2A/\nDisallow: /café/\n",
        &["/t/5/6/p", "/s/any/p"],
        &[
            "/t/5%2f6/p",
            "/t/5%2F6/p",
            "/s/*/p",
            "/s/%2a/p",
            "/caf%C3%A9/p",
            "/caf%c3%a9/p",
        ],
    );
}

#[test]
fn stars_and_dollars_are_read_by_their_place() {
    check(
        "User-agent: *\nDisallow: /*.php$\nDisallow: /a$b\nDisallow: /end%24\nDisallow: /x/*/y\nSitemap: http://h/$a/$b\n",
        &["/a.php?x", "/aXb", "/end", "/x/y"],
        &[
            "/a.php", "/d/a.php", "/a$b", "/a%24bc", "/end$", "/end%24x", "/x/*/y", "/x/z/y",
        ],
    );
    assert_eq!(
        rules("Sitemap: http://h/$a/$b\n").sitemaps(),
        ["http://h/$a/$b"]
    );
}

#[test]
fn a_rule_with_dozens_of_stars_does_not_hang_the_matcher() {
    let robots = rules(format!(
        "User-agent: *\nDisallow: /{}*zz\n",
        "*a".repeat(40)
    ));
    // A backtracking matcher would not come back from a single one of these.
    for length in 60..2000 {
        assert!(is_allowed(&robots, &format!("/{}", "a".repeat(length))));
    }
    assert!(!is_allowed(&robots, &format!("/{}zz", "a".repeat(60))));
}

#[test]
fn a_file_in_utf_16_is_read_by_its_mark() {
    let text = "User-agent: *\r\nDisallow: /p/\r\n";
    check(utf_16(text, u16::to_le_bytes), &["/q"], &["/p/a"]);
    check(utf_16(text, u16::to_be_bytes), &["/q"], &["/p/a"]);
}

#[test]
fn a_stray_byte_loses_its_own_line_at_most() {
    check(
        b"# caf\xe9\nUser-agent: *\nDisallow: /caf\xe9/\nDisallow: /p/\n",
        &["/q"],
        &["/p/a", "/caf%E9/x"],
    );
}

#[test]
fn bare_carriage_returns_end_lines() {
    check(
        "User-agent: *\rDisallow: /m/\rAllow: /m/ok\r",
        &["/m/ok"],
        &["/m/a"],
    );
    check(
        "User-agent: ourbot/1.0\rDisallow: /m/\r\rUser-agent: *\rDisallow: /\r",
        &["/x"],
        &["/m/a"],
    );
}

#[test]
fn our_group_is_found_with_a_version_and_in_any_case() {
    for agent in [
        "ourbot/1.0",
        "OurBot",
        "ourbot / 2",
        "ourbot/1.0 (+http://x)",
        " ourbot # us",
        "ourbot other",
    ] {
        for key in [
            "User-agent:",
            "user-agent :",
            "USERAGENT:",
            "User Agent:",
            "User-agent",
        ] {
            check(
                format!("User-agent: *\nDisallow: /\n\n{key} {agent}\nDisallow: /p/\n"),
                &["/x"],
                &["/p/a"],
            );
        }
    }
    let body = b"User-agent: ourbot\nDisallow: /p/\n";
    assert!(!is_allowed(&Robots::parse(body, "OURBOT/3.1"), "/p/a"));
}

#[test]
fn groups_of_others_do_not_concern_us() {
    check(
        "User-agent: ourbots\nDisallow: /\n\nUser-agent: our\nDisallow: /\n\nUser-agent: our/bot\nDisallow: /\n",
        &["/"],
        &[],
    );
    check(
        "User-agent: a\nUser-agent: ourbot/9\nDisallow: /1\n\nUser-agent: b\nDisallow: /2\n\nUser-agent: ourbot\nDisallow: /3\n",
        &["/2"],
        &["/1", "/3"],
    );
}

#[test]
fn the_longest_rule_decides_and_is_told() {
    let robots = rules("User-agent: *\nDisallow: /\nDisallow: /private/\nAllow: /private/but/\n");
    let judge = |path: &str| robots.judge(&Url::parse(&format!("{HOST}{path}#f")).unwrap());
    assert_eq!(
        judge("/private/x?y"),
        Verdict::Disallowed {
            rule: "disallow: /private/".to_owned()
        }
    );
    assert_eq!(
        judge("/x"),
        Verdict::Disallowed {
            rule: "disallow: /".to_owned()
        }
    );
    assert_eq!(judge("/private/but/x"), Verdict::Allowed);
    assert_eq!(judge("/robots.txt"), Verdict::Allowed);
}

#[test]
fn at_least_500_kib_are_read() {
    let filler = "# filler of a line of forty characters..\n";
    let body = format!(
        "User-agent: *\n{}Disallow: /p/\n",
        filler.repeat((500 * 1024 - 64) / filler.len())
    );
    assert!(body.len() > 499 * 1024 && body.len() < 500 * 1024);
    check(body, &["/q"], &["/p/a"]);
}

#[test]
fn the_crawl_delay_is_honoured_up_to_300_seconds() {
    for (value, delay) in [
        ("2", Some(Duration::from_secs(2))),
        ("0.5", Some(Duration::from_millis(500))),
        ("0", Some(Duration::ZERO)),
        ("300", Some(Duration::from_secs(300))),
        ("86400", Some(Duration::from_secs(300))),
        ("-1", None),
        ("soon", None),
        ("", None),
    ] {
        let robots = rules(format!(
            "User-agent: *\nCrawl-delay: {value}\nDisallow: /p/\n"
        ));
        assert_eq!(robots.crawl_delay(), delay, "{value}");
        assert!(!is_allowed(&robots, "/p/"));
    }
    assert_eq!(
        rules("User-agent: *\nCrawl-delay: 9\n\nUser-agent: ourbot\nDisallow:\n").crawl_delay(),
        None
    );
}

#[test]
fn sitemaps_belong_to_no_group() {
    let robots = rules(
        "Sitemap: http://h/a.xml\nUser-agent: x\nSitemap: https://o/b.xml#c\nsitemap: /relative\n",
    );
    assert_eq!(robots.sitemaps(), ["http://h/a.xml", "https://o/b.xml"]);
    assert!(Robots::allow_all().sitemaps().is_empty());
}

#[test]
fn the_status_says_what_the_answer_means() {
    for (status, meaning) in [
        (Some(200), Access::Rules),
        (Some(204), Access::Rules),
        (Some(302), Access::AllowAll),
        (Some(401), Access::AllowAll),
        (Some(403), Access::AllowAll),
        (Some(404), Access::AllowAll),
        (Some(410), Access::AllowAll),
        (Some(429), Access::Defer),
        (Some(500), Access::Defer),
        (Some(503), Access::Defer),
        (Some(101), Access::Defer),
        (None, Access::Defer),
    ] {
        assert_eq!(access(status), meaning, "{status:?}");
    }
}

#[test]
fn an_html_page_in_its_place_forbids_nothing() {
    check(
        "<!DOCTYPE html><html><body>Disallow: /<br>User-agent: *</body></html>",
        &["/", "/x"],
        &[],
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        body in prop::collection::vec(any::<u8>(), 0..200),
        lines in prop::collection::vec("(User-agent|Disallow|Allow|Crawl-delay)?:? ?[-/*$%0-9a-z ]{0,12}[\r\n#\\x00]", 0..20),
        path in "[-/*$%?#0-9a-z]{0,20}",
    ) {
        let url = Url::parse(HOST).unwrap().join(&path).unwrap_or_else(|_| Url::parse(HOST).unwrap());
        for body in [&body[..], lines.concat().as_bytes(), &[b"\xff\xfe", &body[..]].concat()] {
            let robots = rules(body);
            let _ = (robots.judge(&url), robots.crawl_delay(), robots.sitemaps());
        }
    }
}
