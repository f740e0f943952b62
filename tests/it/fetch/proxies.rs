//! Requests through a proxy: all of them, robots.txt too, and under its label.

use pgcrawl::fetch::ProxyEnvironment;

use super::*;

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage";

fn through(proxy: &str) -> FetchSettings {
    // No nameserver is there: a name that we resolved ourselves would fail.
    let resolver = Resolver::At("127.0.0.1:9".parse().unwrap());
    FetchSettings {
        proxies: vec![proxy.to_owned()],
        resolver,
        ..settings()
    }
}

async fn closed(settings: FetchSettings, url: &str) -> Result<Exchange, FetchError> {
    let url = PageUrl::parse(url).unwrap();
    let fetcher = Fetcher::new(settings, PrivateGuard::closed()).unwrap();
    fetcher.fetch(&url, &FetchOptions::default()).await
}

#[tokio::test]
async fn pages_and_robots_txt_go_through_the_proxy_under_its_label() {
    let proxy = RawListener::start(|_| (PAGE.to_vec(), Then::Close)).await;
    let fetcher = Fetcher::new(
        through(&format!("exit1=http://user:pass@{}", proxy.address())),
        PrivateGuard::closed(),
    )
    .unwrap();
    let url = PageUrl::parse("http://only-there.test/a").unwrap();
    let found = fetcher.fetch(&url, &FetchOptions::default()).await.unwrap();
    assert_eq!(
        (found.proxy.as_deref(), found.ip, &found.body[..]),
        (Some("exit1"), None, &b"page"[..])
    );
    let robots = fetcher
        .fetch_robots(url.host(), Duration::from_secs(20), Duration::ZERO)
        .await;
    assert_eq!(robots.status, Some(200));
    let asked: Vec<_> = proxy
        .requests()
        .iter()
        .map(|r| r.target().to_owned())
        .collect();
    assert_eq!(
        asked,
        [
            "http://only-there.test/a",
            "http://only-there.test/robots.txt"
        ]
    );
    // "user:pass" in base64.
    assert!(
        proxy.requests()[0]
            .head
            .to_lowercase()
            .contains("proxy-authorization: basic dxnlcjpwyxnz")
    );
}

#[tokio::test]
async fn the_label_of_the_way_is_known_without_an_answer() {
    let label = async |settings: FetchSettings, url: &str| {
        let (url, mut way) = (PageUrl::parse(url).unwrap(), Way::default());
        let options = FetchOptions::default();
        let fetched = fetcher(settings).fetch_by(&url, &options, &mut way).await;
        assert!(fetched.is_err());
        way.proxy.map(|label| label.to_string())
    };
    let named = || through("exit1=http://user:pass@127.0.0.1:9");
    assert_eq!(
        label(named(), "http://site.test/").await.as_deref(),
        Some("exit1")
    );
    let environment = || FetchSettings {
        proxy_environment: ProxyEnvironment {
            https: Some("http://127.0.0.1:9".to_owned()),
            none: Some("near.test".to_owned()),
            ..ProxyEnvironment::default()
        },
        resolver: Resolver::At("127.0.0.1:9".parse().unwrap()),
        connect_timeout: Duration::from_millis(500),
        ..settings()
    };
    for (url, expected) in [
        ("https://site.test/", Some("env")),
        ("https://near.test/", None),
        ("http://site.test/", None),
    ] {
        assert_eq!(
            label(environment(), url).await.as_deref(),
            expected,
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_proxy_that_wants_other_credentials_is_at_fault_itself() {
    const REFUSAL: &[u8] =
        b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
    let proxy = RawListener::always(REFUSAL).await;
    for url in ["http://site.test/", "https://site.test/"] {
        let error = closed(through(&format!("http://{}", proxy.address())), url)
            .await
            .unwrap_err();
        assert_eq!(
            (error.class(), error.disposition()),
            ("proxy", Disposition::Proxy),
            "{url}"
        );
        assert!(!error.is_host_level(), "{url}");
        assert!(
            error.to_string().contains(&proxy.address().to_string()),
            "{error}"
        );
    }
    // Without a proxy the same status is an answer like any other.
    assert_eq!(fetch(&proxy.url("/")).await.unwrap().status, 407);
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_at_fault_itself() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for proxy in [
        format!("http://u:secret@{address}"),
        format!("socks5h://u:secret@{address}"),
    ] {
        for url in ["http://site.test/", "https://site.test/"] {
            let error = closed(through(&proxy), url).await.unwrap_err();
            assert_eq!(error.class(), "proxy", "{proxy} {url} {error}");
            assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
        }
    }
    let impatient = FetchSettings {
        connect_timeout: Duration::from_millis(500),
        ..through("exit2=http://u:secret@gone.test:3128")
    };
    let error = closed(impatient, "http://site.test/").await.unwrap_err();
    assert_eq!(error.class(), "proxy", "{error}");
    assert!(
        error
            .to_string()
            .starts_with("proxy exit2: cannot resolve gone.test"),
        "{error}"
    );
}

#[tokio::test]
async fn a_proxy_that_cannot_reach_the_host_charges_the_host() {
    let proxy =
        RawListener::always(&b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"[..]).await;
    let error = closed(
        through(&format!("http://{}", proxy.address())),
        "https://site.test/",
    )
    .await
    .unwrap_err();
    assert_eq!(
        (error.class(), error.disposition()),
        ("tunnel", Disposition::Retry)
    );
    assert!(error.is_host_level());
}

#[tokio::test]
async fn private_literals_are_refused_behind_a_proxy_as_well() {
    let proxy = RawListener::always(PAGE).await;
    let error = closed(
        through(&format!("http://{}", proxy.address())),
        "http://169.254.169.254/",
    )
    .await
    .unwrap_err();
    assert_eq!(error.class(), "private_address");
    assert!(proxy.requests().is_empty());
}

#[tokio::test]
async fn the_environment_s_proxy_is_used_under_its_own_label() {
    let proxy = RawListener::start(|_| (PAGE.to_vec(), Then::Close)).await;
    let site = Site::builder().page("/", "direct").start().await;
    let address = format!("http://{}", proxy.address());
    let environment = ProxyEnvironment {
        http: Some(address),
        ..ProxyEnvironment::default()
    };
    let settings = FetchSettings {
        proxy_environment: environment,
        ..settings()
    };
    let found = closed(settings.clone(), "http://only-there.test/")
        .await
        .unwrap();
    assert_eq!(
        (found.proxy.as_deref(), &found.body[..]),
        (Some("env"), &b"page"[..])
    );
    // This machine is asked directly.
    let found = fetch_with(settings, &site.url("/")).await.unwrap();
    assert_eq!((found.proxy, &found.body[..]), (None, &b"direct"[..]));
}

#[tokio::test]
async fn a_proxy_that_says_nothing_to_several_hosts_has_failed_and_not_they() {
    let proxy = RawListener::start(|_| (Vec::new(), Then::Hang)).await;
    let fetcher = fetcher(FetchSettings {
        connect_timeout: Duration::from_millis(50),
        idle_timeout: Duration::from_millis(50),
        ..through(&format!("http://{}", proxy.address()))
    });
    let mut classes = Vec::new();
    for host in [1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6] {
        let url = PageUrl::parse(&format!("http://h{host}.test/")).unwrap();
        let error = fetcher
            .fetch(&url, &FetchOptions::default())
            .await
            .unwrap_err();
        classes.push((error.class(), error.is_host_level()));
    }
    // One host alone may be silent by itself, however often it is asked.
    assert!(
        classes[..9]
            .iter()
            .all(|class| *class == ("idle_timeout", true)),
        "{classes:?}"
    );
    assert_eq!(classes[9..], [("proxy", false); 2]);
    assert_eq!(proxy.requests().len(), 10);
}

/// Any host can write 407, and could otherwise end a crawl of all others.
#[tokio::test]
async fn a_host_s_word_against_the_proxy_counts_for_little_once_that_reached_others() {
    let proxy = RawListener::start(|request| {
        let answer = match request.head.contains("evil") {
            true => &b"HTTP/1.1 407 Mine\r\ncontent-length: 0\r\n\r\n"[..],
            false => PAGE,
        };
        (answer.to_vec(), Then::Close)
    })
    .await;
    let fetcher = Fetcher::new(
        through(&format!("http://{}", proxy.address())),
        PrivateGuard::closed(),
    )
    .unwrap();
    let class = async |url: &str| {
        let url = PageUrl::parse(url).unwrap();
        let fetched = fetcher.fetch(&url, &FetchOptions::default()).await;
        fetched.err().map(|error| error.class())
    };
    assert_eq!(class("http://good.test/").await, None);
    for n in 0..9 {
        let url = format!("http://h{n}.evil.test/");
        assert_eq!(class(&url).await, Some("tunnel"), "{n}");
    }
    assert_eq!(class("http://good.test/").await, None);
    assert_eq!(fetcher.proxies()[0].failed, 0);
}

#[tokio::test]
async fn a_proxy_that_refuses_by_its_own_rules_allows_nothing_in_the_host_s_name() {
    const REFUSAL: &[u8] = b"HTTP/1.1 403 Forbidden\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\ncontent-length: 0\r\n\r\n";
    let proxy = RawListener::always(REFUSAL).await;
    let fetcher = fetcher(through(&format!("http://{}", proxy.address())));
    let host = HostKey::parse("http://site.test").unwrap();
    let found = fetcher
        .fetch_robots(&host, Duration::from_secs(20), Duration::ZERO)
        .await;
    assert_eq!(
        (found.status, found.error.unwrap().class()),
        (None, "tunnel")
    );
}

#[tokio::test]
async fn a_host_that_one_proxy_opens_no_tunnel_to_is_tried_by_the_next() {
    let refuses = || RawListener::always(&b"HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n"[..]);
    let (one, other) = (refuses().await, refuses().await);
    let settings = FetchSettings {
        proxies: [&one, &other]
            .map(|proxy| format!("http://{}", proxy.address()))
            .to_vec(),
        ..through("")
    };
    let error = closed(settings, "https://site.test/").await.unwrap_err();
    assert_eq!(error.class(), "tunnel");
    let asked = |proxy: &RawListener| {
        let requests = proxy.requests().into_iter();
        requests
            .filter(|request| request.head.starts_with("CONNECT"))
            .count()
    };
    assert_eq!((asked(&one), asked(&other)), (1, 1));
}

#[tokio::test]
async fn a_page_may_name_neither_the_proxy_s_own_host_nor_its_localhost() {
    let proxy = RawListener::start(|_| (PAGE.to_vec(), Then::Close)).await;
    let names = crate::support::names::Nameserver::start(&[("proxy.test", "127.0.0.1")]).await;
    let through = || FetchSettings {
        resolver: Resolver::At(names.address()),
        ..through(&format!("http://proxy.test:{}", proxy.address().port()))
    };
    assert!(closed(through(), "http://other.test/").await.is_ok());
    for url in [
        "http://proxy.test/",
        "http://localhost:9200/",
        "http://a.localhost/",
    ] {
        let error = closed(through(), url).await.unwrap_err();
        assert_eq!(error.class(), "private_address", "{url}");
    }
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn the_proxies_of_the_environment_are_told_of_under_one_label() {
    let environment = ProxyEnvironment {
        http: Some("http://127.0.0.1:9".to_owned()),
        https: Some("http://127.0.0.1:19".to_owned()),
        ..ProxyEnvironment::default()
    };
    let fetcher = fetcher(FetchSettings {
        proxy_environment: environment,
        ..settings()
    });
    for url in ["http://site.test/", "https://site.test/"] {
        let url = PageUrl::parse(url).unwrap();
        let fetched = fetcher.fetch(&url, &FetchOptions::default()).await;
        assert_eq!(fetched.unwrap_err().class(), "proxy");
    }
    let reports = fetcher.proxies();
    assert_eq!(reports.len(), 1);
    assert_eq!(
        (&*reports[0].label, reports[0].requests, reports[0].failed),
        ("env", 2, 2)
    );
}

#[tokio::test]
async fn a_setting_that_is_no_proxy_is_named() {
    let error = Fetcher::new(through("ftp://u:secret@h"), PrivateGuard::closed()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "proxy: ftp://h: a proxy is http, https, socks5 or socks5h"
    );
}
