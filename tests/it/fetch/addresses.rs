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
async fn names_that_do_not_resolve_say_whose_fault_it_is_and_are_tried_accordingly() {
    let names = Nameserver::start(&[("empty.test", ""), ("sick.test", "servfail")]).await;
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        ..settings()
    };
    for (url, disposition, words) in [
        (
            "http://nowhere.test/",
            Disposition::RetryFew,
            "cannot resolve nowhere.test: no such name",
        ),
        (
            "http://empty.test/",
            Disposition::RetryFew,
            "cannot resolve empty.test: the name has no address",
        ),
        (
            "http://sick.test/",
            Disposition::Retry,
            "cannot resolve sick.test: the nameserver could not say: ",
        ),
    ] {
        let error = guarded(settings.clone(), "other.test", url)
            .await
            .unwrap_err();
        assert_eq!(
            (error.class(), error.disposition()),
            ("dns", disposition),
            "{error}"
        );
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(error.is_host_level());
    }
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

#[tokio::test]
async fn of_several_addresses_only_those_that_may_be_asked_are() {
    let site = Site::builder().page("/", "page").start().await;
    // A network of the operator's stands for the public addresses that no test may ask.
    let names = Nameserver::start(&[
        ("mixed.test", "10.0.0.1, 127.0.0.1, ::1, fe80::1"),
        ("inside.test", "::1, 10.0.0.1"),
    ])
    .await;
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        allow_hosts: vec!["127.0.0.1".parse().unwrap()],
        ..settings()
    };
    let found = guarded(
        settings.clone(),
        "other.test",
        &site.url_at("mixed.test", "/"),
    )
    .await
    .unwrap();
    assert_eq!(found.ip, Some("127.0.0.1".parse().unwrap()));
    let error = guarded(settings, "other.test", &site.url_at("inside.test", "/"))
        .await
        .unwrap_err();
    assert_eq!(error.class(), "private_address");
}

#[tokio::test]
async fn a_name_that_moves_inside_after_it_was_looked_at_is_not_followed_there() {
    let outside = Site::builder().page("/", "outside").start().await;
    let inside = Site::builder().page("/", "inside").start().await;
    let names = Nameserver::start(&[
        ("rebind.test", "127.0.0.1 then 127.0.0.2"),
        ("back.test", "127.0.0.2 then 127.0.0.1"),
    ])
    .await;
    // 127.0.0.1 stands for the public addresses that no test may ask. Nothing is kept, so that each
    // look is another question.
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        allow_hosts: vec!["127.0.0.1".parse().unwrap()],
        shortest_ttl: Duration::ZERO,
        only_first_address: true,
        ..settings()
    };
    let fetcher = Fetcher::new(settings, PrivateGuard::closed()).unwrap();
    let fetch = async |url: &str, address| {
        let options = FetchOptions {
            address,
            ..FetchOptions::default()
        };
        fetcher.fetch(&PageUrl::parse(url).unwrap(), &options).await
    };
    let url = outside.url_at("rebind.test", "/");
    let looked = fetcher
        .address(PageUrl::parse(&url).unwrap().as_url())
        .await;
    assert_eq!(looked, Some("127.0.0.1".parse().unwrap()));
    // Asked where leave was had, whatever the name says by now.
    assert_eq!(fetch(&url, looked).await.unwrap().body, "outside");
    assert_eq!(names.questions(), 1);
    // Asked anew, it is judged anew.
    for url in [&url, &inside.url_at("rebind.test", "/")] {
        let error = fetch(url, None).await.unwrap_err();
        assert_eq!(error.class(), "private_address");
        assert!(
            error.to_string().contains("127.0.0.2 (loopback)"),
            "{error}"
        );
    }
    assert_eq!((outside.requests().len(), inside.requests().len()), (1, 0));
    let url = outside.url_at("back.test", "/");
    assert!(fetch(&url, None).await.is_err());
    assert_eq!(fetch(&url, None).await.unwrap().body, "outside");
}

#[tokio::test]
async fn an_address_that_was_not_reached_is_known_where_there_was_only_one() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let names =
        Nameserver::start(&[("one.test", "127.0.0.1"), ("two.test", "127.0.0.1, ::1")]).await;
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        ..settings()
    };
    let fetcher = fetcher(settings);
    for (host, ip) in [
        ("127.0.0.1", Some("127.0.0.1".parse().unwrap())),
        ("one.test", Some("127.0.0.1".parse().unwrap())),
        ("two.test", None),
    ] {
        let url = PageUrl::parse(&format!("http://{host}:{port}/")).unwrap();
        let mut way = Way::default();
        let fetched = fetcher
            .fetch_by(&url, &FetchOptions::default(), &mut way)
            .await;
        assert_eq!(fetched.unwrap_err().class(), "refused", "{host}");
        assert_eq!(way.ip, ip, "{host}");
    }
}

#[tokio::test]
async fn an_address_that_the_operator_gives_for_a_host_is_asked_without_a_question() {
    let site = Site::builder().page("/", "page").start().await;
    let port = site.address().port();
    let settings = FetchSettings {
        resolver: Resolver::At("127.0.0.1:9".parse().unwrap()),
        resolve: vec![
            "given.test:127.0.0.1".parse().unwrap(),
            format!("port.test:{port}:127.0.0.1").parse().unwrap(),
        ],
        connect_timeout: Duration::from_millis(500),
        ..settings()
    };
    for host in ["given.test", "port.test"] {
        let found = guarded(settings.clone(), "other.test", &site.url_at(host, "/"))
            .await
            .unwrap();
        assert_eq!(
            (found.body, found.ip),
            ("page".into(), Some(site.address().ip()))
        );
    }
    // For another host, and another port, it says nothing.
    for url in ["http://sub.given.test/", "http://port.test:1/"] {
        let error = guarded(settings.clone(), "other.test", url)
            .await
            .unwrap_err();
        assert_eq!(error.class(), "dns", "{url}");
    }
}

#[tokio::test]
async fn a_redirect_to_itself_in_a_private_spelling_is_not_followed() {
    let site = Site::builder()
        .redirect("/", 302, "http://2130706433/")
        .start()
        .await;
    let found = guarded(settings(), "127.0.0.1", &site.url("/"))
        .await
        .unwrap();
    // A result like any other: its target is a task of its own, and judged as one.
    assert_eq!((found.status, found.hops), (302, 0));
}

#[tokio::test]
async fn that_there_is_no_such_name_is_kept_for_a_while_too() {
    let names = Nameserver::start(&[("empty.test", "")]).await;
    let settings = FetchSettings {
        resolver: Resolver::At(names.address()),
        ..settings()
    };
    let fetcher = fetcher(settings);
    for (host, asked) in [("nowhere.test", 1), ("empty.test", 2)] {
        for _ in 0..3 {
            let url = PageUrl::parse(&format!("http://{host}/")).unwrap();
            let fetched = fetcher.fetch(&url, &FetchOptions::default()).await;
            assert_eq!(fetched.unwrap_err().class(), "dns");
        }
        assert_eq!(names.questions(), asked, "{host}");
    }
}
