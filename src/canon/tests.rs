use proptest::prelude::*;
use url::Url;
use uuid::Uuid;

use super::*;

/// The rules of version 1, pinned: URL as linked, URL as fetched, key. A changed key is a new [`VERSION`].
const VECTORS: &[(&str, &str, &str)] = &[
    // 1: what the URL standard makes equal
    (
        "HTTP://Example.ORG",
        "http://example.org/",
        "http://example.org/",
    ),
    (
        "https://example.org:443/",
        "https://example.org/",
        "https://example.org/",
    ),
    (
        "http://example.org:443/",
        "http://example.org:443/",
        "http://example.org:443/",
    ),
    (
        "http://example.org:080/",
        "http://example.org/",
        "http://example.org/",
    ),
    (
        "http://bücher.example/",
        "http://xn--bcher-kva.example/",
        "http://xn--bcher-kva.example/",
    ),
    (
        "http://EXAMPLE\u{3002}org/",
        "http://example.org/",
        "http://example.org/",
    ),
    (
        "http://my_host.site.test:8080/x",
        "http://my_host.site.test:8080/x",
        "http://my_host.site.test:8080/x",
    ),
    (
        "http://[0:0:0:0:0:0:0:1]:81/",
        "http://[::1]:81/",
        "http://[::1]:81/",
    ),
    ("http://0x7f.1/", "http://127.0.0.1/", "http://127.0.0.1/"),
    ("http://h/a/./b/../c", "http://h/a/c", "http://h/a/c"),
    ("http://h/a/%2e%2E/b", "http://h/b", "http://h/b"),
    (
        "http://h\\a\\b?c\\d",
        "http://h/a/b?c\\d",
        "http://h/a/b?c\\d",
    ),
    (
        " \n http://h/a\tb\r\nc \u{1}",
        "http://h/abc",
        "http://h/abc",
    ),
    (
        "http://h/a b?c d",
        "http://h/a%20b?c%20d",
        "http://h/a%20b?c%20d",
    ),
    ("http://h?q", "http://h/?q", "http://h/?q"),
    (
        "http://h/\u{e9}?\u{e9}",
        "http://h/%C3%A9?%C3%A9",
        "http://h/%C3%A9?%C3%A9",
    ),
    ("http:///h/", "http://h/", "http://h/"),
    ("http:h/x", "http://h/x", "http://h/x"),
    ("http:\\\\h\\x", "http://h/x", "http://h/x"),
    ("http://h:/x", "http://h/x", "http://h/x"),
    ("https://h:00443/x", "https://h/x", "https://h/x"),
    (
        "http://%65xample.org/",
        "http://example.org/",
        "http://example.org/",
    ),
    (
        "http://ＥＸＡＭＰＬＥ.org/",
        "http://example.org/",
        "http://example.org/",
    ),
    (
        "http://faß.example/",
        "http://xn--fa-hia.example/",
        "http://xn--fa-hia.example/",
    ),
    (
        "http://XN--BCHER-KVA.example/",
        "http://xn--bcher-kva.example/",
        "http://xn--bcher-kva.example/",
    ),
    (
        "http://-a_.b_c.test/",
        "http://-a_.b_c.test/",
        "http://-a_.b_c.test/",
    ),
    ("http://1.2.3/", "http://1.2.0.3/", "http://1.2.0.3/"),
    (
        "http://0300.0250.1/",
        "http://192.168.0.1/",
        "http://192.168.0.1/",
    ),
    (
        "http://3232235521/",
        "http://192.168.0.1/",
        "http://192.168.0.1/",
    ),
    (
        "http://[2001:DB8:0:0:1:0:0:1]/",
        "http://[2001:db8::1:0:0:1]/",
        "http://[2001:db8::1:0:0:1]/",
    ),
    (
        "http://[::ffff:192.0.2.1]/",
        "http://[::ffff:c000:201]/",
        "http://[::ffff:c000:201]/",
    ),
    ("http://h/%\t41", "http://h/%41", "http://h/A"),
    (
        "http://h/a?b\nc=d\re",
        "http://h/a?bc=de",
        "http://h/a?bc=de",
    ),
    (
        "http://h/a/..%2f../b",
        "http://h/a/..%2f../b",
        "http://h/a/..%2F../b",
    ),
    ("http://h/a/.%2e/b", "http://h/b", "http://h/b"),
    ("http://h/../../a/.", "http://h/a/", "http://h/a/"),
    (
        "http://h/\"<>`{}|^",
        "http://h/%22%3C%3E%60%7B%7D|^",
        "http://h/%22%3C%3E%60%7B%7D|^",
    ),
    (
        "http://h/?\"<>'`{}|",
        "http://h/?%22%3C%3E%27`{}|",
        "http://h/?%22%3C%3E%27`{}|",
    ),
    (
        "http://h/\u{1F600}?\u{1F600}",
        "http://h/%F0%9F%98%80?%F0%9F%98%80",
        "http://h/%F0%9F%98%80?%F0%9F%98%80",
    ),
    ("http://h/a\u{0}b", "http://h/a%00b", "http://h/a%00b"),
    ("http://u@h/", "http://h/", "http://h/"),
    ("http://u:p:q@@h/", "http://h/", "http://h/"),
    ("http://:@h/", "http://h/", "http://h/"),
    ("http://h/@u", "http://h/@u", "http://h/@u"),
    // 2: neither fragment nor userinfo
    ("http://h/p#y", "http://h/p", "http://h/p"),
    ("http://h/r%23cz#f", "http://h/r%23cz", "http://h/r%23cz"),
    ("http://user:secret@h/", "http://h/", "http://h/"),
    ("http://@h/", "http://h/", "http://h/"),
    // 3: upper-case digits
    ("http://h/k/a%2fb", "http://h/k/a%2fb", "http://h/k/a%2Fb"),
    (
        "http://h/k/a%2Fb?x=%c3%a9",
        "http://h/k/a%2Fb?x=%c3%a9",
        "http://h/k/a%2Fb?x=%C3%A9",
    ),
    ("http://h/caf%e9", "http://h/caf%e9", "http://h/caf%E9"),
    // 4: unreserved characters decoded, no others
    (
        "http://h/k/%7Euser",
        "http://h/k/%7Euser",
        "http://h/k/~user",
    ),
    (
        "http://h/%41%2D%2e%5F%7e%30?%61=%62",
        "http://h/%41%2D%2e%5F%7e%30?%61=%62",
        "http://h/A-._~0?a=b",
    ),
    ("http://h/k/a/b", "http://h/k/a/b", "http://h/k/a/b"),
    (
        "http://h/%2a%21%3b%40%2B?%26%3D%2b",
        "http://h/%2a%21%3b%40%2B?%26%3D%2b",
        "http://h/%2A%21%3B%40%2B?%26%3D%2B",
    ),
    ("http://h/%%32F", "http://h/%%32F", "http://h/%%32F"),
    ("http://h/%2%46", "http://h/%2%46", "http://h/%2%46"),
    ("http://h/%zz%41", "http://h/%zz%41", "http://h/%zzA"),
    ("http://h/%-%41", "http://h/%-%41", "http://h/%-A"),
    // 5: bad percent signs
    ("http://h/100%", "http://h/100%", "http://h/100%"),
    (
        "http://h/a%zz?b=%",
        "http://h/a%zz?b=%",
        "http://h/a%zz?b=%",
    ),
    ("http://h/100%25", "http://h/100%25", "http://h/100%25"),
    // 6: the query
    ("http://h/p?", "http://h/p?", "http://h/p"),
    ("http://h/p?&&#z", "http://h/p?&&", "http://h/p"),
    (
        "http://h/?b=1&a=2",
        "http://h/?b=1&a=2",
        "http://h/?a=2&b=1",
    ),
    (
        "http://h/?b=2&a=9&b=1",
        "http://h/?b=2&a=9&b=1",
        "http://h/?a=9&b=2&b=1",
    ),
    (
        "http://h/?%62=1&a&&",
        "http://h/?%62=1&a&&",
        "http://h/?a&b=1",
    ),
    ("http://h/?a=&a", "http://h/?a=&a", "http://h/?a=&a"),
    ("http://h/?x=a+b", "http://h/?x=a+b", "http://h/?x=a+b"),
    (
        "http://h/?u=http://o/?c=d",
        "http://h/?u=http://o/?c=d",
        "http://h/?u=http://o/?c=d",
    ),
    // never
    ("http://h/Path/", "http://h/Path/", "http://h/Path/"),
    (
        "http://www.h.test/index.html",
        "http://www.h.test/index.html",
        "http://www.h.test/index.html",
    ),
    (
        "http://h/item;jsessionid=E46F.node_2?p=1",
        "http://h/item;jsessionid=E46F.node_2?p=1",
        "http://h/item;jsessionid=E46F.node_2?p=1",
    ),
    ("http://h//a//b/", "http://h//a//b/", "http://h//a//b/"),
    (
        "http://h/?utm_source=x",
        "http://h/?utm_source=x",
        "http://h/?utm_source=x",
    ),
    (
        "http://example.org./",
        "http://example.org./",
        "http://example.org./",
    ),
];

/// What the optional rules make of a URL's key: with session ids left out, and with tracking parameters left out.
const STRIPPED: &[(&str, &str, &str)] = &[
    // Session ids in a segment: all of the parameter, no other one, and nothing else of the segment.
    ("/item;jsessionid=E46F.node_2?p=1", "/item?p=1", "="),
    (
        "/a;JSESSIONID=1!2!3/b;v=1;jsessionid=2;w=3",
        "/a/b;v=1;w=3",
        "=",
    ),
    ("/;jsessionid=1", "/", "="),
    ("/a;sid=0123456789abcdef", "/a", "="),
    ("/a;sid=42", "=", "="),
    ("/jsessionid=1", "=", "="),
    ("/a;jsessionid", "/a", "="),
    ("/a%3Bjsessionid=1", "=", "="),
    // What is left must not become a step.
    ("/a/..;jsessionid=1/b", "=", "="),
    (
        "/a/%2e;jsessionid=1",
        "/a/.;jsessionid=1",
        "/a/.;jsessionid=1",
    ),
    // ASP.NET's segments, and what only looks like one.
    ("/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "/a.aspx", "="),
    ("/app/(A(x-_)S(y)F(z))", "/app/", "="),
    ("/(S())/a", "=", "="),
    ("/(A(x))/a", "=", "="),
    ("/(S(x)/a", "=", "="),
    ("/f(S(x))/a", "=", "="),
    // Pairs.
    ("/?PHPSESSID=1&a=2", "/?a=2", "="),
    ("/?phpsessid=1", "/", "="),
    (
        "/?a=1&jsessionid=2&ASP.NET_SessionId=3&bv_sessionid",
        "/?a=1",
        "/?ASP.NET_SessionId=3&a=1&bv_sessionid&jsessionid=2",
    ),
    ("/?ASPSESSIONIDQABBCCDD=1", "/", "="),
    ("/?ASPSESSIONIDQ1BBCCDD=1", "=", "="),
    ("/?aspsessionid=1", "=", "="),
    ("/?sid=0123456789abcdef0123456789ABCDEF", "/", "="),
    ("/?sid=2024010112345678", "/", "="),
    ("/?sid=07/01/02/2041206", "=", "="),
    ("/?sid=a-long-story-without-an-end", "=", "="),
    ("/?sid=abcdefghijklmnopqrst", "=", "="),
    ("/?sid=17", "=", "="),
    ("/?CFID=1&CFTOKEN=2&p=3", "/?p=3", "="),
    ("/?CFID=1&p=3", "=", "="),
    ("/?xsid=0123456789abcdef", "=", "="),
    // Tracking.
    ("/?utm_source=a&utm_medium=b&p=1", "=", "/?p=1"),
    ("/?UTM_Campaign=x", "=", "/"),
    (
        "/?utm=1&gclid_x=2",
        "/?gclid_x=2&utm=1",
        "/?gclid_x=2&utm=1",
    ),
    (
        "/?fbclid=1&gclid=2&msclkid=3&dclid=4&gbraid=5&wbraid=6&yclid=7",
        "/?dclid=4&fbclid=1&gbraid=5&gclid=2&msclkid=3&wbraid=6&yclid=7",
        "/",
    ),
    (
        "/?mc_cid=1&mc_eid=2&igshid=3&_hsenc=4&_hsmi=5&hsCtaTracking=6",
        "/?_hsenc=4&_hsmi=5&hsCtaTracking=6&igshid=3&mc_cid=1&mc_eid=2",
        "/",
    ),
    ("/?%75tm_source=x", "/?utm_source=x", "/"),
    ("/?q=utm_source", "=", "="),
    ("/utm_source=x", "=", "="),
];

fn only(session_ids: Listed, tracking: Listed) -> Canon {
    Canon::new(CanonOptions {
        session_ids,
        tracking,
        ignore: Vec::new(),
    })
}

#[test]
fn the_lists_leave_out_what_they_name_and_nothing_else() {
    let (sessions, tracking) = (only(Listed::V1, Listed::Off), only(Listed::Off, Listed::V1));
    for (linked, without_sessions, without_tracking) in STRIPPED {
        let url = url(&format!("http://h{linked}"));
        let meant = |key: &str| match key {
            "=" => url.canonical(&BASE),
            key => format!("http://h{key}"),
        };
        assert_eq!(
            url.canonical(&sessions),
            meant(without_sessions),
            "{linked}"
        );
        assert_eq!(
            url.canonical(&tracking),
            meant(without_tracking),
            "{linked}"
        );
        // Whatever is left out of the key is asked for.
        assert_eq!(url.as_str(), format!("http://h{linked}"));
    }
}

#[test]
fn the_lists_are_those_that_the_operators_are_told_of() {
    let told = include_str!("../../docs/OPERATING.md");
    for name in listed::names() {
        assert!(told.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn ignored_parameters_are_ignored_on_their_hosts_only() {
    let canon = |rules: &[&str]| {
        Canon::new(CanonOptions {
            ignore: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
            ..CanonOptions::default()
        })
    };
    for (rules, linked, key) in [
        (
            &["example.org: ref, from*"][..],
            "http://example.org/?ref=1&fromage=2&a=3",
            "http://example.org/?a=3",
        ),
        (
            &["example.org: größe"],
            "http://example.org/?gr%c3%b6%C3%9Fe=1&a=3",
            "http://example.org/?a=3",
        ),
        (
            &["example.org: ref"],
            "https://example.org:8443/?ref",
            "https://example.org:8443/",
        ),
        (
            &["example.org:8443: ref"],
            "https://example.org/?ref",
            "https://example.org/?ref",
        ),
        (
            &["example.org:443: ref"],
            "https://example.org/?ref",
            "https://example.org/",
        ),
        (
            &["example.org:80: ref"],
            "https://example.org/?ref",
            "https://example.org/?ref",
        ),
        (
            &["Bücher.Example: ref"],
            "http://xn--bcher-kva.example/?ref",
            "http://xn--bcher-kva.example/",
        ),
        (
            &["example.org: ref"],
            "http://www.example.org/?ref=1",
            "http://www.example.org/?ref=1",
        ),
        (
            &["*.example.org: ref"],
            "http://www.example.org/?ref=1",
            "http://www.example.org/",
        ),
        (
            &["*.example.org: ref"],
            "http://example.org/?ref=1",
            "http://example.org/?ref=1",
        ),
        (
            &["*.example.org: ref"],
            "http://notexample.org/?ref=1",
            "http://notexample.org/?ref=1",
        ),
        (
            &["*: ref"],
            "http://example.net./?ref=1&Ref=2",
            "http://example.net./?Ref=2",
        ),
        (
            &["example.net:ref"],
            "http://example.net./?ref=1",
            "http://example.net./",
        ),
        (
            &["[::1]:81: ref"],
            "http://[0::1]:81/?ref",
            "http://[::1]:81/",
        ),
        (
            &["*: %72ef, é"],
            "http://h/?ref&%C3%A9=1&%E9=2",
            "http://h/?%E9=2",
        ),
        (&["*: a", "h: b"], "http://h/?a&b&c", "http://h/?c"),
        (&["*: *"], "http://h/?a&b=1", "http://h/"),
    ] {
        assert_eq!(url(linked).canonical(&canon(rules)), key, "{rules:?}");
    }
    for text in [
        "", "ref", ": ref", "h:", "h: ,", "h/p: a", "h: a=b", "h: a&b", "a b: c", "*.: a", "..: a",
        "u@h: a", "h: a*b", "h?: a",
    ] {
        assert!(text.parse::<IgnoreParams>().is_err(), "{text:?}");
    }
}

#[test]
fn a_digest_is_never_that_of_other_rules() {
    let stripping = only(Listed::Off, Listed::V1);
    let (plain, tracked) = ("http://h/?a=1", "http://h/?a=1&utm_source=x");
    for orders in [[&BASE, &stripping], [&stripping, &BASE]] {
        let (plain, tracked) = (url(plain), url(tracked));
        for canon in orders {
            let same = plain.digest(canon) == tracked.digest(canon);
            assert_eq!(same, *canon == stripping);
            assert_eq!(plain.digest(canon), plain.digest(&BASE));
        }
    }
}

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn href(base: &str, href: &str) -> String {
    url(base).join(href).unwrap().as_str().to_owned()
}

#[test]
fn the_fetched_form_and_the_key_are_as_pinned() {
    for (linked, fetched, key) in VECTORS {
        let url = url(linked);
        assert_eq!(url.as_str(), *fetched, "fetched form of {linked:?}");
        assert_eq!(url.canonical(&BASE), *key, "key of {linked:?}");
    }
}

#[test]
fn a_key_is_its_own_key() {
    for (linked, _, key) in VECTORS {
        assert_eq!(url(key).canonical(&BASE), *key, "from {linked:?}");
        assert_eq!(url(key).digest(&BASE), url(linked).digest(&BASE));
    }
}

#[test]
fn the_digest_is_the_first_half_of_the_keys_sha_256() {
    // sha256sum of "http://h/?a=2&b=1"
    let digest = url("http://h/?b=1&a=2").digest(&BASE);
    assert_eq!(digest.to_string(), "62609d55bb9cb088084fee0e82796d1f");
    assert_eq!(UrlDigest::from(Uuid::from(digest)), digest);
    assert_eq!(Uuid::from(digest).simple().to_string(), digest.to_string());
}

#[test]
fn what_is_no_page_is_refused_with_its_reason() {
    assert!(matches!(PageUrl::parse(" \t"), Err(CanonError::Empty)));
    for text in [
        "/relative",
        "http://",
        "http://a b/",
        "http://[::1/",
        "http://h:99999/",
        "http://h:8a/",
        "http://h|x/",
        "http://h^x/",
        "http://exam%00ple/",
        "http://exam%2Fple/",
        "http://1.2.3.4.5/",
        "http://256.0.0.1/",
        "http://[::1]x/",
        "http://[::g]/",
        "http://[fe80::1%25eth0]/",
        "http://u@/",
        "http://\u{ad}/",
        "http://xn--a/",
    ] {
        assert!(
            matches!(PageUrl::parse(text), Err(CanonError::Invalid { .. })),
            "{text}"
        );
    }
    for text in [
        "mailto:a@b",
        "ftp://h/",
        "javascript:void(0)",
        "data:text/html,x",
        "file:///etc/passwd",
    ] {
        assert!(
            matches!(PageUrl::parse(text), Err(CanonError::Scheme { .. })),
            "{text}"
        );
    }
    let error = PageUrl::parse(&format!("http://{}", " ".repeat(9000) + "x"))
        .unwrap_err()
        .to_string();
    assert!(error.len() < 300, "{error}");
}

#[test]
fn a_host_longer_than_a_name_can_be_is_refused_on_every_way_in() {
    let named = |chars: usize| {
        let head = format!("{}.", "a".repeat(49)).repeat(4);
        format!("{head}{}", "b".repeat(chars - head.len()))
    };
    let base = url("http://h/d/");
    let mut cache = HrefCache::default();
    let mut ways = |host: &str| {
        let absolute = format!("http://{host}:65535/x");
        let refused = |result: Result<PageUrl, CanonError>| {
            matches!(result, Err(CanonError::HostLength { .. }))
        };
        let cached = cache.resolve(base.as_url(), &absolute).is_none();
        let parsed = Url::parse(&absolute).unwrap();
        let key = HostKey::parse(&format!("http://{host}"));
        [
            refused(PageUrl::parse(&absolute)),
            refused(PageUrl::seed(&format!("{host}/x"))),
            refused(PageUrl::from_url(parsed)),
            refused(base.join(&format!("//{host}/x"))),
            matches!(key, Err(CanonError::HostLength { .. })),
            cached,
        ]
    };
    assert_eq!(ways(&named(253)), [false; 6]);
    assert_eq!(ways(&named(254)), [true; 6]);
    // The dot of the root is none of the name's characters.
    assert_eq!(ways(&format!("{}.", named(253))), [false; 6]);
    assert_eq!(ways(&format!("{}.", named(254))), [true; 6]);
    // It is the ASCII form that counts: "ü" alone is xn--tda.
    assert_eq!(ways(&"ü.".repeat(40)), [true; 6]);
    assert_eq!(
        PageUrl::parse(&format!("http://{}/", "a".repeat(9000)))
            .unwrap_err()
            .to_string(),
        format!(
            "host {:?} has 9000 characters, a name has 253 at most",
            "a".repeat(200)
        )
    );
}

#[test]
fn a_seed_without_scheme_gets_https() {
    for (typed, meant) in [
        ("example.org", "https://example.org/"),
        ("  example.org/docs?x=1#y ", "https://example.org/docs?x=1"),
        ("example.org:8080/x", "https://example.org:8080/x"),
        ("localhost:3000", "https://localhost:3000/"),
        ("127.0.0.1:81/a:b", "https://127.0.0.1:81/a:b"),
        ("[::1]:81", "https://[::1]:81/"),
        ("//example.org/x", "https://example.org/x"),
        ("HTTP://example.org", "http://example.org/"),
        ("https://example.org", "https://example.org/"),
        (
            "example.org/a?u=http://b/",
            "https://example.org/a?u=http://b/",
        ),
    ] {
        assert_eq!(PageUrl::seed(typed).unwrap().as_str(), meant, "{typed}");
    }
    for typed in [
        "mailto:me@example.org",
        "ftp://example.org",
        "localhost:",
        "javascript:alert(1)",
    ] {
        assert!(
            matches!(PageUrl::seed(typed), Err(CanonError::Scheme { .. })),
            "{typed}"
        );
    }
    assert!(matches!(PageUrl::seed(""), Err(CanonError::Empty)));
}

#[test]
fn a_link_is_resolved_as_browsers_do() {
    let base = "http://h:81/d/i.html?q=1";
    for (link, target) in [
        ("ok", "http://h:81/d/ok"),
        ("../up", "http://h:81/up"),
        ("../../../up", "http://h:81/up"),
        ("/root", "http://h:81/root"),
        ("?p=2", "http://h:81/d/i.html?p=2"),
        ("#x", "http://h:81/d/i.html?q=1"),
        ("", "http://h:81/d/i.html?q=1"),
        ("//o/x", "http://o/x"),
        ("\\\\o\\x", "http://o/x"),
        ("http:rel", "http://h:81/d/rel"),
        ("https:abs", "https://abs/"),
        (" \n/a\nb ", "http://h:81/ab"),
        ("//[::1]:81/a", "http://[::1]:81/a"),
        ("a:b", "refused"),
    ] {
        let joined = url(base)
            .join(link)
            .map_or("refused".to_owned(), |url| url.as_str().to_owned());
        assert_eq!(joined, target, "{link:?}");
    }
    assert_eq!(href("http://u:p@h/", "/x"), "http://h/x");
}

#[test]
fn bad_percent_signs_do_not_lose_a_link() {
    for path in ["/100%", "/a%zz?b=%", "/caf%E9", "/after"] {
        assert_eq!(href("http://h/", path), format!("http://h{path}"));
    }
}

#[test]
fn escaped_slash_and_slash_are_two_pages_whatever_the_escapes_case() {
    assert_eq!(
        url("http://h/k/a%2fb").digest(&BASE),
        url("http://h/k/a%2Fb").digest(&BASE)
    );
    assert_ne!(
        url("http://h/k/a%2fb").digest(&BASE),
        url("http://h/k/a/b").digest(&BASE)
    );
    assert_eq!(
        url("http://h/k/%7Euser").digest(&BASE),
        url("http://h/k/~user").digest(&BASE)
    );
    assert_ne!(url("http://h/k/%7Euser"), url("http://h/k/~user"));
}

#[test]
fn a_host_key_names_scheme_host_and_port() {
    for (text, key, host, port) in [
        (
            "http://Example.org/x?y",
            "http://example.org",
            "example.org",
            80,
        ),
        (
            "https://example.org:443/",
            "https://example.org",
            "example.org",
            443,
        ),
        (
            "https://example.org:80/",
            "https://example.org:80",
            "example.org",
            80,
        ),
        ("http://[0::1]/", "http://[::1]", "[::1]", 80),
        ("http://[::1]:8080/", "http://[::1]:8080", "[::1]", 8080),
        (
            "http://u:p@127.0.0.1:81/",
            "http://127.0.0.1:81",
            "127.0.0.1",
            81,
        ),
    ] {
        let found = url(text).host().clone();
        assert_eq!(
            (found.as_str(), found.host(), found.port()),
            (key, host, port)
        );
        assert_eq!(found.scheme(), text.split(':').next().unwrap());
        assert_eq!(found.robots_url().as_str(), format!("{key}/robots.txt"));
        assert_eq!(HostKey::parse(key).unwrap(), found);
        assert_eq!(found.to_string(), key);
    }
}

#[test]
fn a_host_key_with_more_than_a_host_is_refused() {
    assert_eq!(
        HostKey::parse("HTTPS://Example.org:443/").unwrap().as_str(),
        "https://example.org"
    );
    for text in ["http://h/x", "http://h?x", "http://h#x", "http://u@h"] {
        assert!(
            matches!(HostKey::parse(text), Err(CanonError::NotAHost { .. })),
            "{text}"
        );
    }
    assert!(matches!(
        HostKey::parse("ftp://h"),
        Err(CanonError::Scheme { .. })
    ));
    assert!(matches!(
        HostKey::parse("example.org"),
        Err(CanonError::Invalid { .. })
    ));
}

#[test]
fn a_site_is_the_registrable_domain() {
    for (host, site) in [
        ("www.example.org", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("someone.github.io", "someone.github.io"),
        ("x.someone.github.io", "someone.github.io"),
        ("example.org.", "example.org"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("a.site.test", "site.test"),
    ] {
        assert_eq!(
            url(&format!("http://{host}:81/")).host().site().as_str(),
            site,
            "{host}"
        );
    }
}

#[test]
fn a_very_long_url_is_only_long() {
    let long = format!(
        "http://h/{}?{}",
        "a/".repeat(100_000),
        "%41&".repeat(100_000)
    );
    assert_eq!(url(&long).as_str().len(), long.len());
    assert_eq!(
        url(&url(&long).canonical(&BASE)).digest(&BASE),
        url(&long).digest(&BASE)
    );
}

#[test]
fn the_cache_answers_by_all_of_the_base_that_counts() {
    let mut cache = HrefCache::default();
    let mut resolve = |base: &str, href: &str| {
        cache
            .resolve(&Url::parse(base).unwrap(), href)
            .map(|url| url.as_str().to_owned())
    };
    // Each pair of lines would go wrong if the cache knew the reference alone.
    for (base, href, target) in [
        ("http://h/a/x", "n", Some("http://h/a/n")),
        ("http://h/b/x", "n", Some("http://h/b/n")),
        ("http://h/a/x", "/n", Some("http://h/n")),
        ("http://o/a/x", "/n", Some("http://o/n")),
        ("https://o/a/x", "/n", Some("https://o/n")),
        ("http://h:81/a/x", "/n", Some("http://h:81/n")),
        ("http://h/", "//o/n", Some("http://o/n")),
        ("https://h/", "//o/n", Some("https://o/n")),
        ("http://h/p?a", "?n", Some("http://h/p?n")),
        ("http://h/q?a", "?n", Some("http://h/q?n")),
        ("http://h/p?a", "#n", Some("http://h/p?a")),
        ("http://h/p?b", "#n", Some("http://h/p?b")),
        ("http://h/p?a/b", "n", Some("http://h/n")),
        ("http://h/p/", "http:n", Some("http://h/p/n")),
        ("https://h/p/", "http:n", Some("http://n/")),
        ("http://h/a/x", "htt\np://n", Some("http://n/")),
        ("http://h/", "/n #f", Some("http://h/n%20")),
        ("http://h/", "/n #g", Some("http://h/n%20")),
        ("http://h/", "mailto:a@b", None),
        ("http://h/", "http://[", None),
        ("data:text/html,x", "/n", None),
        ("data:text/html,x", "http://h/n", Some("http://h/n")),
    ] {
        for time in ["first", "second"] {
            assert_eq!(
                resolve(base, href).as_deref(),
                target,
                "{href:?} on {base}, {time} time"
            );
        }
    }
}

#[test]
fn the_cache_stays_within_its_size() {
    let base = Url::parse("http://h/").unwrap();
    let mut cache = HrefCache::new(64);
    for n in 0..10_000 {
        cache.resolve(&base, &format!("/{n}")).unwrap();
    }
    let debug = format!("{cache:?}");
    let entries: usize = debug
        .chars()
        .filter(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap();
    assert!((1..=64).contains(&entries), "{debug}");
}

/// References and URLs made of the pieces that have a meaning, so that chance meets it.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "http:",
            "https:",
            "//",
            "/",
            "\\",
            "?",
            "#",
            "&",
            "=",
            "%",
            "%2",
            "%2f",
            "%41",
            "%32",
            "%zz",
            ".",
            "..",
            "%2e",
            "@",
            ":",
            ":81",
            "a",
            "B",
            "é",
            " ",
            "\t",
            "\n",
            "[::1]",
            "host",
            "example.org",
            "mailto:",
            ";",
            ";jsessionid=",
            "sid=0123456789abcdef",
            "PHPSESSID",
            "cfid=1",
            "cftoken=2",
            "/(S(x1))",
            "(A(b)S(c))",
            "utm_",
            "gclid=",
            "+",
            "\u{0}",
            "xn--",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,3}",
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Any set of the optional rules.
fn canons() -> impl Strategy<Value = Canon> {
    let listed = || prop::sample::select(vec![Listed::Off, Listed::V1]);
    let ignore = prop::sample::subsequence(
        vec![
            "*: a",
            "h: B*, %41",
            "example.org: sid",
            "*.h: a",
            "h:81: host*",
        ],
        0..=5,
    );
    (listed(), listed(), ignore).prop_map(|(session_ids, tracking, ignore)| {
        Canon::new(CanonOptions {
            session_ids,
            tracking,
            ignore: ignore.iter().map(|rule| rule.parse().unwrap()).collect(),
        })
    })
}

proptest! {
    #[test]
    fn canon_of_canon_is_canon_under_any_rules(rest in pieces(), canon in canons()) {
        if let Ok(url) = PageUrl::parse(&format!("http://h/{rest}")) {
            let again = PageUrl::parse(&url.canonical(&canon)).unwrap();
            prop_assert_eq!(again.canonical(&canon), url.canonical(&canon));
            prop_assert_eq!(again.digest(&canon), url.digest(&canon));
            prop_assert_eq!(again.host(), url.host());
        }
    }

    #[test]
    fn a_rule_text_is_read_or_refused_and_reads_back(text in "(\\*|\\*\\.|[a-z.:\\[\\]1]{0,6}):? ?[a-z*,=& %]{0,8}") {
        if let Ok(rule) = text.parse::<IgnoreParams>() {
            prop_assert_eq!(rule.to_string().parse::<IgnoreParams>(), Ok(rule));
        }
    }

    #[test]
    fn digests_are_equal_where_keys_are(a in pieces(), b in pieces()) {
        if let (Ok(a), Ok(b)) = (PageUrl::parse(&format!("http://h/{a}")), PageUrl::parse(&format!("http://h/{b}"))) {
            prop_assert_eq!(a.canonical(&BASE) == b.canonical(&BASE), a.digest(&BASE) == b.digest(&BASE));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in pieces()) {
        let _ = HostKey::parse(&text).map(|host| (host.robots_url(), host.site(), host.port()));
        let _ = url("http://h/p").join(&text).map(|url| (url.digest(&BASE), url.host().site()));
        if let Ok(seed) = PageUrl::seed(&text) {
            prop_assert!(seed.as_str().is_ascii() && !seed.host().site().as_str().is_empty());
            prop_assert_eq!(HostKey::parse(seed.host().as_str()).unwrap(), seed.host().clone());
        }
    }

    #[test]
    fn the_cache_says_what_the_parser_says(
        bases in prop::collection::vec(pieces(), 1..4),
        hrefs in prop::collection::vec(pieces(), 1..6),
    ) {
        let mut cache = HrefCache::default();
        let bases: Vec<Url> = bases.iter().filter_map(|base| Url::parse("http://h/d/").unwrap().join(base).ok()).collect();
        for _ in 0..2 {
            for (base, href) in bases.iter().flat_map(|base| hrefs.iter().map(move |href| (base, href))) {
                let plain = base.join(href).ok().and_then(|url| PageUrl::from_url(url).ok());
                prop_assert_eq!(cache.resolve(base, href), plain, "{:?} on {}", href, base);
            }
        }
    }
}

#[test]
fn a_site_has_one_name_with_and_without_www_and_over_both_schemes() {
    let twin = |one: &str, other: &str| {
        let (one, other) = (HostKey::parse(one).unwrap(), HostKey::parse(other).unwrap());
        assert_eq!(one.is_twin_of(&other), other.is_twin_of(&one));
        one.is_twin_of(&other)
    };
    assert!(twin("https://example.org", "http://www.example.org"));
    assert!(twin(
        "http://example.org:8080",
        "https://www.example.org:8080"
    ));
    assert!(!twin("http://example.org:8080", "http://example.org"));
    assert!(!twin("http://example.org", "http://shop.example.org"));
}
