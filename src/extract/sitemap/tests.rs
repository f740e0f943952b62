use super::*;

/// Reads a file in pieces of this size.
fn read_in(bytes: &[u8], size: usize, most: u32) -> (Vec<Entry>, Summary) {
    let mut sitemap = Sitemap::new(None, most);
    let mut found = Vec::new();
    for piece in bytes.chunks(size) {
        if sitemap.feed(piece, &mut found) == Progress::Enough {
            break;
        }
    }
    let summary = sitemap.finish(&mut found);
    (found, summary)
}

/// Reads a file whole, and byte by byte and in odd pieces, which must make no difference.
fn read(bytes: impl AsRef<[u8]>) -> (Vec<Entry>, Summary) {
    let bytes = bytes.as_ref();
    let whole = read_in(bytes, bytes.len().max(1), MOST_URLS);
    for size in [1, 7, 64] {
        assert_eq!(
            read_in(bytes, size, MOST_URLS),
            whole,
            "in pieces of {size}"
        );
    }
    whole
}

fn locs(bytes: impl AsRef<[u8]>) -> Vec<String> {
    let (found, _) = read(bytes);
    found.into_iter().map(|entry| entry.loc).collect()
}

fn of_kind(found: &[Entry], kind: EntryKind) -> Vec<&str> {
    let these = found.iter().filter(|entry| entry.kind == kind);
    these.map(|entry| entry.loc.as_str()).collect()
}

fn urlset(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{inner}</urlset>"
    )
}

#[test]
fn a_sitemap_and_an_index_are_read_with_what_they_say() {
    let (found, summary) = read(urlset(
        "<url><loc>http://h/a</loc><lastmod>2024-05-06T07:08:09+02:00</lastmod><changefreq>Daily</changefreq><priority>0.8</priority></url>\n<url><loc>http://h/b</loc></url>",
    ));
    assert_eq!(found[0].loc, "http://h/a");
    assert_eq!(
        found[0].lastmod.map(|at| at.to_rfc3339()),
        Some("2024-05-06T05:08:09+00:00".to_owned())
    );
    assert_eq!(found[0].changefreq, Some(ChangeFreq::Daily));
    assert_eq!(found[0].priority, Some(0.8));
    assert_eq!(
        found[1],
        Entry::bare(EntryKind::Page, "http://h/b".to_owned())
    );
    assert_eq!(
        (summary.format, summary.urls, summary.end),
        (Some(Format::UrlSet), 2, End::Whole)
    );
    let (found, summary) = read(
        "<sitemapindex><sitemap><loc>http://h/1.xml</loc></sitemap><sitemap><loc>http://h/2.xml.gz</loc></sitemap></sitemapindex>",
    );
    assert_eq!(
        of_kind(&found, EntryKind::Sitemap),
        ["http://h/1.xml", "http://h/2.xml.gz"]
    );
    assert_eq!(summary.format, Some(Format::Index));
}

/// S04 of the field cases.
#[test]
fn blanks_and_marks_before_the_declaration_and_around_urls_are_passed_over() {
    let text = "\n  \u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset><url><loc>\u{a0}\n http://h/w1 \u{200b}</loc></url></urlset>";
    assert_eq!(locs(text), ["http://h/w1"]);
    assert_eq!(guess(text.as_bytes()), Guess::Sitemap);
}

/// S05 of the field cases.
#[test]
fn entities_and_cdata_are_read_and_a_bare_ampersand_is_one() {
    let text = urlset(
        "<url><loc>http://h/e?a=1&amp;b=2</loc></url><url><loc><![CDATA[http://h/f?a=1&b=2]]></loc></url><url><loc>http://h/g?x=&#38;y</loc></url>\
         <url><loc>http://h/h?a=1&b=2&c</loc></url><url><loc>http://h/i?a&x;b</loc></url><url><loc> <![CDATA[ http://h/j]]>?k </loc></url>",
    );
    assert_eq!(
        locs(text),
        [
            "http://h/e?a=1&b=2",
            "http://h/f?a=1&b=2",
            "http://h/g?x=&y",
            "http://h/h?a=1&b=2&c",
            "http://h/i?a&x;b",
            "http://h/j?k"
        ]
    );
}

/// S07 of the field cases.
#[test]
fn a_date_that_cannot_be_read_is_none_and_an_entry_without_url_leaves_nothing_to_the_next() {
    let (found, summary) = read(urlset(
        "<url><lastmod>2016-02-30</lastmod><priority>0.1</priority></url><url><loc>/d1</loc><lastmod>yesterday</lastmod></url><url><loc>/d2</loc><lastmod></lastmod></url>",
    ));
    let bare = |loc: &str| Entry::bare(EntryKind::Page, loc.to_owned());
    assert_eq!(found, [bare("/d1"), bare("/d2")]);
    assert_eq!((summary.urls, summary.invalid), (2, 1));
}

#[test]
fn dates_are_read_as_they_are_met() {
    let read = |text: &str| entry::lastmod(text).map(|at| at.format("%FT%TZ").to_string());
    for (text, meant) in [
        ("2024", "2024-01-01T00:00:00Z"),
        ("2024-05", "2024-05-01T00:00:00Z"),
        (" 2024-05-06\n", "2024-05-06T00:00:00Z"),
        ("2024-05-06T07:08Z", "2024-05-06T07:08:00Z"),
        ("2024-05-06T07:08+01:00", "2024-05-06T06:08:00Z"),
        ("2024-05-06T07:08:09.123456Z", "2024-05-06T07:08:09Z"),
        ("2024-05-06T07:08:09+0200", "2024-05-06T05:08:09Z"),
        ("2024-05-06T07:08:09", "2024-05-06T07:08:09Z"),
        ("2024-05-06 07:08:09", "2024-05-06T07:08:09Z"),
        ("Mon, 06 May 2024 07:08:09 GMT", "2024-05-06T07:08:09Z"),
    ] {
        assert_eq!(read(text).as_deref(), Some(meant), "{text}");
    }
    for text in [
        "",
        "0001-01-01",
        "2016-02-30",
        "06/05/2024",
        "12",
        "99999-01-01",
        "2024-13",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn a_priority_that_makes_no_sense_is_none() {
    let read = entry::priority;
    assert_eq!(
        (read("1.0"), read(" 0,5 "), read("0")),
        (Some(1.0), Some(0.5), Some(0.0))
    );
    assert_eq!(
        (read("1.1"), read("-1"), read("NaN"), read("high")),
        (None, None, None, None)
    );
}

/// S08 of the field cases.
#[test]
fn pictures_and_films_are_no_pages_and_alternates_are() {
    let (found, summary) = read(
        "<urlset xmlns:image=\"i\" xmlns:v=\"v\"><url><image:image><image:loc>/i.jpg</image:loc><image:url>/no</image:url></image:image><loc>/pg</loc>\
         <v:video><v:player_loc>/pl</v:player_loc><v:loc>/never</v:loc><v:title>t</v:title></v:video>\
         <news:news><news:publication_date>2024-01-01</news:publication_date><news:loc>/n</news:loc></news:news>\
         <xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"/de/?a=1&amp;b=2\"/><xhtml:link rel=alternate hreflang=fr href='/fr/'></xhtml:link>\
         <xhtml:link rel=\"stylesheet\" href=\"/s.css\"/><lastmod>2024-01-02</lastmod></url><url><image:loc>/bare.jpg</image:loc><loc>/pg2</loc></url></urlset>",
    );
    assert_eq!(of_kind(&found, EntryKind::Page), ["/pg", "/pg2"]);
    assert_eq!(of_kind(&found, EntryKind::Image), ["/i.jpg"]);
    assert_eq!(of_kind(&found, EntryKind::Video), ["/pl"]);
    assert_eq!(
        of_kind(&found, EntryKind::Alternate),
        ["/de/?a=1&b=2", "/fr/"]
    );
    let page = found.iter().find(|entry| entry.loc == "/pg").unwrap();
    assert!(
        page.lastmod.is_some(),
        "what follows a picture is the page's again"
    );
    assert_eq!(summary.urls, 2);
}

/// S09 of the field cases.
#[test]
fn a_text_sitemap_is_read_behind_its_mark_and_between_junk() {
    let (found, summary) =
        read("\u{feff}http://h/t1\r\n\r\n  http://h/t2  \n# note\nnot a url\nHTTPS://h/t3");
    assert_eq!(
        of_kind(&found, EntryKind::Page),
        ["http://h/t1", "http://h/t2", "HTTPS://h/t3"]
    );
    assert_eq!(
        (summary.format, summary.invalid, summary.end),
        (Some(Format::Text), 2, End::Whole)
    );
}

/// S14 of the field cases.
#[test]
fn entities_of_the_file_are_never_replaced() {
    let (found, summary) = read(
        "<!DOCTYPE urlset [<!ENTITY x SYSTEM \"http://OTHER/steal\"><!ENTITY a \"&#97;&#97;\"><!ENTITY b \"&a;&a;&a;\">]>\
         <urlset><url><loc>http://h/k&x;</loc></url><url><loc>http://h/&b;</loc></url><url><loc>http://h/k2</loc></url></urlset>",
    );
    assert_eq!(of_kind(&found, EntryKind::Page), ["http://h/k2"]);
    assert_eq!((summary.invalid, summary.end), (2, End::Whole));
}

#[test]
fn every_encoding_that_names_itself_is_read() {
    let text = "<?xml version=\"1.0\"?><urlset><url><loc>http://h/\u{fc}</loc></url></urlset>";
    let utf16 = |mark: bool, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let mark = mark.then_some('\u{feff}').into_iter();
        let text: String = mark.chain(text.chars()).collect();
        text.encode_utf16().flat_map(bytes).collect()
    };
    for bytes in [
        utf16(true, u16::to_le_bytes),
        utf16(true, u16::to_be_bytes),
        utf16(false, u16::to_le_bytes),
        utf16(false, u16::to_be_bytes),
    ] {
        assert_eq!(locs(bytes), ["http://h/\u{fc}"]);
    }
    let latin = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><urlset><url><loc>http://h/\xfc</loc></url></urlset>";
    assert_eq!(locs(latin), ["http://h/\u{fc}"]);
    let mut sitemap = Sitemap::new(Some("windows-1251"), 10);
    let mut found = Vec::new();
    sitemap.feed(
        b"<urlset><url><loc>http://h/\xe4</loc></url></urlset>",
        &mut found,
    );
    sitemap.finish(&mut found);
    assert_eq!(found[0].loc, "http://h/\u{434}");
}

#[test]
fn prefixes_namespaces_and_case_do_not_matter() {
    for text in [
        "<sm:urlset xmlns:sm=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><sm:url><sm:loc>/a</sm:loc></sm:url></sm:urlset>",
        "<urlset xmlns=\"http://www.google.com/schemas/sitemap/0.84\"><url><loc>/a</loc></url></urlset>",
        "<URLSET><URL><LOC>/a</LOC></URL></URLSET>",
        "<urlset><url><loc>/a</loc></urlset>",
        "<urlset><url><loc>/a</loc></URL></url></urlset>",
        "<!-- <url><loc>/no</loc></url> --><urlset><!-- x --><url><!-- y --><loc>/<!-- z -->a</loc></url></urlset>",
        "<?xml-stylesheet href='s.xsl'?><urlset><url/><url><loc/><loc>/a</loc></url></urlset>",
        "<urlset><url><loc>/a</loc><x y=\"></url><url></url></urlset>",
    ] {
        assert_eq!(locs(text), ["/a"], "{text}");
    }
}

#[test]
fn broken_markup_costs_what_it_stands_in() {
    for text in [
        "<urlset><url><loc>/a</loc></url><url><loc>/x</loc <loc>/b</loc></url><url><loc>/c</loc></url></urlset>",
        "<urlset><url><loc>/a</loc></url><! <url><loc>/c</loc></url></urlset>",
        "<urlset><url><loc>/a</loc><url id=\"><loc>/x</loc></url><url><loc>/c</loc></url></urlset>",
        "<urlset><url><loc>/a</loc></url>< <url><loc>/x</loc></url>>> <url><loc>/c</loc></url></urlset>",
    ] {
        let (found, _) = read_in(text.as_bytes(), text.len(), MOST_URLS);
        let found: Vec<String> = found.into_iter().map(|entry| entry.loc).collect();
        assert_eq!(found.first().map(String::as_str), Some("/a"), "{text}");
        assert_eq!(found.last().map(String::as_str), Some("/c"), "{text}");
    }
}

#[test]
fn a_file_that_breaks_off_gives_what_came_before_and_says_so() {
    for (text, found) in [
        (
            "<urlset><url><loc>/a</loc></url><url><loc>/b</loc>",
            &["/a", "/b"][..],
        ),
        ("<urlset><url><loc>/a</loc></url><url><loc>/b", &["/a"]),
        ("<urlset><url><loc>/a</loc></url><url><lo", &["/a"]),
        ("<urlset><url><loc>/a</loc></url><!-- ", &["/a"]),
        (
            "<urlset><url><loc>/a</loc></url><url><loc><![CDATA[/b",
            &["/a"],
        ),
    ] {
        assert_eq!(locs(text), found, "{text}");
        assert_eq!(read(text).1.end, End::Cut, "{text}");
    }
}

#[test]
fn pages_feeds_and_rubbish_are_no_sitemaps() {
    for text in [
        "<!DOCTYPE html><html><body><a href=/>x</a></body></html>",
        "<rss version=\"2.0\"><channel><item><link>http://h/</link></item></channel></rss>",
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry><link href=\"/a\"/></entry></feed>",
    ] {
        let (found, summary) = read(text);
        assert_eq!(
            (found, summary.format, summary.end),
            (Vec::new(), None, End::NoSitemap),
            "{text}"
        );
        assert_eq!(guess(text.as_bytes()), Guess::Other, "{text}");
    }
    for text in ["", "  \n", "Not found", "{\"urls\": []}", "\0\u{1}PNG"] {
        let (found, summary) = read(text);
        assert_eq!(
            (found, summary.format, summary.end),
            (Vec::new(), None, End::NoSitemap),
            "{text}"
        );
        assert_eq!(guess(text.as_bytes()), Guess::Unclear, "{text}");
    }
    assert_eq!(
        guess(b"<?xml version='1.0'?><!-- made by hand --><sitemapindex>"),
        Guess::Sitemap
    );
}

/// S13 of the field cases: 50,000 as sitemaps.org has it.
#[test]
fn the_url_behind_the_limit_is_left_out_and_the_reading_ends() {
    let entry = "<url><loc>/a</loc></url>";
    let text = urlset(&entry.repeat(12));
    let (found, summary) = read_in(text.as_bytes(), 16, 10);
    assert_eq!(
        (found.len(), summary.urls, summary.end),
        (10, 10, End::Full)
    );
    let (found, summary) = read_in(urlset(&entry.repeat(10)).as_bytes(), 16, 10);
    assert_eq!((found.len(), summary.end), (10, End::Whole));
    let lines = "http://h/a\n".repeat(12);
    let (found, summary) = read_in(lines.as_bytes(), 16, 10);
    assert_eq!((found.len(), summary.end), (10, End::Full));
}

/// S13 of the field cases: what waits is less than a tag may be long, whatever the length of the file.
#[test]
fn memory_is_that_of_a_piece_and_not_of_the_file() {
    let piece = "<url><loc>http://h/some/path</loc><lastmod>2024-01-01</lastmod></url>".repeat(240);
    let endless = [
        ("entries", piece.as_str()),
        ("text", &"x".repeat(16 << 10)),
        ("comments", &"<!-- ".repeat(3_000)),
        ("quotes", &"<a b=\"<a b='".repeat(1_300)),
        ("CDATA", &"<![CDATA[".repeat(1_800)),
        ("doctype", &"<!DOCTYPE a [<!ENTITY b \"".repeat(700)),
        ("picture", &"<url><image:image><image:loc>".repeat(560)),
        (
            "alternates",
            &"<xhtml:link rel=alternate href=/a />".repeat(460),
        ),
        ("brackets", &"<>".repeat(8 << 10)),
    ];
    for (what, piece) in endless {
        let mut sitemap = Sitemap::new(None, u32::MAX);
        let (mut found, mut longest) = (Vec::new(), 0);
        sitemap.feed(b"<urlset><url>", &mut found);
        // 8 MiB of each.
        for _ in 0..512 {
            if sitemap.feed(piece.as_bytes(), &mut found) == Progress::Enough {
                break;
            }
            longest = longest.max(sitemap.text.capacity());
            let each: usize = found.iter().map(|entry| entry.loc.capacity() + 64).sum();
            assert!(each < 128 << 10, "{what}: {each} bytes of entries a piece");
            found.clear();
        }
        assert!(longest <= 1 << 20, "{what}: {longest} bytes wait");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    use proptest::prelude::*;
    proptest!(ProptestConfig::with_cases(300), |(bytes in proptest::collection::vec(
        prop_oneof![Just(b'<'), Just(b'>'), Just(b'&'), Just(b';'), Just(b'!'), Just(b'['), Just(b'"'), Just(b'/'), Just(b'u'), Just(0u8), any::<u8>()],
        0..400,
    ), size in 1usize..50)| {
        // Where markup is broken, what is made of it may depend on how it comes; none of it is a crash.
        let text = [&b"<urlset><url><loc>"[..], &bytes, b"</loc></url></urlset>"].concat();
        for bytes in [&bytes, &text] {
            let (found, summary) = read_in(bytes, size, 100);
            prop_assert!(found.iter().all(|entry| !entry.loc.is_empty()));
            prop_assert!(summary.urls <= 100);
            guess(bytes);
        }
    });
}
