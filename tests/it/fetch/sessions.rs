//! Headers for all hosts, and cookies: which last, and to whom they are shown.

use pgcrawl::fetch::{CookieFile, HostRules, HostSettings, Jars, KeepCookies};

use super::*;

/// A site that sets a cookie on `/in` and shows on every page which cookies it was shown.
async fn keeper() -> Site {
    let shown = |request: &axum::extract::Request| -> String {
        let cookie = request.headers().get("cookie");
        cookie
            .map_or("", |cookie| cookie.to_str().unwrap())
            .to_owned()
    };
    Site::builder()
        .answer("/in", |_| [("set-cookie", "id=1; Path=/")].into_response())
        .answer("/", move |request| shown(request).into_response())
        .start()
        .await
}

/// `127.0.0.1:8080` of a site.
fn authority(site: &Site) -> String {
    site.url("")[7..].to_owned()
}

async fn visit(fetcher: &Fetcher, url: String) -> String {
    let url = PageUrl::parse(&url).unwrap();
    let found = fetcher.fetch(&url, &FetchOptions::default()).await.unwrap();
    String::from_utf8(found.body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_cookie_is_forgotten_after_the_visit_unless_a_jar_is_kept() {
    let site = keeper().await;
    for (keep_cookies, shown) in [(KeepCookies::Off, ""), (KeepCookies::Host, "id=1")] {
        let fetcher = fetcher(FetchSettings {
            keep_cookies,
            ..settings()
        });
        visit(&fetcher, site.url("/in")).await;
        assert_eq!(visit(&fetcher, site.url("/")).await, shown);
        // They outlast a change of settings, and another process has jars of its own.
        let again = super::fetcher(fetcher.settings().clone());
        assert_eq!(visit(&again, site.url("/")).await, shown);
        let other = super::fetcher(FetchSettings {
            jars: Jars::default(),
            ..fetcher.settings().clone()
        });
        assert_eq!(visit(&other, site.url("/")).await, "");
    }
}

#[tokio::test]
async fn a_jar_is_kept_for_the_host_that_has_one_and_shown_to_no_other() {
    let (known, stranger) = (keeper().await, keeper().await);
    let entry = HostSettings {
        hosts: vec![authority(&known).parse().unwrap()],
        cookies: Some(KeepCookies::Host),
        ..HostSettings::default()
    };
    let fetcher = fetcher(FetchSettings {
        hosts: HostRules::new(vec![entry]),
        ..settings()
    });
    visit(&fetcher, known.url("/in")).await;
    assert_eq!(visit(&fetcher, stranger.url("/")).await, "");
    assert_eq!(visit(&fetcher, known.url("/")).await, "id=1");
    visit(&fetcher, stranger.url("/in")).await;
    assert_eq!(visit(&fetcher, stranger.url("/")).await, "");
    // The same machine under another name is another host.
    assert_eq!(visit(&fetcher, known.url_at("localhost", "/")).await, "");
}

#[tokio::test]
async fn cookies_of_a_file_are_shown_to_their_host_robots_txt_included_and_to_no_other() {
    let site = Site::builder()
        .redirect("/robots.txt", 302, "/r")
        .page("/r", "")
        .page("/docs/", "")
        .page("/", "")
        .start()
        .await;
    let text = "#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tid\t1\n127.0.0.1\tFALSE\t/docs\tFALSE\t0\tdeep\t2\n";
    let file = CookieFile::read(text, 0);
    let fetcher = fetcher(FetchSettings {
        cookies: file.cookies.into(),
        ..settings()
    });
    let host = HostKey::parse(&site.url("")).unwrap();
    fetcher
        .fetch_robots(&host, Duration::from_secs(10), Duration::ZERO)
        .await;
    for url in [
        site.url("/"),
        site.url("/docs/"),
        site.url_at("localhost", "/"),
    ] {
        visit(&fetcher, url).await;
    }
    let shown: Vec<(String, String)> = site
        .requests()
        .iter()
        .map(|request| (request.target.clone(), request.header("cookie").to_owned()))
        .collect();
    let expected = [
        ("/robots.txt", "id=1"),
        ("/r", "id=1"),
        ("/", "id=1"),
        ("/docs/", "deep=2; id=1"),
        ("/", ""),
    ];
    assert_eq!(shown, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[tokio::test]
async fn a_cookie_header_of_an_entry_gives_way_to_what_the_host_sets() {
    let site = keeper().await;
    let mut entry = HostSettings {
        hosts: vec![authority(&site).parse().unwrap()],
        cookies: Some(KeepCookies::Host),
        ..HostSettings::default()
    };
    entry
        .headers
        .insert("cookie", "id=0; lang=de".parse().unwrap());
    let fetcher = fetcher(FetchSettings {
        hosts: HostRules::new(vec![entry]),
        ..settings()
    });
    assert_eq!(visit(&fetcher, site.url("/")).await, "id=0; lang=de");
    visit(&fetcher, site.url("/in")).await;
    assert_eq!(visit(&fetcher, site.url("/")).await, "lang=de; id=1");
    let log = site.requests();
    let lines = log.last().unwrap().headers.get_all("cookie").iter().count();
    assert_eq!(lines, 1, "RFC 6265 §5.4: one header");
}

#[tokio::test]
async fn headers_for_all_hosts_stand_beside_our_own_or_in_their_place() {
    let site = Site::builder().page("/", "").start().await;
    let mut headers = HeaderMap::new();
    headers.insert("accept-language", "de".parse().unwrap());
    headers.insert("accept", "text/plain".parse().unwrap());
    let settings = FetchSettings {
        headers,
        ..settings()
    };
    fetch_with(settings, &site.url("/")).await.unwrap();
    let request = &site.requests()[0];
    assert_eq!(request.header("accept-language"), "de");
    assert_eq!(request.header("accept"), "text/plain");
    assert_eq!(request.header("accept-encoding"), "gzip, br, zstd, deflate");
    assert!(request.header("user-agent").starts_with("testbot/1.0"));
}
