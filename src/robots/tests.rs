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
fn stars_in_a_row_are_one_star_and_what_judging_takes_counts_the_patterns_too() {
    let robots = rules(format!(
        "User-agent: *\nDisallow: /{}zz\nAllow: /ok\n",
        "*".repeat(500_000)
    ));
    check(
        "User-agent: *\nDisallow: /a***b$\n",
        &["/acbd"],
        &["/ab", "/accb"],
    );
    check(
        "User-agent: *\nDisallow: /a***b**\n",
        &["/a"],
        &["/ab", "/acbd"],
    );
    assert_eq!(
        robots.judge(&Url::parse(&format!("{HOST}/a/zz")).unwrap()),
        Verdict::Disallowed {
            rule: "disallow: /*zz".to_owned()
        }
    );
    let (patterns, count) = ("/*zz/ok".len(), 2);
    assert_eq!(robots.work(100), 100 + patterns + count);
    // As long as they are, they are looked at.
    let robots = rules(format!(
        "User-agent: *\nDisallow: /{}\n",
        "*a".repeat(200_000)
    ));
    assert_eq!(robots.work(100), 100 + 400_001 + 1);
    assert_eq!(Robots::allow_all().work(2_000), 0);
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
fn no_rule_of_512_kib_is_lost_and_the_longest_of_them_all_wins() {
    for (octets, is_wide) in [
        ("''''''''", false),
        ("$$$$x", false),
        ("abcdefgh", false),
        ("\u{30C4}", true),
    ] {
        let first =
            "User-agent: *\nDisallow: /first\nAllow: /both/page\nDisallow: /both/page/not/\n";
        let last = "Disallow: /last\nDisallow: /both/\nAllow: /both/page/\nAllow: /first\n";
        let line = |n: usize| format!("Disallow: /{n:05}/{octets}\n");
        let size = |text: &str| match is_wide {
            true => 2 * text.encode_utf16().count(),
            false => text.len(),
        };
        let n = (MOST_BYTES - size(first) - size(last) - 10) / size(&line(0));
        let mut body = first.to_owned();
        body.extend((0..n).map(line));
        body += last;
        let body = if is_wide {
            utf_16(&body, u16::to_le_bytes)
        } else {
            body.into_bytes()
        };
        assert!(body.len() < MOST_BYTES && body.len() > MOST_BYTES - 100);
        let filler = format!("/{:05}/{octets}", n - 1);
        check(
            body,
            &["/", "/both/page", "/both/page/a", "/first", "/robots.txt"],
            &["/last", "/both/", "/both/page/not/a", &filler],
        );
    }
}

#[test]
fn the_crawl_delay_is_honoured_up_to_300_seconds() {
    for (value, delay) in [
        ("2", Some(Duration::from_secs(2))),
        ("0.5", Some(Duration::from_millis(500))),
        (".5", Some(Duration::from_millis(500))),
        ("1,5", Some(Duration::from_millis(1_500))),
        ("10s", Some(Duration::from_secs(10))),
        ("10 seconds", Some(Duration::from_secs(10))),
        ("7.", Some(Duration::from_secs(7))),
        ("0", Some(Duration::ZERO)),
        ("300", Some(Duration::from_secs(300))),
        ("86400", Some(Duration::from_secs(300))),
        ("99999999999999999999999999", Some(Duration::from_secs(300))),
        ("-1", None),
        ("soon", None),
        ("1.2.3", None),
        ("inf", None),
        ("NaN", None),
        (".", None),
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
fn of_several_crawl_delays_the_longest_counts_and_what_was_asked_is_told() {
    let robots = rules("User-agent: *\nCrawl-delay: 86400\nCrawl-delay: 1\nCrawl-delay: soon\n");
    assert_eq!(robots.asked_delay(), Some(Duration::from_secs(86_400)));
    assert_eq!(robots.crawl_delay(), Some(MAX_CRAWL_DELAY));
    assert_eq!(rules("User-agent: *\nDisallow:\n").asked_delay(), None);
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
        (200, Access::Rules),
        (204, Access::Rules),
        (400, Access::AllowAll),
        (401, Access::AllowAll),
        (403, Access::AllowAll),
        (404, Access::AllowAll),
        (410, Access::AllowAll),
        (499, Access::AllowAll),
        (429, Access::Defer),
        (500, Access::Defer),
        (503, Access::Defer),
        (101, Access::Defer),
    ] {
        assert_eq!(access(Answer::Status(status)), meaning, "{status}");
    }
    assert_eq!(access(Answer::RedirectsWithoutEnd), Access::AllowAll);
    assert_eq!(access(Answer::Silence), Access::Defer);
}

#[test]
fn a_redirect_that_leads_nowhere_does_not_mean_that_all_is_allowed() {
    for status in [300, 301, 302, 304, 308, 399] {
        assert_eq!(access(Answer::Status(status)), Access::Defer, "{status}");
    }
}

#[test]
fn what_is_said_of_the_use_of_one_path_is_bounded_and_memory_counts_all_that_is_kept() {
    let lines = |n: usize| format!("User-agent: *\n{}", "Content-Usage: train-ai=n\n".repeat(n));
    let url = Url::parse(HOST).unwrap();
    let robots = rules(lines(19_000));
    let said = robots.content_usage(&url).unwrap();
    assert!(said.len() >= 4_000 && said.len() < 4_100, "{}", said.len());
    assert!(said.starts_with("train-ai=n, train-ai=n, "));
    assert!(robots.size_bytes() < 500_000 && robots.size_bytes() > 4_000);

    let many = |line: fn(u32) -> String| {
        let lines: String = (0..20_000).map(line).collect();
        rules(format!("User-agent: *\n{lines}")).size_bytes()
    };
    for bytes in [
        many(|n| format!("Disallow: /{n}\n")),
        many(|n| format!("Content-Usage: /{n} a\n")),
        many(|n| format!("Sitemap: http://h/{n}\n")),
    ] {
        assert!(bytes > 20_000 * 32, "{bytes}");
    }
    assert_eq!(Robots::allow_all().size_bytes(), 0);
}

#[test]
fn an_html_page_in_its_place_forbids_nothing() {
    check(
        "<!DOCTYPE html><html><body>Disallow: /<br>User-agent: *</body></html>",
        &["/", "/x"],
        &[],
    );
}

/// The examples of RFC 9309 §2.2.2.
#[test]
fn octets_are_compared_as_the_table_of_the_rfc_has_them() {
    for (rule, path) in [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http://foo.bar"),
        ("/foo/bar/\u{30C4}", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62a%7a"),
        ("/~joe", "/%7Ejoe"),
        ("/a b", "/a%20b"),
        ("/q?x='a'", "/q?x=%27a%27"),
        ("/q?x=%27a%27", "/q?x='a'"),
        ("/p'", "/p'"),
    ] {
        check(
            format!("User-agent: *\nDisallow: {rule}\n"),
            &["/", "/foo/bar/b"],
            &[path],
        );
    }
}

/// The examples of RFC 9309 §2.2.3.
#[test]
fn the_special_characters_are_those_of_the_rfc() {
    check(
        "User-agent: *\nDisallow: / # a comment\nAllow: /this/*/exactly\nAllow: /path/file-with-a-%2A.html\nAllow: /just/this$\nAllow: /cost-%24\n",
        &[
            "/this/path/exactly",
            "/this/a/b/exactly/x",
            "/path/file-with-a-*.html",
            "/just/this",
            "/cost-$",
        ],
        &[
            "/this/exactly",
            "/path/file-with-a-b.html",
            "/just/this/x",
            "/just/this?x",
            "/cost-",
            "/#",
        ],
    );
}

/// RFC 9309 §5.1.
#[test]
fn the_simple_example_of_the_rfc_is_read_as_it_says() {
    let file = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
        User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
        User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
        User-Agent: quxbot\n\nEOF\n";
    let allows = |token: &str, path: &str| is_allowed(&Robots::parse(file.as_bytes(), token), path);
    assert!(allows("foobot", "/example/page.html") && allows("foobot", "/example/allowed.gif"));
    assert!(!allows("foobot", "/other"));
    for bot in ["barbot", "bazbot"] {
        assert!(!allows(bot, "/example/page.html") && allows(bot, "/example/"));
    }
    assert!(allows("quxbot", "/example/") && allows("quxbot", "/a.gif"));
    assert!(!allows("ourbot", "/a.gif") && !allows("ourbot", "/example/"));
    assert!(allows("ourbot", "/publications/") && allows("ourbot", "/a.gif?x"));
}

/// RFC 9309 §5.2.
#[test]
fn the_longest_match_of_the_rfc_wins() {
    check(
        "User-Agent: foobot\nUser-agent: ourbot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n",
        &["/example/page/", "/example/page/a.gif"],
        &["/example/page/disallowed.gif"],
    );
}

#[test]
fn allow_wins_where_both_are_as_long_and_nothing_said_is_allowed() {
    check(
        "User-agent: *\nDisallow: /page\nAllow: /page\nAllow: /pate\nDisallow: /pate\n",
        &["/page", "/pate", "/other"],
        &[],
    );
    for body in [
        "",
        "# nothing\n",
        "User-agent: other\nDisallow: /\n",
        "Disallow: /\n",
    ] {
        check(body, &["/", "/x?y"], &[]);
    }
}

#[test]
fn paths_are_compared_with_case_and_query_and_keys_without_case() {
    check(
        "USER-AGENT: *\ndIsAlLoW: /Private/\nDISALLOW: /s?q=\n",
        &["/private/", "/s", "/s?p=1"],
        &["/Private/x", "/s?q=1"],
    );
}

#[test]
fn robots_txt_itself_may_always_be_asked_for() {
    check(
        "User-agent: *\nDisallow: /\nDisallow: /robots.txt\nDisallow: /*.txt$\n",
        &["/robots.txt"],
        &["/robots.txt2", "/a/robots.txt", "/ROBOTS.TXT"],
    );
}

#[test]
fn groups_of_one_token_are_merged_and_the_general_one_is_left_to_others() {
    let file = "User-agent: ourbot\nDisallow: /1\n\nUser-agent: *\nDisallow: /2\n\nUSER-AGENT: OURBOT\nDisallow: /3\n\nUser-agent: *\nDisallow: /4\n";
    check(file, &["/2", "/4"], &["/1", "/3"]);
    let other = Robots::parse(file.as_bytes(), "otherbot");
    assert!(!is_allowed(&other, "/2") && !is_allowed(&other, "/4"));
    assert!(is_allowed(&other, "/1") && is_allowed(&other, "/3"));
    // A group without rules is one: it allows.
    check(
        "User-agent: *\nDisallow: /\n\nUser-agent: ourbot\n",
        &["/"],
        &[],
    );
}

#[test]
fn records_that_the_rfc_does_not_know_end_no_group() {
    for line in [
        "Sitemap: http://h/s.xml",
        "Crawl-delay: 9",
        "Content-Usage: train-ai=n",
        "Host: h",
        "Noindex: /x",
        "",
        "# remark",
        "what is this",
    ] {
        check(
            format!(
                "User-agent: ourbot\n{line}\nUser-agent: b\nDisallow: /p/\n{line}\nDisallow: /q/\n"
            ),
            &["/x"],
            &["/p/", "/q/"],
        );
    }
    let robots =
        rules("User-agent: ourbot\nCrawl-delay: 9\nUser-agent: b\nCrawl-delay: 2\nDisallow: /\n");
    assert_eq!(robots.crawl_delay(), Some(Duration::from_secs(9)));
    let robots = Robots::parse(
        b"User-agent: a\nCrawl-delay: 9\nUser-agent: b\nCrawl-delay: 2\n",
        "b",
    );
    assert_eq!(robots.crawl_delay(), Some(Duration::from_secs(2)));
}

#[test]
fn stars_name_all_agents_only_by_themselves() {
    for agent in ["*bot", "* bot", "*/1.0", "bot*", "\"*\""] {
        let forbids = !is_allowed(&rules(format!("User-agent: {agent}\nDisallow: /\n")), "/");
        assert_eq!(forbids, agent == "* bot", "{agent}");
    }
    check("User-agent: ourbot*\nDisallow: /p\n", &["/"], &["/p"]);
    check("User-agent: ourbot2\nDisallow: /p\n", &["/p"], &[]);
    check("User-agent:\nDisallow: /p\n", &["/p"], &[]);
    assert!(is_allowed(
        &Robots::parse(b"User-agent:\nDisallow: /\n", ""),
        "/"
    ));
}

#[test]
fn a_line_that_the_limit_cuts_is_no_rule() {
    // Remarks, so that little is left of what was read: the limit counts bytes of the file.
    let remark = "#".repeat(255) + "\n";
    let filler = |bytes: usize| remark.repeat(bytes / 256) + &"\n".repeat(bytes % 256);
    let (head, whole) = ("User-agent: *\nDisallow: /first\n", "Disallow: /second\n");
    let cut = "Disallow: /private/letters";
    for kept in [1, 9, 10, 11, 12, 18, cut.len()] {
        let filler = filler(MOST_BYTES - head.len() - whole.len() - kept);
        let body = format!("{head}{filler}{whole}{cut} and more\n");
        check(
            &body.as_bytes()[..MOST_BYTES],
            &["/private/letters", "/p", "/"],
            &["/first", "/second"],
        );
    }
    let wide = utf_16(
        &format!("{head}{}", "Disallow: /private/letters\n".repeat(20_000)),
        u16::to_le_bytes,
    );
    assert!(wide.len() > MOST_BYTES);
    check(wide, &["/p", "/private/"], &["/first", "/private/letters"]);
    // Of a line without an end nothing is left.
    check("a".repeat(2 * MOST_BYTES), &["/"], &[]);
    check(
        format!("User-agent: *\nDisallow: /{}", "a".repeat(MOST_BYTES)),
        &["/", "/a"],
        &[],
    );
}

#[test]
fn a_rule_of_hundreds_of_kilobytes_is_matched_like_any_other() {
    let long = "a".repeat(400 * 1024);
    let robots = rules(format!(
        "User-agent: *\nDisallow: /{long}\nDisallow: /b/\nDisallow: /*{}\n",
        "*a".repeat(50_000)
    ));
    assert!(is_allowed(&robots, "/aaa"));
    assert!(!is_allowed(&robots, "/b/"));
    assert!(!is_allowed(&robots, &format!("/{long}/x")));
}

#[test]
fn utf_16_without_a_mark_is_read_too_and_what_follows_a_nul_is_not() {
    let plain = |text: &str, unit: fn(u16) -> [u8; 2]| {
        text.encode_utf16().flat_map(unit).collect::<Vec<u8>>()
    };
    let text = "User-agent: *\nDisallow: /p/\n";
    check(plain(text, u16::to_le_bytes), &["/q"], &["/p/a"]);
    check(plain(text, u16::to_be_bytes), &["/q"], &["/p/a"]);
    check(
        "User-agent: *\nDisallow: /p/\0\0\0Allow: /p/a\nDisallow: /r/\n\0\0\0\0",
        &["/q"],
        &["/p/a", "/r/"],
    );
}

/// A NUL is part of no token of RFC 9309 §2.2; to Google's parser it ends the line's text, too.
#[test]
fn a_nul_before_a_key_makes_no_rule_of_the_line_and_one_after_a_path_is_no_part_of_it() {
    for line in [
        "\0Disallow: /\0",
        "\0Disallow: /",
        "Dis\0allow: /",
        " \0 Disallow: /",
    ] {
        check(
            format!("User-agent: *\n{line}\nDisallow: /p/\n"),
            &["/"],
            &["/p/"],
        );
        check(
            format!("{line}\nUser-agent: *\nDisallow: /p/\n"),
            &["/"],
            &["/p/"],
        );
        check(
            format!("User-agent: *\nDisallow: /p/\n{line}"),
            &["/"],
            &["/p/"],
        );
    }
    check(
        "User-agent: *\0x\nDisallow: /p/\0\n",
        &["/"],
        &["/p/", "/p/a"],
    );
    // Nothing is left of a value before it: an empty rule, which forbids nothing.
    check("User-agent: *\nDisallow: \0/\n", &["/"], &[]);
}

#[test]
fn the_line_that_decides_is_told_with_its_number() {
    let file = b"\xef\xbb\xbf# ours\r\nUser-agent: *\rDisallow: /private/\n\nUser-agent: ourbot # us\n  Disallow : /private/ # why\r\nAllow: /private/but/\nDisallow: /a$b\n";
    let line = |token: &str, path: &str| {
        let url = Url::parse(&format!("{HOST}{path}")).unwrap();
        Robots::deciding_line(file, token, &url).map(|line| (line.number, line.text))
    };
    let found = |number: usize, text: &str| Some((number, text.to_owned()));
    assert_eq!(
        line("ourbot", "/private/x"),
        found(6, "Disallow : /private/ # why")
    );
    assert_eq!(
        line("ourbot", "/private/but/x"),
        found(7, "Allow: /private/but/")
    );
    assert_eq!(line("ourbot", "/a$bc"), found(8, "Disallow: /a$b"));
    assert_eq!(
        line("otherbot", "/private/x"),
        found(3, "Disallow: /private/")
    );
    assert_eq!(line("ourbot", "/x"), None);
    assert_eq!(line("ourbot", "/robots.txt"), None);
}

/// The example of draft-ietf-aipref-attach §3.4.
#[test]
fn content_usage_is_told_by_the_longest_path_of_our_group() {
    let file = b"User-Agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: train-ai=n\nContent-Usage: /ai-ok/ train-ai=y\n\
        Content-Usage: /ai-ok/\tsearch=y # remark\nContent-Usage: /none/\nContent-Usage:\n\nUser-Agent: ExampleBot\nAllow: /\nContent-Usage: train-ai=y\n";
    let said = |token: &str, path: &str| {
        let url = Url::parse(&format!("{HOST}{path}")).unwrap();
        Robots::parse(file, token)
            .content_usage(&url)
            .map(str::to_owned)
    };
    assert_eq!(said("ourbot", "/test").as_deref(), Some("train-ai=n"));
    assert_eq!(said("ourbot", "/none/").as_deref(), Some("train-ai=n"));
    assert_eq!(
        said("ourbot", "/ai-ok/test").as_deref(),
        Some("train-ai=y, search=y")
    );
    assert_eq!(said("examplebot", "/ai-ok/").as_deref(), Some("train-ai=y"));
    let url = Url::parse(HOST).unwrap();
    assert_eq!(
        rules("User-agent: *\nDisallow: /x\n").content_usage(&url),
        None
    );
}

/// Lines as people write them, and worse.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = "(User-agent|Disallow|Allow|Crawl-delay|Content-Usage|Sitemap)?:? ?(ourbot|\\*|[-/*$%'0-9a-z ]{0,12})[\r\n#\\x00]";
    prop::collection::vec(line, 0..20)
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), lines in lines(), path in "[-/*$%?#'0-9a-z]{0,20}") {
        let url = Url::parse(HOST).unwrap().join(&path).unwrap_or_else(|_| Url::parse(HOST).unwrap());
        let file = Url::parse(HOST).unwrap().join("/robots.txt").unwrap();
        for body in [&body[..], lines.concat().as_bytes(), &[b"\xff\xfe", &body[..]].concat()] {
            let robots = rules(body);
            let verdict = robots.judge(&url);
            prop_assert_eq!(&verdict, &Robots::parse(body, "OURBOT/1.0").judge(&url));
            prop_assert_eq!(robots.judge(&file), Verdict::Allowed);
            prop_assert!(robots.crawl_delay().is_none_or(|delay| delay <= MAX_CRAWL_DELAY));
            let _ = (robots.sitemaps(), robots.content_usage(&url));
            if let Verdict::Disallowed { .. } = verdict {
                let line = Robots::deciding_line(body, "ourbot", &url);
                prop_assert!(line.is_some_and(|line| line.text.to_ascii_lowercase().starts_with("dis")));
            }
        }
    }

    #[test]
    fn what_is_read_is_the_same_however_lines_end(lines in lines(), path in "/[-/*$'0-9a-z]{0,12}") {
        let url = Url::parse(&format!("{HOST}{path}")).unwrap();
        let lines: Vec<String> = lines.iter().map(|line| line.replace(['\r', '\n', '\0'], "")).collect();
        let verdict = rules(lines.join("\n")).judge(&url);
        prop_assert_eq!(&verdict, &rules(lines.join("\r")).judge(&url));
        prop_assert_eq!(&verdict, &rules(lines.join("\r\n")).judge(&url));
        prop_assert_eq!(&verdict, &rules(utf_16(&lines.join("\n"), u16::to_be_bytes)).judge(&url));
    }
}
