//! Private addresses: named by a seed, or never touched.

use super::*;
use crate::support::names::Nameserver;

async fn guarded(
    settings: FetchSettings,
    named: &'static str,
    url: &str,
) -> Result<Exchange, FetchError> {
    let guard = PrivateGuard::new(move |host| host == named);
    let url = PageUrl::parse(url).unwrap();
    Fetcher::new(settings, guard)
        .unwrap()
        .fetch(&url, &FetchOptions::default())
        .await
}

#[tokio::test]
async fn a_private_literal_is_refused_unless_a_seed_names_that_very_host() {
    let site = Site::builder().page("/", "page").start().await;
    let number = site.url_at("2130706433", "/");
    for url in [
        site.url("/"),
        number,
        site.url_at("[::ffff:127.0.0.1]", "/"),
    ] {
        let error = guarded(settings(), "other.test", &url).await.unwrap_err();
        assert_eq!(
            (error.class(), error.disposition()),
            ("private_address", Disposition::Never),
            "{url}"
        );
    }
    assert!(site.requests().is_empty());
    assert_eq!(
        guarded(settings(), "127.0.0.1", &site.url("/"))
            .await
            .unwrap()
            .status,
        200
    );
    let open = FetchSettings {
        allow_private: true,
        ..settings()
    };
    assert_eq!(
        guarded(open, "other.test", &site.url("/"))
            .await
            .unwrap()
            .status,
        200
    );
}

#[tokio::test]
async fn localhost_is_this_machine_without_asking_anybody_and_as_private() {
    let site = Site::builder().page("/", "page").start().await;
    let url = site.url_at("localhost", "/");
    // A nameserver that is not there: asking it would fail.
    let settings = FetchSettings {
        resolver: Resolver::At("127.0.0.1:9".parse().unwrap()),
        ..settings()
    };
    let error = guarded(settings.clone(), "other.test", &url)
        .await
        .unwrap_err();
    assert_eq!(error.class(), "private_address");
    assert_eq!(
        guarded(settings, "localhost", &url).await.unwrap().body,
        "page"
    );
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_refused_unless_named() {
    let site = Site::builder().page("/", "page").start().await;
    let names =
        Nameserver::start(&[("inner.test", "127.0.0.1"), ("my_host.test", "127.0.0.1")]).await;
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        ..settings()
    };
    let error = guarded(
        settings.clone(),
        "other.test",
        &site.url_at("inner.test", "/"),
    )
    .await
    .unwrap_err();
    assert_eq!(error.class(), "private_address");
    assert!(
        error
            .to_string()
            .contains("inner.test is at the private address 127.0.0.1"),
        "{error}"
    );
    assert!(site.requests().is_empty());
    for host in ["inner.test", "my_host.test"] {
        let found = guarded(settings.clone(), host, &site.url_at(host, "/"))
            .await
            .unwrap();
        assert_eq!(found.ip.unwrap().to_string(), "127.0.0.1");
        assert_eq!(
            site.requests().last().unwrap().header("host"),
            &site.url_at(host, "")[7..]
        );
    }
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_dns_and_seldom_worth_another_try() {
    let names = Nameserver::start(&[]).await;
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        ..settings()
    };
    let error = guarded(settings, "other.test", "http://nowhere.test/")
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.disposition()),
        ("dns", Disposition::RetryFew)
    );
    assert_eq!(
        error.to_string(),
        "cannot resolve nowhere.test: no such name"
    );
    assert!(error.is_host_level());
}

#[tokio::test]
async fn a_nameserver_that_never_answers_is_dns_too() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let settings = FetchSettings {
        resolver: Resolver::At(silent.local_addr().unwrap()),
        connect_timeout: Duration::from_millis(500),
        ..settings()
    };
    let error = guarded(settings, "other.test", "http://slow.test/")
        .await
        .unwrap_err();
    assert_eq!(error.class(), "dns");
}

#[tokio::test]
async fn answers_of_a_nameserver_are_kept() {
    let site = Site::builder().page("/", "page").start().await;
    let names = Nameserver::start(&[("inner.test", "127.0.0.1")]).await;
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        ..settings()
    };
    let fetcher = fetcher(settings);
    // Another port each time would be another connection; closing it is enough.
    let url = PageUrl::parse(&site.url_at("inner.test", "/")).unwrap();
    let other = Site::builder().page("/", "page").start().await;
    let second = PageUrl::parse(&other.url_at("inner.test", "/")).unwrap();
    fetcher.fetch(&url, &FetchOptions::default()).await.unwrap();
    let asked = names.questions();
    fetcher
        .fetch(&second, &FetchOptions::default())
        .await
        .unwrap();
    assert!(asked > 0);
    assert_eq!(names.questions(), asked);
}
