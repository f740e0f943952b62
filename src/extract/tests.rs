use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

const PAGE: &str = "http://host.test/d/i.html";

/// What is extracted of a body sent from `/d/i.html` with these header fields.
fn read(fields: &[(&'static str, &str)], body: impl AsRef<[u8]>) -> Extraction {
    read_as(fields, body, |_| {})
}

/// The same, read under other terms.
fn read_as(
    fields: &[(&'static str, &str)],
    body: impl AsRef<[u8]>,
    terms: impl Fn(&mut Input<'_>),
) -> Extraction {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    let url = PageUrl::parse(PAGE).unwrap();
    let mut input = Input {
        url: &url,
        headers: &headers,
        body: body.as_ref(),
        robots_token: "ourbot",
        anchors: false,
        canon: &crate::canon::BASE,
        wants: Wants::default(),
    };
    terms(&mut input);
    extract(&input, &mut HrefCache::default())
}

/// An HTML page, with the texts of its links or without.
fn with(page: &str, anchors: bool) -> Extraction {
    read_as(&[("content-type", "text/html")], page, |input| {
        input.anchors = anchors;
    })
}

fn html(body: impl AsRef<[u8]>) -> Extraction {
    read(&[("content-type", "text/html; charset=utf-8")], body)
}

/// The links' targets, short where they lie on the page's host.
fn targets(found: &Extraction) -> Vec<&str> {
    found
        .links
        .iter()
        .map(|link| link.url.as_str())
        .map(|url| url.strip_prefix("http://host.test").unwrap_or(url))
        .collect()
}

fn links(body: impl AsRef<[u8]>) -> Vec<String> {
    targets(&html(body))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// The links that may be followed.
fn followable(found: &Extraction) -> Vec<&str> {
    let open = found.links.iter().map(|link| !link.rel.nofollow);
    targets(found)
        .into_iter()
        .zip(open)
        .filter(|(_, open)| *open && !found.nofollow)
        .map(|(target, _)| target)
        .collect()
}

mod the_base {
    use super::*;

    #[test]
    fn that_is_a_data_or_javascript_address_is_ignored() {
        assert_eq!(
            links(r#"<base href="data:text/plain,hi"><a href="ok1">"#),
            ["/d/ok1"]
        );
        assert_eq!(
            links(r#"<base href="javascript:void(0)"><a href="ok2">"#),
            ["/d/ok2"]
        );
        assert_eq!(
            links(r#"<base href="http://["><base href="/b/"><a href="ok3">"#),
            ["/d/ok3"]
        );
    }

    #[test]
    fn that_comes_first_with_an_href_counts_for_links_above_it_too() {
        let page = r#"<base target=_top><a href="one">1</a><base href="/b1/"><base href="/b2/"><a href="two">2</a>"#;
        assert_eq!(links(page), ["/b1/one", "/b1/two"]);
    }

    #[test]
    fn may_be_relative_or_on_another_host() {
        assert_eq!(links(r#"<base href="../e/x"><a href="y">"#), ["/e/y"]);
        assert_eq!(
            links(r#"<base href="https://o.test/b/"><a href="y"><a href="/z"><a href="?q">"#),
            [
                "https://o.test/b/y",
                "https://o.test/z",
                "https://o.test/b/?q"
            ]
        );
    }
}

mod links_to_pages {
    use super::*;

    #[test]
    fn are_anchors_areas_frames_and_relations_between_pages() {
        let found = html(
            r#"<link rel="NEXT" href=n><link rel=stylesheet href=s.css><link rel="alternate stylesheet" href=t.css>
            <link rel=icon href=i.png><link rel=preconnect href=//cdn.test><link rel=canonical href=c>
            <link rel=alternate type="application/rss+xml; charset=utf-8" href=feed>
            <link rel=alternate type=application/json href=api><link rel=alternate type=text/xml+oembed href=o>
            <link rel=search href=find><link rel=search type=application/opensearchdescription+xml href=o.xml><link href=none><link rel=prev href="">
            <A HREF=a>x</A><map><area href=r></map><iframe src=f></iframe><frame src=g><iframe src=""></iframe>
            <img src=no.png><script src=no.js></script><form action=no></form><a name=no>"#,
        );
        let kinds: Vec<_> = found
            .links
            .iter()
            .map(|link| link.kind)
            .zip(targets(&found))
            .collect();
        use LinkKind::*;
        assert_eq!(
            kinds,
            [
                (Next, "/d/n"),
                (Canonical, "/d/c"),
                (Alternate, "/d/feed"),
                (Link, "/d/find"),
                (Anchor, "/d/a"),
                (Area, "/d/r"),
                (Iframe, "/d/f"),
                (Frame, "/d/g"),
            ]
        );
    }

    #[test]
    fn are_targets_of_a_refresh_in_all_spellings() {
        for (page, target) in [
            (
                r#"<meta content="0;url=t1" http-equiv="refresh">"#,
                Some("/d/t1"),
            ),
            (
                r#"<meta http-equiv="refresh" content="0; url='t2'">"#,
                Some("/d/t2"),
            ),
            (
                r#"<meta http-equiv="refresh" content="3; url=&#39;t3&#39;">"#,
                Some("/d/t3"),
            ),
            (
                r#"<META HTTP-EQUIV=" Refresh " CONTENT=" 1.5 , URL = t4 ">"#,
                Some("/d/t4"),
            ),
            (r#"<meta http-equiv=refresh content="0;/t5">"#, Some("/t5")),
            (r#"<meta http-equiv=refresh content="0 t6">"#, Some("/d/t6")),
            (
                r#"<meta http-equiv=refresh content="0; url=&quot;t7&quot; rest">"#,
                Some("/d/t7"),
            ),
            (
                r#"<meta http-equiv=refresh content="0;urlaub">"#,
                Some("/d/urlaub"),
            ),
            (r#"<meta http-equiv=refresh content="5">"#, None),
            (r#"<meta http-equiv=refresh content="0;url=">"#, None),
            (r#"<meta http-equiv=refresh content="url=t">"#, None),
            (
                r#"<meta http-equiv=refresh content="0;url=javascript:x()">"#,
                None,
            ),
            (
                r#"<meta http-equiv=refresh content="0;url=é'">"#,
                Some("/d/%C3%A9'"),
            ),
        ] {
            let found = links(page);
            assert_eq!(found.first().map(String::as_str), target, "{page}");
            assert!(found.len() < 2);
        }
        assert_eq!(
            targets(&read(
                &[("refresh", "0; url=/h"), ("content-type", "text/plain")],
                "x"
            )),
            ["/h"]
        );
    }

    #[test]
    fn are_not_in_comments() {
        let page = r#"<a href=/live>1</a><!-- <a href="/dead1">x</a> --><!--><a href=/live2>2</a><!-- a -- b --><a href=/live3>3</a>"#;
        assert_eq!(links(page), ["/live", "/live2", "/live3"]);
    }

    #[test]
    fn are_in_noscript_but_not_in_scripts_templates_and_texts() {
        let page = r#"<noscript><a href=/n1>x</a><!-- <a href=/dead> --></noscript>
            <script>document.write('<a href=/dead>')</script><style><a href=/dead></style><textarea><a href=/dead></textarea>
            <template><a href=/dead>x</a><template></template><noscript><a href=/dead></noscript><link rel=next href=/dead></template>
            <noframes><a href=/n2></noframes><title><a href=/dead></title><a href=/after>"#;
        assert_eq!(links(page), ["/after", "/n1", "/n2"]);
    }

    #[test]
    fn are_not_guessed_from_other_texts() {
        let page = r#"<meta property="og:site_name" content="Shop.test"><meta property="og:url" content="http://host.test/self">
            <meta name="description" content="see /manual.pdf now"><p>http://host.test/plain</p>"#;
        assert!(links(page).is_empty());
        let text = read(&[("content-type", "text/plain")], "<html><a href=/no>");
        assert!(text.links.is_empty() && text.text.is_some());
    }

    #[test]
    fn have_their_references_decoded() {
        let page = r#"<a href="?a=5&amp;v=full"><a href="?a=6&#38;v=full"><a href="?a=7&#x26;v=full"><a href="/p&#97;th">"#;
        assert_eq!(
            links(page),
            [
                "/d/i.html?a=5&v=full",
                "/d/i.html?a=6&v=full",
                "/d/i.html?a=7&v=full",
                "/path"
            ]
        );
    }

    #[test]
    fn keep_what_only_looks_like_a_reference() {
        let page = r#"<a href="/e?n=1&copy=7&sect=4&notit=5&para=6">"#;
        assert_eq!(links(page), ["/e?n=1&copy=7&sect=4&notit=5&para=6"]);
    }

    #[test]
    fn have_a_text_and_the_words_of_their_rel_where_they_are_wanted() {
        let page = r#"<a href=/a rel=" NoFollow  UGC">One <b>two</b>
            &amp; three</a> no <a href=/b><img alt="A &lt;cat&gt;"></a><a href=/c title=Hint> </a>
            <a href=/d>open<a href=/e>next</a> after</a><map><area href=/f alt=Area></map>
            <a href=/g><img></a><a href=/g>later</a><noscript><a href=/h>plain</a></noscript><link rel=Next title=On href=/i>"#;
        let found = with(page, true);
        let said: Vec<_> = found
            .links
            .iter()
            .zip(targets(&found))
            .map(|(link, target)| (target, link.anchor.as_deref(), link.rel_text.as_deref()))
            .collect();
        assert_eq!(
            said,
            [
                ("/a", Some("One two & three"), Some("nofollow ugc")),
                ("/b", Some("A <cat>"), None),
                ("/c", Some("Hint"), None),
                ("/d", Some("open"), None),
                ("/e", Some("next"), None),
                ("/f", Some("Area"), None),
                ("/g", Some("later"), None),
                ("/i", Some("On"), Some("next")),
                ("/h", Some("plain"), None),
            ]
        );
        let long = format!("<a rel='{0}' href=/x>{0}</a>", "long ".repeat(1_000));
        let found = with(&long, true);
        let link = &found.links[0];
        assert_eq!(link.anchor.as_ref().unwrap().chars().count(), 199);
        assert_eq!(link.rel_text.as_ref().unwrap().chars().count(), 199);
        let quiet = with(page, false);
        assert!(
            quiet
                .links
                .iter()
                .all(|link| link.anchor.is_none() && link.rel_text.is_none())
        );
        assert_eq!(targets(&quiet), targets(&with(page, true)));
    }

    #[test]
    fn are_never_cut() {
        let long = format!("/l?x={}", "A".repeat(3000));
        assert_eq!(
            links(format!(r#"<a href="{long}"><a href="/tail">"#)),
            [long.as_str(), "/tail"]
        );
    }

    #[test]
    fn come_once_each_and_are_followable_if_any_of_them_is() {
        let found = html(
            r#"<a href=/a rel=nofollow><a href=/a#x><a href=/b rel=nofollow><a href=/b rel=nofollow>
            <a href=/c><a href=/c rel=nofollow><a href="/%63" rel=nofollow>"#,
        );
        assert_eq!(targets(&found), ["/a", "/b", "/c"]);
        assert_eq!(followable(&found), ["/a", "/c"]);
    }

    #[test]
    fn are_5000_at_most_and_the_excess_is_counted() {
        let page: String = (0..5_123).map(|n| format!("<a href=/{n}>")).collect();
        let again = "<a href=/1><a href=/5122><a href=mailto:x>".repeat(10);
        let found = html(page + &again);
        assert_eq!((found.links.len(), found.links_excess), (5_000, 124));
        assert_eq!(found.links[4_999].url.as_str(), "http://host.test/4999");
    }

    #[test]
    fn of_a_page_in_an_old_encoding_have_their_query_in_it() {
        let page = "<a href=\"/\u{6e56}?k=\u{6e56}#\u{6e56}\"><a href='?k=é'>";
        let (gbk, ..) = encoding_rs::GBK.encode(page);
        let found = read(&[("content-type", "text/html; charset=gbk")], gbk);
        assert_eq!(
            targets(&found),
            ["/%E6%B9%96?k=%BA%FE", "/d/i.html?k=%A8%A6"]
        );
        let (latin, ..) =
            encoding_rs::WINDOWS_1252.encode("<a href='/?k=é&amp;l=&#x6e56;&amp;m=\"'>");
        let found = read(&[("content-type", "text/html; charset=iso-8859-1")], latin);
        assert_eq!(targets(&found), ["/?k=%E9&l=%26%2328246%3B&m=%22"]);
        assert_eq!(links("<a href=\"/?k=\u{6e56}\">"), ["/?k=%E6%B9%96"]);
        let utf_16: Vec<u8> = "\u{feff}<a href=/?k=é>"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(links(utf_16), ["/?k=%C3%A9"]);
    }

    #[test]
    fn may_stand_in_the_header() {
        let found = read(
            &[
                ("content-type", "text/html"),
                (
                    "link",
                    r#"</css>; rel=preload, <next>; title="a, <b>"; REL="x Next" , </p>;rel=prev"#,
                ),
                ("link", r#"<//o.test/c>; rel="canonical"; nothing"#),
                ("link", "<broken; rel=next"),
            ],
            "<base href=/b/><a href=/p>",
        );
        assert_eq!(targets(&found), ["/p", "/d/next", "http://o.test/c"]);
        assert_eq!(found.canonical_url.as_deref(), Some("http://o.test/c"));
        assert_eq!(found.links[1].kind, LinkKind::Header);
    }
}

mod wishes_of_the_page {
    use super::*;

    #[test]
    fn rel_is_a_set_of_words() {
        let page = r#"<a rel="noopener NoFollow" href="/n1"><a rel="nofollowing" href="/y1"><a rel=ugc href="/y2">
            <a rel=" x	nofollow " href=/n2>"#;
        assert_eq!(followable(&html(page)), ["/y1", "/y2"]);
    }

    #[test]
    fn general_and_addressed_directives_add_up() {
        let of = |fields: &[(&'static str, &str)]| {
            let found = read(fields, "<title>x</title><a href=/b>");
            (found.nofollow, found.robots)
        };
        let some = |text: &str| Some(text.to_owned());
        for (fields, result) in [
            (
                &[
                    ("x-robots-tag", "nofollow"),
                    ("x-robots-tag", "otherbot: noindex"),
                ][..],
                (true, some("nofollow")),
            ),
            (
                &[
                    ("x-robots-tag", "otherbot: noindex"),
                    ("x-robots-tag", "noarchive"),
                    ("x-robots-tag", "nofollow"),
                ],
                (true, some("noarchive, nofollow")),
            ),
            (&[("x-robots-tag", "otherbot: nofollow")], (false, None)),
            (
                &[("x-robots-tag", "OurBot: NoFollow")],
                (true, some("NoFollow")),
            ),
            (
                &[("x-robots-tag", "otherbot: noindex, nofollow")],
                (false, None),
            ),
            (
                &[("x-robots-tag", "otherbot: noindex, ourbot: noarchive")],
                (false, some("noarchive")),
            ),
            (&[("x-robots-tag", "none")], (true, some("none"))),
            (
                &[("x-robots-tag", "noindex, max-snippet: 20")],
                (false, some("noindex, max-snippet: 20")),
            ),
            (
                &[(
                    "x-robots-tag",
                    "unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, nofollow",
                )],
                (
                    true,
                    some("unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, nofollow"),
                ),
            ),
        ] {
            assert_eq!(of(fields), result, "{fields:?}");
        }
    }

    #[test]
    fn a_meta_for_robots_or_for_us_counts() {
        for (page, nofollow, robots) in [
            (
                r#"<meta name=robots content="noindex,NOFOLLOW">"#,
                true,
                Some("noindex,NOFOLLOW"),
            ),
            (r#"<META CONTENT=none NAME=" ROBOTS ">"#, true, Some("none")),
            (
                r#"<meta name=OurBot content=nofollow><meta name=robots content=index>"#,
                true,
                Some("nofollow, index"),
            ),
            (r#"<meta name=otherbot content=nofollow>"#, false, None),
            (
                r#"<meta name=robots content="nofollowing, noindex">"#,
                false,
                Some("nofollowing, noindex"),
            ),
            (
                r#"<template><meta name=robots content=nofollow></template>"#,
                false,
                None,
            ),
        ] {
            let found = html(page.to_owned() + "<a href=/x>");
            assert_eq!(
                (found.nofollow, found.robots.as_deref()),
                (nofollow, robots),
                "{page}"
            );
            assert_eq!(targets(&found), ["/x"]);
        }
    }

    #[test]
    fn words_of_values_and_dates_are_no_directives() {
        for (field, nofollow) in [
            ("max-image-preview: none", false),
            ("max-image-preview:none, max-snippet: 5 nofollow", true),
            ("noindex max-image-preview: none", false),
            (
                "unavailable_after: Wed, 2025-06-25T15:00:00Z, nofollow",
                true,
            ),
            (
                "otherbot: unavailable_after: Wed, 2025-06-25T15:00:00Z, nofollow",
                false,
            ),
            ("noindex nofollow", true),
            ("all", false),
        ] {
            let found = read(&[("x-robots-tag", field)], "<a href=/b>");
            assert_eq!(found.nofollow, nofollow, "{field}");
        }
        let found = html("<meta name=robots content='max-image-preview: none; noarchive'>");
        assert!(!found.nofollow && found.signals.noarchive && !found.signals.noindex);
    }

    #[test]
    fn signals_of_header_and_page_are_kept() {
        let found = read(
            &[
                ("content-type", "text/html"),
                ("content-usage", "train-ai=n"),
                ("content-usage", "search=y"),
                ("tdm-reservation", "1"),
                ("tdm-policy", "https://h/header.json"),
                ("x-robots-tag", "NoAI"),
                ("x-robots-tag", "otherbot: noindex"),
            ],
            "<meta name=robots content='noimageai, NoArchive'><meta name=TDM-Reservation content=0>\
             <meta name=tdm-policy content=' https://h/page.json '><a href=/ rel='ugc sponsored'>",
        );
        let signals = found.signals;
        assert!(signals.noai && signals.noimageai && signals.noarchive && !signals.noindex);
        assert_eq!(
            signals.content_usage.as_deref(),
            Some("train-ai=n, search=y")
        );
        assert_eq!(
            signals.tdm_reservation.as_deref(),
            Some("1"),
            "who reserves is heard"
        );
        assert_eq!(signals.tdm_policy.as_deref(), Some("https://h/page.json"));
        let rel = found.links[0].rel;
        assert!(rel.ugc && rel.sponsored && !rel.nofollow);

        let none = html("<meta name=robots content='none'>");
        assert!(none.signals.noindex && none.nofollow && !none.signals.noarchive);
        assert_eq!(html("<a href=/>").signals, Signals::default());
        let meta = html("<meta name=tdm-reservation content=1>");
        assert_eq!(meta.signals.tdm_reservation.as_deref(), Some("1"));
    }

    #[test]
    fn a_header_speaks_for_an_answer_without_a_body() {
        let mut headers = HeaderMap::new();
        headers.insert("x-robots-tag", "noindex, nofollow".parse().unwrap());
        let found = of_header(&headers, "ourbot");
        assert!(found.signals.noindex && found.nofollow);
        assert_eq!(found.robots.as_deref(), Some("noindex, nofollow"));
    }

    #[test]
    fn header_and_page_are_joined() {
        let found = read(
            &[("content-type", "text/html"), ("x-robots-tag", "noarchive")],
            "<meta name=robots content=noindex>",
        );
        assert_eq!(found.robots.as_deref(), Some("noarchive, noindex"));
        assert!(!found.nofollow);
    }
}

mod texts {
    use super::*;

    #[test]
    fn are_the_first_with_text_tidied() {
        let found = html(
            "<html LANG=' de-AT '><svg/><svg><title>drawing</title></svg><title> </title><title>\n A &amp;\u{0} B&nbsp;\t&copy </title>
            <title>second</title><meta name=Description content=''><meta content=' d1  d&eacute; ' name=description>
            <meta name=description content=d2><h1><img></h1><h1 class=x>He<b>ad</b><br>line<script>no()</script></h1><h1>2</h1>",
        );
        assert_eq!(found.title.as_deref(), Some("A & B \u{a9}"));
        assert_eq!(found.description.as_deref(), Some("d1 dé"));
        assert_eq!(found.h1.as_deref(), Some("Head line"));
        assert_eq!(found.lang.as_deref(), Some("de-AT"));
    }

    #[test]
    fn are_cut_at_their_limits_between_characters() {
        let found = html(format!(
            "<title>{}</title><meta name=description content='{}'><h1>{}",
            "ä ".repeat(5_000),
            "\u{1f980}".repeat(5_000),
            "x&#x00e9;".repeat(500_000),
        ));
        let counted = |text: Option<String>| text.unwrap().chars().count();
        assert_eq!(counted(found.title), 999);
        assert_eq!(counted(found.description), 2_000);
        assert_eq!(counted(found.h1), 1_000);
    }

    #[test]
    fn of_an_element_without_end_are_kept() {
        assert_eq!(
            html("<title>un&eacute;nded").title.as_deref(),
            Some("unénded")
        );
        assert_eq!(html("<h1>un<i>ended").h1.as_deref(), Some("unended"));
    }

    #[test]
    fn the_declared_canonical_url_is_resolved_and_the_first_counts() {
        let found = html(
            "<base href=/b/><link rel='x CANONICAL' href='c?x#y'><link rel=canonical href=/d>",
        );
        assert_eq!(
            found.canonical_url.as_deref(),
            Some("http://host.test/b/c?x")
        );
        assert_eq!(
            html("<link rel=canonical href='mailto:x'>").canonical_url,
            None
        );
    }
}

mod media_types {
    use super::*;

    fn of(body: &[u8]) -> Option<String> {
        read(&[], body).media_type
    }

    #[test]
    fn are_sniffed_where_the_header_names_none() {
        let found = read(&[], "\n <!-- c --><html><a href=/a>");
        assert_eq!(
            (found.media_type.as_deref(), targets(&found)),
            (Some("text/html"), vec!["/a"])
        );
        for (body, name) in [
            (
                &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR<a href=/no>"[..],
                Some("application/octet-stream"),
            ),
            (b"%PDF-1.7\n<a href=/no>", Some("application/pdf")),
            (b"<?xml version='1.0'?><urlset/>", Some("text/xml")),
            (b"\xef\xbb\xbf <!DOCTYPE HTML><p>", Some("text/html")),
            (b"<a\thref=/x>", Some("text/html")),
            (b"<article>", Some("text/plain")),
            (b"plain words", Some("text/plain")),
            (b"\xff\xfea\0b\0", Some("text/plain")),
            (b"", None),
        ] {
            assert_eq!(
                of(body).as_deref(),
                name,
                "{:?}",
                String::from_utf8_lossy(body)
            );
        }
        assert!(
            read(&[], b"\x89PNG\r\n\x1a\n\0<a href=/no>")
                .links
                .is_empty()
        );
    }

    #[test]
    fn that_say_they_do_not_know_are_sniffed() {
        for field in ["unknown/unknown", "application/unknown", "*/*", "html"] {
            let found = read(&[("content-type", field)], "<!-- c --><html><a href=/a>");
            assert_eq!(found.media_type.as_deref(), Some("text/html"), "{field}");
            assert_eq!(targets(&found), ["/a"], "{field}");
        }
    }

    #[test]
    fn are_read_from_sloppy_fields() {
        for (field, name) in [
            ("Text/HTML;;charset=x", Some("text/html")),
            ("text/html charset=utf-8", Some("text/html")),
            ("text/html, text/html", Some("text/html")),
            (" application/XHTML+xml ;q", Some("application/xhtml+xml")),
            ("text", None),
            ("*/*", None),
            ("text/", None),
            ("text/h tml\u{e9}", Some("text/h")),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(
                "content-type",
                HeaderValue::from_bytes(field.as_bytes()).unwrap(),
            );
            assert_eq!(media_type(&headers).as_deref(), name, "{field}");
        }
    }

    #[test]
    fn decide_what_is_read() {
        for wanted in [
            "text/html",
            "text/plain",
            "application/xhtml+xml",
            "application/xml",
            "text/xml",
            "application/rss+xml",
        ] {
            assert!(is_wanted(Some(wanted)), "{wanted}");
        }
        for other in [
            "image/png",
            "image/svg+xml",
            "application/pdf",
            "application/json",
            "application/octet-stream",
            "video/mp4",
        ] {
            assert!(!is_wanted(Some(other)), "{other}");
            let found = read(&[("content-type", other)], "<title>x</title><a href=/x>");
            assert!(
                found.text.is_none() && found.links.is_empty() && found.title.is_none(),
                "{other}"
            );
            assert_eq!(found.media_type.as_deref(), Some(other));
        }
        assert!(is_wanted(None));
    }

    #[test]
    fn of_xhtml_are_read_as_html_and_other_xml_has_no_links() {
        let xhtml = "<?xml version='1.0' encoding='iso-8859-2'?><html xmlns='http://www.w3.org/1999/xhtml'><title/><script src='s'/><a href='/x'/></html>";
        for name in ["application/xhtml+xml", "application/xml", "text/xml"] {
            let found = read(&[("content-type", name)], xhtml);
            assert_eq!(
                (targets(&found), found.charset),
                (vec!["/x"], Some("ISO-8859-2")),
                "{name}"
            );
        }
        let feed = read(
            &[("content-type", "application/rss+xml")],
            "<rss><a href='/x'/></rss>",
        );
        assert!(feed.links.is_empty() && feed.text.is_some());
    }
}

mod encodings {
    use super::*;

    /// Encoding, source and title of a page of these bytes under this Content-Type.
    fn of(field: &str, body: impl AsRef<[u8]>) -> (&'static str, &'static str, String) {
        let found = read(&[("content-type", field)], body);
        (
            found.charset.unwrap(),
            found.charset_from.unwrap().as_str(),
            found.title.unwrap_or_default(),
        )
    }

    fn is(
        charset: &'static str,
        from: &'static str,
        title: &str,
    ) -> (&'static str, &'static str, String) {
        (charset, from, title.to_owned())
    }

    #[test]
    fn a_meta_is_heard_where_the_header_is_silent() {
        let page = "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=windows-1251\"><title>Привет</title>";
        let (bytes, ..) = encoding_rs::WINDOWS_1251.encode(page);
        assert_eq!(of("text/html", bytes), is("windows-1251", "meta", "Привет"));
    }

    #[test]
    fn a_meta_is_heard_after_the_first_kilobyte() {
        let page = format!(
            "<!--{}--><script>'<meta charset=big5>'</script><meta charset=utf-8><title>Łódź</title>",
            "x".repeat(3000)
        );
        assert_eq!(of("text/html", page), is("UTF-8", "meta", "Łódź"));
    }

    #[test]
    fn the_charset_of_a_script_is_not_the_pages() {
        let page = b"<script charset=\"utf-8\" src=\"t.js\"></script><meta http-equiv=\"Content-Type\" content=\"text/html; charset=ISO-8859-15\"><title>\xa4</title>";
        assert_eq!(of("text/html", page), is("ISO-8859-15", "meta", "€"));
    }

    #[test]
    fn a_meta_without_media_type_is_heard() {
        let page = b"<meta http-equiv=Content-Type content=\"charset=gbk\"><title>\xcb\xae\xb9\xfb</title>";
        assert_eq!(of("text/html", page), is("GBK", "meta", "水果"));
    }

    #[test]
    fn an_unknown_label_is_as_good_as_none() {
        let page = "<meta charset=utf-8><title>naïve</title><a href=/x>";
        assert_eq!(
            of("text/html; charset=ISO-88509-1", page),
            is("UTF-8", "meta", "naïve")
        );
        assert_eq!(
            of(
                "text/html; charset=ISO-88509-1",
                "<meta charset=klingon><title>naïve"
            ),
            is("UTF-8", "detected", "naïve")
        );
        assert_eq!(
            of("text/html; charset=iso-2022-kr", "<title>naïve"),
            is("UTF-8", "detected", "naïve")
        );
    }

    #[test]
    fn a_sloppy_header_is_read() {
        let page = b"<title>\x8alapka</title><a href=/n>";
        for field in [
            "Text/HTML;;charset=\"windows-1250\";x=y",
            "text/html;x=\"a;charset=utf-8\\\"\";CharSet=windows-1250",
            "text/html charset=windows-1250",
            "text/html; charset = 'windows-1250'",
            "text/html; charset=windows-1250 ; q",
            "text/html; charset; charset=windows-1250",
        ] {
            assert_eq!(
                of(field, page),
                is("windows-1250", "header", "Šlapka"),
                "{field}"
            );
        }
    }

    #[test]
    fn broken_bytes_do_not_eat_the_markup() {
        let found =
            html(b"<title>A\xe2\x82B</title><p>x\xf0<a href=/kept>y</a>\xe2\x82<a href=/kept2>");
        assert_eq!(targets(&found), ["/kept", "/kept2"]);
        assert_eq!(found.title.as_deref(), Some("A\u{fffd}B"));
    }

    #[test]
    fn the_byte_order_mark_beats_the_header_and_the_header_the_meta() {
        let mark = "\u{feff}<meta charset=koi8-r><title>é</title>";
        assert_eq!(of("text/html; charset=gbk", mark), is("UTF-8", "bom", "é"));
        let wide: Vec<u8> = mark.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(
            of("text/html; charset=utf-8", wide),
            is("UTF-16BE", "bom", "é")
        );
        assert_eq!(
            of(
                "text/html; charset=latin1",
                b"<meta charset=utf-8><title>\xe9"
            ),
            is("windows-1252", "header", "é")
        );
    }

    #[test]
    fn utf_16_without_a_mark_is_told_by_its_xml_declaration() {
        let page = "<?xml version='1.0' encoding='utf-16'?><html><title>Łódź</title></html>";
        let little: Vec<u8> = page.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = page.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for field in ["text/html", "application/xhtml+xml"] {
            assert_eq!(of(field, &little), is("UTF-16LE", "meta", "Łódź"));
            assert_eq!(of(field, &big), is("UTF-16BE", "meta", "Łódź"));
        }
    }

    #[test]
    fn labels_of_the_header_are_those_of_the_standard() {
        for (label, charset) in [
            ("latin1", "windows-1252"),
            ("x-sjis", "Shift_JIS"),
            ("gb2312", "GBK"),
            ("ks_c_5601-1987", "EUC-KR"),
            ("unicode-1-1-utf-8", "UTF-8"),
            ("utf-16", "UTF-16LE"),
            ("x-user-defined", "x-user-defined"),
        ] {
            let field = format!("text/plain; charset={label}");
            assert_eq!(of(&field, b"a").0, charset, "{label}");
        }
    }

    #[test]
    fn the_bytes_are_asked_last() {
        assert_eq!(
            of("text/html", "<title>plain</title>"),
            is("UTF-8", "default", "plain")
        );
        assert_eq!(of("text/html", "<title>é"), is("UTF-8", "detected", "é"));
        // Cut within a character.
        assert_eq!(
            of("text/html", &b"<title>x</title>\xc3\xa9\xc3"[..]),
            is("UTF-8", "detected", "x")
        );
        let page = format!(
            "<title>Привет</title>{}",
            "Все счастливые семьи похожи друг на друга. ".repeat(9)
        );
        let (bytes, ..) = encoding_rs::KOI8_R.encode(&page);
        let (charset, from, title) = of("text/html", &bytes);
        assert_eq!((charset, from), ("KOI8-U", "detected"));
        assert_eq!(title, "Привет");
    }

    #[test]
    fn odd_metas_are_read_as_a_browser_does() {
        for (head, charset) in [
            ("<meta charset=utf-16le>", "UTF-8"),
            ("<meta charset=x-user-defined>", "windows-1252"),
            ("<meta/charset='koi8-r'/>", "KOI8-R"),
            ("<META name=x CHARSET = \"Koi8-R\" >", "KOI8-R"),
            (
                "<meta content='text/html; charset=koi8-r'><meta charset=big5>",
                "Big5",
            ),
            ("<metal charset=koi8-r><meta charset=big5>", "Big5"),
            ("<!-- <meta charset=koi8-r> --><meta charset=big5>", "Big5"),
            ("<!--><meta charset=koi8-r>", "KOI8-R"),
            (
                "<a title='<meta charset=koi8-r>'><meta charset=big5>",
                "Big5",
            ),
            (
                "<title><meta charset=koi8-r></title><meta charset=big5>",
                "Big5",
            ),
            ("</p <meta charset=koi8-r><meta charset=big5>", "Big5"),
            (
                "<meta http-equiv=content-type content='x charset charset = \"koi8-r\"'>",
                "KOI8-R",
            ),
            ("<?xml version='1.0' encoding='koi8-r'?>", "KOI8-R"),
            (
                "<?xml version='1.0' encoding='koi8-r'?><meta charset=big5>",
                "Big5",
            ),
        ] {
            assert_eq!(
                read(&[("content-type", "text/html")], head).charset,
                Some(charset),
                "{head}"
            );
        }
    }
}

mod hostile_pages {
    use super::*;

    #[test]
    fn nested_very_deep_are_read_to_their_end() {
        let found = html(format!(
            "<title>t</title><a href=/first>{}<a href=/last>",
            "<b>".repeat(1_500_000)
        ));
        assert_eq!(found.title.as_deref(), Some("t"));
        assert_eq!(targets(&found), ["/first", "/last"]);
    }

    #[test]
    fn with_unmatched_end_tags_take_linear_time() {
        let page = format!(
            "{}{}<a href=/end>",
            "<i>".repeat(20_000),
            "</b>".repeat(500_000)
        );
        assert_eq!(links(page), ["/end"]);
    }

    #[test]
    fn with_megabytes_in_an_attribute_are_read_on() {
        let big = "x".repeat(4_000_000);
        let page = format!(
            "<img src='data:{big}'><a href='data:text/html,{big}'><p title=\"{big}\"><a href='/end'>"
        );
        assert_eq!(links(page), ["/end"]);
        assert!(links(format!("<a href='/first'><a href='{big}")).contains(&"/first".to_owned()));
    }

    #[test]
    fn that_name_no_charset_again_and_again_take_linear_time() {
        let page = format!(
            "<meta http-equiv=content-type content='{}'><title>é",
            "charset ".repeat(30_000)
        );
        assert_eq!(
            read(&[("content-type", "text/html")], page)
                .title
                .as_deref(),
            Some("é")
        );
    }

    #[test]
    fn of_ampersands_take_linear_time() {
        let page = format!(
            "<title>{}</title><a href='?{}'>",
            "&ampamp".repeat(100_000),
            "&CounterClockwiseContourIntegra".repeat(30_000)
        );
        assert_eq!(html(page).links.len(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..400), field in ".{0,40}") {
        let field = field.replace(|c: char| c.is_control(), "");
        read(&[("content-type", &field), ("link", &field), ("refresh", &field), ("x-robots-tag", &field)], &body);
        html(&body);
        read(&[], &body);
    }

    #[test]
    fn no_tag_soup_makes_it_panic(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "<a href=", "<a rel=nofollow href='", "'>", "\">", ">", "<", "</", "<base href=\"", "<meta ", "charset=", "content=\"",
            "http-equiv=refresh ", "name=robots ", "<title>", "</title>", "<h1>", "</h1>", "<noscript>", "</noscript>", "<template>",
            "</template>", "<svg>", "</svg>", "<script>", "</script>", "<!--", "-->", "<![CDATA[", "]]>", "<?xml encoding='", "&amp;",
            "&#", "x26;", "&", "\0", "é", "\u{1f980}", "utf-16", "0;url=", "<select>", "<table>", "<math>", "<frameset>", "/", "?", "#",
            "<plaintext>", "<iframe src=", "<br>", "<html lang=", " ", "\n",
        ]), 0..60),
        kind in prop::sample::select(vec!["text/html", "application/xhtml+xml", "text/xml", "text/html;charset=gbk", ""]),
    ) {
        let found = read(&[("content-type", kind)], pieces.concat());
        prop_assert!(found.links.iter().all(|link| link.url.as_str().is_ascii()));
        prop_assert!(!found.title.unwrap_or_default().contains('\0'));
    }
}

mod assets {
    use super::*;

    /// The assets of an HTML page: kind and target.
    fn of(page: &str) -> Vec<(&'static str, String)> {
        kinds(&read_as(&[("content-type", "text/html")], page, |input| {
            input.wants.assets = true;
        }))
    }

    pub(super) fn kinds(found: &Extraction) -> Vec<(&'static str, String)> {
        let kinds = found.links.iter().map(|link| link.kind.as_str());
        kinds
            .zip(targets(found).into_iter().map(str::to_owned))
            .collect()
    }

    const PAGE: &str = r##"<link rel="alternate stylesheet" href=s.css><link rel="shortcut icon" href=i.ico>
        <link rel=manifest href=m.json><link rel=preload as=font href=f.woff2><link rel=prefetch href=no1>
        <link rel=preconnect href=//no.test><link rel=dns-prefetch href=//no.test>
        <style>@import "a.css"; b{c:url(d.png)}</style><body background=bg.png>
        <img src=1.png srcset="2.png 1x, 3.png 2x"><img src=""><img src="data:image/png,x"><image src=4.png>
        <picture><source srcset="5.webp"><img src=1.png></picture>
        <video src=v.mp4 poster=p.jpg><source src=v.webm><track src=t.vtt></video><audio src=a.ogg></audio>
        <script src=j.js></script><script>"<img src=no2>"</script><object data=o.swf></object><embed src=e.svg>
        <input type=image src=b.gif><input src=no3><p style="background: URL(&quot;st.png&quot;)">
        <svg><image href=s1.png></image><use xlink:href="s2.svg#x" /><use href="#own" /><style>e{f:url(s3.png)}</style></svg>
        <noscript><img src=n.png></noscript><template><img src=no4></template>"##;

    #[test]
    fn are_what_a_page_is_made_of() {
        let expected = [
            ("stylesheet", "/d/s.css"),
            ("icon", "/d/i.ico"),
            ("manifest", "/d/m.json"),
            ("preload", "/d/f.woff2"),
            ("css", "/d/a.css"),
            ("css", "/d/d.png"),
            ("background", "/d/bg.png"),
            ("img", "/d/1.png"),
            ("srcset", "/d/2.png"),
            ("srcset", "/d/3.png"),
            ("img", "/d/4.png"),
            ("srcset", "/d/5.webp"),
            ("video", "/d/v.mp4"),
            ("video", "/d/p.jpg"),
            ("source", "/d/v.webm"),
            ("track", "/d/t.vtt"),
            ("audio", "/d/a.ogg"),
            ("script", "/d/j.js"),
            ("object", "/d/o.swf"),
            ("embed", "/d/e.svg"),
            ("input", "/d/b.gif"),
            ("css", "/d/st.png"),
            ("svg", "/d/s1.png"),
            ("svg", "/d/s2.svg"),
            ("css", "/d/s3.png"),
            ("img", "/d/n.png"),
        ];
        let expected: Vec<_> = expected.map(|(kind, url)| (kind, url.to_owned())).to_vec();
        assert_eq!(of(PAGE), expected);
        assert!(links(PAGE).is_empty(), "they are no links unless wanted");
    }

    #[test]
    fn are_in_style_sheets_and_drawings_too() {
        let wanted = |kind: &'static str, body: &str| {
            kinds(&read_as(&[("content-type", kind)], body, |input| {
                input.wants.assets = true;
            }))
        };
        let one = |kind, url: &str| vec![(kind, url.to_owned())];
        assert_eq!(
            wanted("text/css", "@import 'x.css'; /* url(no) */"),
            one("css", "/d/x.css")
        );
        assert_eq!(
            wanted(
                "image/svg+xml",
                "<?xml version='1.0'?><svg xmlns:xlink='x'><style/><image xlink:href='/p.png'/></svg>"
            ),
            one("svg", "/p.png")
        );
        assert!(links("").is_empty());
        assert!(
            read(&[("content-type", "text/css")], "@import 'x.css';")
                .links
                .is_empty()
        );
    }

    #[test]
    fn are_not_decoded_as_text() {
        for kind in ["image/png", "application/javascript", "font/woff2"] {
            let found = read_as(&[("content-type", kind)], "<img src=no>", |input| {
                input.wants.assets = true;
            });
            assert!(found.text.is_none() && found.links.is_empty(), "{kind}");
            assert!(is_wanted_or_asset(Some(kind)) && !is_wanted(Some(kind)));
        }
        for kind in ["application/pdf", "application/zip"] {
            assert!(!is_wanted_or_asset(Some(kind)), "{kind}");
        }
    }

    #[test]
    fn may_stand_in_the_header() {
        let field = "<s.css>; rel=stylesheet, <x>; rel=prefetch, </n>; rel=next; anchor=\"/other\", </m>; rel=next; anchor=\"#a\"";
        let found = read_as(
            &[("link", field), ("content-type", "text/html")],
            "<p>",
            |input| {
                input.wants.assets = true;
            },
        );
        assert_eq!(
            kinds(&found),
            [
                ("stylesheet", "/d/s.css".to_owned()),
                ("header", "/m".to_owned())
            ]
        );
    }
}

mod options {
    use super::*;

    fn under(page: &str, terms: impl Fn(&mut Wants)) -> Vec<String> {
        let kind = match page.starts_with('<') {
            true => "text/html",
            false => "text/plain",
        };
        let found = read_as(&[("content-type", kind)], page, |input| {
            terms(&mut input.wants);
        });
        targets(&found).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn open_templates_and_close_noscript() {
        let page = "<base href=/b/><template><base href=/no/><a href=t>x</a><noscript><a href=tn></noscript></template>\
             <noscript><a href=n></noscript><a href=a>";
        assert_eq!(under(page, |_| {}), ["/b/a", "/b/n"]);
        assert_eq!(under(page, |wants| wants.noscript = false), ["/b/a"]);
        assert_eq!(
            under(page, |wants| wants.templates = true),
            ["/b/t", "/b/a", "/b/tn", "/b/n"]
        );
    }

    #[test]
    fn find_urls_in_plain_text() {
        let text = "See http://a.test/x, (https://b.test/y_(z)) and\n<http://c.test/?q=1>. Not www.no.test, no@no.test.";
        assert!(under(text, |_| {}).is_empty());
        assert_eq!(
            under(text, |wants| wants.text_links = true),
            [
                "http://a.test/x",
                "https://b.test/y_(z)",
                "http://c.test/?q=1"
            ]
        );
    }

    #[test]
    fn send_forms_as_they_stand() {
        let of = |page: &str| under(page, |wants| wants.forms = true);
        for (form, expected) in [
            (
                "<form action=/s?old=1#f><input name=q value='a b'><input type=hidden name=h value=é><input name=e></form>",
                vec!["/s?q=a+b&h=%C3%A9&e="],
            ),
            (
                "<base href=/b/><form><input name=q></form>",
                vec!["/d/i.html?q="],
            ),
            (
                "<form method=POST action=/no><input name=q></form><form method=dialog></form>",
                vec![],
            ),
            (
                "<form action=/c><input type=checkbox name=a checked><input type=checkbox name=b><input type=radio name=r value=1>\
                 <input type=radio name=r value=2 checked><input name=d disabled><fieldset disabled><input name=f></fieldset>\
                 <input type=reset name=x><input type=file name=u value=no></form>",
                vec!["/c?a=on&r=2&u="],
            ),
            (
                "<form action=/b><input name=q><button name=b value=1>x</button><input type=submit name=c value=2></form>",
                vec!["/b?q=&b=1"],
            ),
            (
                "<form action=/no><button formaction=/yes name=b>x</button></form><form action=/no2><button formmethod=post>x</button></form>",
                vec!["/yes?b="],
            ),
            (
                "<form action=/s><select name=s><option>One <option value=2 selected>Two</select><select name=t><option disabled>x\
                 <option>First &amp; only</select><select multiple name=m><option selected>a<option selected>b<option>c</select></form>",
                vec!["/s?s=2&t=First+%26+only&m=a&m=b"],
            ),
            (
                "<form id=f action=/t><textarea name=t>\nx\ny &lt;</textarea></form><input name=out form=f value=1><input name=no value=1>",
                vec!["/t?t=x%0D%0Ay+%3C&out=1"],
            ),
            (
                "<form action=/i><input type=image name=go src=x></form>",
                vec!["/i?go.x=0&go.y=0"],
            ),
            ("<form action='javascript:x()'></form>", vec![]),
        ] {
            assert_eq!(of(form), expected, "{form}");
            assert!(under(form, |_| {}).is_empty());
        }
    }

    #[test]
    fn send_forms_in_the_encoding_of_the_page() {
        let (body, ..) = encoding_rs::WINDOWS_1252
            .encode("<form action=/s><input name=q value='é \u{20ac} &#x6e56;'></form>");
        let found = read_as(
            &[("content-type", "text/html; charset=latin1")],
            body,
            |input| input.wants.forms = true,
        );
        assert_eq!(targets(&found), ["/s?q=%E9+%80+%26%2328246%3B"]);
    }

    #[test]
    fn do_not_open_what_is_a_page_within_the_page() {
        let page = "<iframe src=/no srcdoc=\"<a href='in&amp;out'>x</a><base href=/no/>\"></iframe><a href=/a>";
        assert_eq!(under(page, |_| {}), ["/a", "/d/in&out"]);
    }
}

mod feeds {
    use super::*;

    const RSS: &str = "<?xml version='1.0'?><!-- c --><rss version='2.0' xml:base='http://h.test/x/'><channel><title>Feed &amp; title</title>
        <link>http://h.test/</link><atom:link rel='self' href='/self'/><atom:link rel='next' href='?page=2'/>
        <description>About</description><language>de</language><image><url>logo.png</url><title>no</title><link>http://h.test/img</link></image>
        <item><title>One</title><link>one?a=1&amp;b=2</link><guid>http://h.test/guid</guid><comments>/c1</comments>
          <enclosure url='/e.mp3' type='audio/mpeg'/><description>&lt;a href='/no'&gt;</description></item>
        <item><title>Two</title><link><![CDATA[/two?x&y]]></link><guid isPermaLink='false'>http://h.test/no</guid></item>
        <item><guid>urn:x</guid><link>/three?a&b</link></item></channel></rss>";

    fn feed(kind: &'static str, body: &str, assets: bool) -> Extraction {
        read_as(&[("content-type", kind)], body, |input| {
            input.wants.assets = assets;
            input.anchors = true;
        })
    }

    #[test]
    fn of_rss_lead_to_the_pages_of_their_entries() {
        for kind in [
            "application/rss+xml",
            "text/xml",
            "application/xml",
            "text/html",
        ] {
            let found = feed(kind, RSS, false);
            let urls: Vec<_> = found
                .links
                .iter()
                .map(|link| (link.url.as_str(), link.anchor.as_deref()))
                .collect();
            assert_eq!(
                urls,
                [
                    ("http://h.test/", None),
                    ("http://h.test/x/?page=2", None),
                    ("http://h.test/img", None),
                    ("http://h.test/x/one?a=1&b=2", Some("One")),
                    ("http://h.test/guid", Some("One")),
                    ("http://h.test/c1", Some("One")),
                    ("http://h.test/two?x&y", Some("Two")),
                    ("http://h.test/three?a&b", None),
                ],
                "{kind}"
            );
            assert_eq!(found.title.as_deref(), Some("Feed & title"));
            assert_eq!(found.lang.as_deref(), Some("de"));
            assert_eq!(found.description.as_deref(), Some("About"));
        }
        let assets: Vec<_> = feed("text/xml", RSS, true)
            .links
            .into_iter()
            .filter(|link| link.kind.is_asset())
            .map(|link| link.url.as_str().to_owned())
            .collect();
        assert_eq!(assets, ["http://h.test/x/logo.png", "http://h.test/e.mp3"]);
    }

    #[test]
    fn of_atom_have_their_relations_and_bases() {
        let atom = "\u{feff}<feed xmlns='http://www.w3.org/2005/Atom' xml:lang='en' xml:base='/base/'><title type='html'>T</title>
            <link href='/home'/><link rel='self' href='/no1'/><link rel='hub' href='/no2'/><link rel='alternate' type='image/png' href='/no3'/>
            <link rel='prev-archive' href='old'/><entry xml:base='in/'><link rel='alternate' title='Said' href='p'/>
            <link rel='enclosure' href='/no4'/><link rel='edit' href='/no5'/><content src='c'/><title>E</title></entry></feed>";
        let found = feed("application/atom+xml", atom, false);
        let urls: Vec<_> = found.links.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(
            urls,
            [
                "http://host.test/home",
                "http://host.test/base/old",
                "http://host.test/base/in/p",
                "http://host.test/base/in/c"
            ]
        );
        let said: Vec<_> = found
            .links
            .iter()
            .map(|link| link.anchor.as_deref())
            .collect();
        assert_eq!(said, [None, None, Some("Said"), Some("E")]);
        assert_eq!(
            (found.title.as_deref(), found.lang.as_deref()),
            (Some("T"), Some("en"))
        );
    }

    #[test]
    fn of_json_are_read_and_other_json_is_not() {
        let json = r#"{"version":"https://jsonfeed.org/version/1.1","title":"J","language":"fr","home_page_url":"/","next_url":"?2",
            "items":[{"title":"A","url":"/a","external_url":"http://o.test/","image":"/i.png","attachments":[{"url":"/e.mp3"}]},7]}"#;
        let found = feed("application/feed+json", json, false);
        assert_eq!(
            targets(&found),
            ["/", "/d/i.html?2", "/a", "http://o.test/"]
        );
        assert_eq!(found.links[2].anchor.as_deref(), Some("A"));
        assert_eq!(found.title.as_deref(), Some("J"));
        assert_eq!(feed("application/feed+json", json, true).links.len(), 6);
        assert!(
            feed("application/feed+json", "{", false).links.is_empty()
                && feed("application/json", json, false).links.is_empty()
        );
    }

    #[test]
    fn that_are_broken_keep_what_stands_in_them() {
        for (body, expected) in [
            (
                "<rss><channel><item><link>/a</link></item><item><link>/b</li",
                &["/a"][..],
            ),
            (
                "<rss version='9.9'><item><link>/a</link></chanel></item><item><link> /b\n</link>",
                &["/a", "/b"],
            ),
            (
                "<rss><title>a & b &nbsp; &nosuch;</title><link>/a</link></rss>",
                &["/a"],
            ),
            (
                "<rdf:RDF xmlns='http://purl.org/rss/1.0/'><item rdf:about='x'><link>/a</link></item></rdf:RDF>",
                &["/a"],
            ),
            ("<rdf:RDF><item><link>/a</link></item></rdf:RDF>", &[]),
            ("<opml><link>/a</link></opml>", &[]),
            ("<rss><link/><link></link></rss>", &[]),
        ] {
            let found = feed("text/xml", body, false);
            assert_eq!(targets(&found), expected, "{body}");
        }
        let deep = format!("<rss>{}<link>/no</link>", "<a>".repeat(100_000));
        assert!(feed("text/xml", &deep, false).links.is_empty());
    }

    #[test]
    fn are_found_by_the_relation_of_a_page() {
        let page = "<link rel=alternate type='application/rss+xml' href=f.rss><link rel=alternate type='application/feed+json' href=f.json>";
        assert_eq!(links(page), ["/d/f.rss", "/d/f.json"]);
        assert!(is_wanted(Some("application/feed+json")));
    }

    #[test]
    fn in_an_old_encoding_are_decoded_and_their_queries_are_not_in_it() {
        let text = "<?xml version='1.0' encoding='iso-8859-1'?><rss><channel><title>é</title><link>/?é</link></channel></rss>";
        let (bytes, ..) = encoding_rs::WINDOWS_1252.encode(text);
        let found = feed_bytes(&bytes);
        assert_eq!(found.title.as_deref(), Some("é"));
        assert_eq!(targets(&found), ["/?%C3%A9"]);
    }

    fn feed_bytes(body: &[u8]) -> Extraction {
        read(&[("content-type", "text/xml")], body)
    }
}

mod drawings {
    use super::*;

    #[test]
    fn have_links_by_either_attribute() {
        let page = "<svg><a xlink:href=/x>1</a><a href=/h xlink:href=/no>2</a></svg><a xlink:href=/no2>3</a>";
        assert_eq!(links(page), ["/x", "/h"]);
    }
}
