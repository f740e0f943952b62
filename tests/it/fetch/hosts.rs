//! What is said to some hosts only, and that it never leaves them.

use pgcrawl::fetch::{CookieFile, HostRules, HostSettings, KeepCookies, Login, RobotsHop};

use super::*;
use crate::support::names::Nameserver;

/// An entry with a header and a login.
fn entry(hosts: &[&str], key: &'static str) -> HostSettings {
    let mut entry = HostSettings {
        hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        login: Some(Login::Bearer(key.into())),
        ..HostSettings::default()
    };
    entry.headers.insert("x-api-key", key.parse().unwrap());
    entry
}

fn with(entries: Vec<HostSettings>) -> FetchSettings {
    FetchSettings {
        hosts: HostRules::new(entries),
        ..settings()
    }
}

/// `127.0.0.1:8080` of a site.
fn authority(site: &Site) -> String {
    site.url("")[7..].to_owned()
}

#[tokio::test]
async fn a_host_s_headers_and_login_go_to_its_pages_and_its_robots_txt_and_to_no_other_host() {
    let (known, stranger) = (
        Site::builder().page("/", "").start().await,
        Site::builder().page("/", "").start().await,
    );
    let fetcher = fetcher(with(vec![entry(&[&authority(&known)], "sesame")]));
    for site in [&known, &stranger] {
        let url = PageUrl::parse(&site.url("/")).unwrap();
        fetcher.fetch(&url, &FetchOptions::default()).await.unwrap();
        let robots = fetcher.fetch_robots(url.host(), Duration::from_secs(10), Duration::ZERO);
        assert_eq!(robots.await.status, Some(404));
    }
    let told = |site: &Site| -> Vec<(String, String)> {
        let requests = site.requests().into_iter();
        let of = |request: &crate::support::site::Recorded, name| request.header(name).to_owned();
        requests
            .map(|request| (of(&request, "x-api-key"), of(&request, "authorization")))
            .collect()
    };
    let all = ("sesame".to_owned(), "Bearer sesame".to_owned());
    assert_eq!(told(&known), [all.clone(), all]);
    assert_eq!(told(&stranger), [Default::default(), Default::default()]);
}

#[tokio::test]
async fn a_robots_txt_that_redirects_elsewhere_does_not_take_the_host_s_login_along() {
    let stranger = Site::builder().page("/r", "").start().await;
    let site = Site::builder()
        .redirect("/robots.txt", 302, stranger.url("/r"))
        .start()
        .await;
    let fetcher = fetcher(with(vec![entry(&[&authority(&site)], "sesame")]));
    let host = HostKey::parse(&site.url("")).unwrap();
    let found = fetcher
        .fetch_robots(&host, Duration::from_secs(10), Duration::ZERO)
        .await;
    assert_eq!((found.status, found.hops), (Some(200), 1));
    assert_eq!(site.requests()[0].header("authorization"), "Bearer sesame");
    assert_eq!(stranger.requests()[0].header("authorization"), "");
    assert_eq!(stranger.requests()[0].header("x-api-key"), "");
}

/// Else whoever has a robots.txt could have us ask an operator's hosts for what they like.
#[tokio::test]
async fn a_robots_txt_that_redirects_to_a_host_of_the_operator_s_speaks_with_nothing_of_theirs() {
    let ours = Site::builder()
        .answer("/api/delete", |_| {
            ([("set-cookie", "planted=1")], "").into_response()
        })
        .page("/", "")
        .start()
        .await;
    let evil = Site::builder()
        .redirect("/robots.txt", 302, ours.url("/api/delete?id=1"))
        .start()
        .await;
    let file = CookieFile::read("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tours\n", 0);
    let fetcher = fetcher(FetchSettings {
        cookies: file.cookies.into(),
        keep_cookies: KeepCookies::Host,
        ..with(vec![entry(&[&authority(&ours)], "sesame")])
    });
    let found = fetcher
        .fetch_robots(
            &HostKey::parse(&evil.url("")).unwrap(),
            Duration::from_secs(10),
            Duration::ZERO,
        )
        .await;
    assert_eq!((found.status, found.hops), (Some(200), 1));
    let page = PageUrl::parse(&ours.url("/")).unwrap();
    fetcher
        .fetch(&page, &FetchOptions::default())
        .await
        .unwrap();
    let requests = ours.requests();
    for (name, said) in [
        ("authorization", "Bearer sesame"),
        ("x-api-key", "sesame"),
        ("cookie", "session=ours"),
    ] {
        assert_eq!(requests[0].header(name), "", "{name}");
        assert_eq!(requests[1].header(name), said);
    }
}

#[tokio::test]
async fn a_robots_txt_leads_to_no_private_address_though_a_seed_names_the_host() {
    let ours = Site::builder().page("/secret", "").start().await;
    let names = Nameserver::start(&[("ours.test", "127.0.0.1")]).await;
    for target in [
        ours.url("/secret"),
        ours.url_at("ours.test", "/secret"),
        ours.url_at("localhost", "/secret"),
    ] {
        let evil = Site::builder()
            .redirect("/robots.txt", 302, target.clone())
            .start()
            .await;
        let settings = FetchSettings {
            resolver: Resolver::At(names.address()),
            ..settings()
        };
        let seeded = Fetcher::new(settings, PrivateGuard::new(|_| true)).unwrap();
        let host = HostKey::parse(&evil.url("")).unwrap();
        // Leave was had for that address, by the guard of seeds.
        for leave in [None, seeded.address(&target.parse().unwrap()).await] {
            let hops = seeded.robots_hops(&host, Duration::from_secs(10), Duration::ZERO);
            let RobotsHop::On(next) = hops.ask(None).await else {
                panic!("it redirects");
            };
            let RobotsHop::Over(found) = next.ask(leave).await else {
                panic!("it leads nowhere");
            };
            assert_eq!(found.error.unwrap().class(), "private_address", "{target}");
        }
    }
    assert!(ours.requests().is_empty());
}

#[tokio::test]
async fn a_basic_login_is_sent_as_rfc_7617_has_it() {
    let site = Site::builder().page("/", "").start().await;
    let login = Login::Basic {
        username: "Aladdin".to_owned(),
        password: "open sesame".into(),
    };
    let entry = HostSettings {
        hosts: vec![authority(&site).parse().unwrap()],
        login: Some(login),
        ..HostSettings::default()
    };
    fetch_with(with(vec![entry]), &site.url("/")).await.unwrap();
    assert_eq!(
        site.requests()[0].header("authorization"),
        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    );
}

/// So a redirect from https to http gives nothing away: the same entry holds for both.
#[tokio::test]
async fn plain_http_is_told_a_secret_only_where_the_entry_says_http() {
    let site = Site::builder().page("/", "").start().await;
    let names = Nameserver::start(&[("a.test", "127.0.0.1"), ("b.test", "127.0.0.1")]).await;
    let host = |name: &str| site.url_at(name, "")[7..].to_owned();
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        ..with(vec![
            entry(&[&host("a.test")], "sesame"),
            entry(&[&format!("http://{}", host("b.test"))], "sesame"),
        ])
    };
    for (name, told) in [("a.test", ""), ("b.test", "sesame")] {
        fetch_with(settings.clone(), &site.url_at(name, "/"))
            .await
            .unwrap();
        assert_eq!(
            site.requests().last().unwrap().header("x-api-key"),
            told,
            "{name}"
        );
    }
}
