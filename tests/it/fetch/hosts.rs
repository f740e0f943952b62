//! What is said to some hosts only, and that it never leaves them.

use pgcrawl::fetch::{HostRules, HostSettings, Login};

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
