//! Through proxies that others wrote.

use pgcrawl::fetch::{Blame, HostRules, HostSettings, ProxyChoice, ProxyState, Rotation};

use super::*;
use crate::support::authority::{Authority, Server};
use crate::support::real_proxies::RealProxy;

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret";

fn by(proxies: &[String]) -> FetchSettings {
    FetchSettings {
        proxies: proxies.to_vec(),
        proxy_rests: vec![Duration::from_millis(200)],
        ..settings()
    }
}

fn nobody_there() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

async fn both() -> Option<[RealProxy; 2]> {
    Some([RealProxy::http().await?, RealProxy::socks().await?])
}

#[tokio::test]
async fn pages_come_through_http_and_socks_with_credentials_plain_and_by_tls() {
    let Some([http, socks]) = both().await else {
        return;
    };
    let site = Site::builder().page("/", "page").start().await;
    let authority = Authority::new();
    let acceptor = authority.sign(&["127.0.0.1"], 2020..2120).acceptor(None);
    let secure = Server::secure(acceptor, PAGE).await;
    let front = authority.sign(&["127.0.0.1"], 2020..2120).acceptor(None);
    let https_port = http.behind_tls(front).await;
    for proxy in [
        http.named("exit"),
        socks.named("exit"),
        socks.with("exit", "socks5", "hunter2"),
        format!("exit=https://me:hunter2@127.0.0.1:{https_port}"),
    ] {
        let settings = FetchSettings {
            ca_file: Some(authority.file()),
            ..by(std::slice::from_ref(&proxy))
        };
        let fetcher = fetcher(settings);
        for (url, body) in [(site.url("/"), "page"), (secure.url(), "secret")] {
            let url = PageUrl::parse(&url).unwrap();
            let found = fetcher.fetch(&url, &FetchOptions::default()).await;
            let found = found.unwrap_or_else(|error| panic!("{proxy} {url:?}: {error}"));
            assert_eq!(found.body, body, "{proxy}");
            assert_eq!((found.proxy.as_deref(), found.ip), (Some("exit"), None));
        }
        let report = &fetcher.proxies()[0];
        assert_eq!((report.requests, report.failed), (2, 0));
        assert_eq!(report.bytes, 10);
    }
}

#[tokio::test]
async fn other_credentials_are_the_proxy_s_failure_and_say_so() {
    let Some([http, socks]) = both().await else {
        return;
    };
    let site = Site::builder().page("/", "page").start().await;
    let (plain, secure) = (site.url("/"), format!("https://{}/", nobody_there()));
    for (proxy, url) in [
        (http.with("exit", "http", "wrong"), &plain),
        (socks.with("exit", "socks5h", "wrong"), &plain),
        (socks.with("exit", "socks5h", "wrong"), &secure),
    ] {
        let error = fetch_with(by(std::slice::from_ref(&proxy)), url)
            .await
            .unwrap_err();
        assert_eq!(
            error.disposition(),
            Disposition::Proxy,
            "{proxy} {url}: {error}"
        );
        assert!(
            error
                .to_string()
                .starts_with("proxy exit: it wants other credentials"),
            "{error}"
        );
    }
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn a_proxy_that_reaches_none_of_several_hosts_has_failed() {
    let Some(http) = RealProxy::http().await else {
        return;
    };
    // To a wrong password a tunnel is refused like for any other reason.
    let fetcher = fetcher(FetchSettings {
        proxy_rests: vec![Duration::from_secs(60)],
        ..by(&[http.with("exit", "http", "wrong")])
    });
    let mut classes = Vec::new();
    for host in 1..=6 {
        let url = PageUrl::parse(&format!("https://h{host}.test/")).unwrap();
        let error = fetcher
            .fetch(&url, &FetchOptions::default())
            .await
            .unwrap_err();
        classes.push(error.class());
    }
    assert_eq!(
        classes,
        ["tunnel", "tunnel", "tunnel", "tunnel", "proxy", "proxy"]
    );
    let report = &fetcher.proxies()[0];
    assert_eq!((report.state, report.requests), (ProxyState::Resting, 5));
}

#[tokio::test]
async fn a_host_that_a_proxy_does_not_reach_is_at_fault_itself() {
    let Some([http, socks]) = both().await else {
        return;
    };
    let dead = nobody_there();
    for (proxy, url, clear) in [
        (&http, format!("http://{dead}/"), true),
        // A tunnel that is refused has one word for everything.
        (&http, format!("https://{dead}/"), false),
        (&socks, format!("http://{dead}/"), true),
        (&socks, format!("https://{dead}/"), true),
        // To microsocks a name that does not resolve is a general failure.
        (&socks, "http://nowhere.invalid/".to_owned(), false),
    ] {
        let error = fetch_with(by(&[proxy.named("exit")]), &url)
            .await
            .unwrap_err();
        let FetchError::Tunnel { blame, .. } = &error else {
            panic!("{url}: {error}");
        };
        assert_eq!(*blame == Blame::Host, clear, "{url}: {error}");
        assert_eq!(
            (error.class(), error.disposition()),
            ("tunnel", Disposition::Retry)
        );
        assert!(error.is_host_level());
    }
}

#[tokio::test]
async fn while_one_proxy_rests_another_takes_its_requests_and_it_comes_back() {
    let (Some(mut one), Some(two)) = (RealProxy::http().await, RealProxy::http().await) else {
        return;
    };
    let site = Site::builder().page("/", "page").start().await;
    let url = PageUrl::parse(&site.url("/")).unwrap();
    let fetcher = fetcher(by(&[one.named("one"), two.named("two")]));
    let label = async || {
        let found = fetcher.fetch(&url, &FetchOptions::default()).await.unwrap();
        found.proxy.unwrap().to_string()
    };
    let state = || fetcher.proxies()[0].state;
    assert_eq!([label().await, label().await], ["one", "two"]);
    one.kill();
    // Each request is answered all the same, at once.
    for _ in 0..4 {
        assert_eq!(label().await, "two");
    }
    let report = &fetcher.proxies()[0];
    assert_ne!(report.state, ProxyState::Healthy);
    assert!(report.last_error.is_some() && report.failed > 0);
    assert_eq!(fetcher.proxies_rest(url.as_url()), None);
    one.run().await;
    while state() != ProxyState::Healthy {
        label().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut labels = [label().await, label().await];
    labels.sort();
    assert_eq!(labels, ["one", "two"]);
}

#[tokio::test]
async fn where_every_proxy_rests_the_wait_is_known_before_a_request() {
    let gone = format!("gone=http://{}", nobody_there());
    let settings = FetchSettings {
        proxy_rests: vec![Duration::from_secs(60)],
        ..by(&[gone])
    };
    let fetcher = fetcher(settings);
    let url = PageUrl::parse("http://site.test/").unwrap();
    let fetch = async || {
        fetcher
            .fetch(&url, &FetchOptions::default())
            .await
            .unwrap_err()
    };
    assert_eq!(fetcher.proxies_rest(url.as_url()), None);
    assert_eq!(fetch().await.class(), "proxy");
    let wait = fetcher.proxies_rest(url.as_url()).unwrap();
    assert!(wait > Duration::from_secs(30), "{wait:?}");
    let error = fetch().await;
    assert!(matches!(error, FetchError::NoProxy { .. }), "{error}");
    assert_eq!(
        (error.class(), error.disposition()),
        ("proxy", Disposition::Proxy)
    );
    assert_eq!(fetcher.proxies()[0].requests, 1);
}

#[tokio::test]
async fn an_https_proxy_that_is_not_trusted_is_at_fault_itself() {
    let Some(http) = RealProxy::http().await else {
        return;
    };
    let stranger = Authority::new().sign(&["127.0.0.1"], 2020..2120);
    let port = http.behind_tls(stranger.acceptor(None)).await;
    let proxy = format!("exit=https://me:hunter2@127.0.0.1:{port}");
    for url in ["http://site.test/", "https://site.test/"] {
        let error = fetch_with(by(std::slice::from_ref(&proxy)), url)
            .await
            .unwrap_err();
        assert_eq!(error.class(), "proxy", "{url}: {error}");
        assert!(
            error.to_string().contains("tls: the certificate's issuer"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_host_has_its_own_way_and_its_own_trust() {
    let (Some(one), Some(two)) = (RealProxy::http().await, RealProxy::http().await) else {
        return;
    };
    let sites = [
        Site::builder().page("/", "page").start().await,
        Site::builder().page("/", "page").start().await,
        Site::builder().page("/", "page").start().await,
    ];
    let authority = Authority::new();
    let secure = async || {
        let signed = authority.sign(&["127.0.0.1"], 2020..2120);
        Server::secure(signed.acceptor(None), PAGE).await
    };
    let (lax, strict) = (secure().await, secure().await);
    let entry = |address: std::net::SocketAddr, insecure, proxy: Option<&str>| HostSettings {
        hosts: vec![address.to_string().parse().unwrap()],
        insecure,
        proxy: proxy.map(ProxyChoice::of),
        ..HostSettings::default()
    };
    let settings = FetchSettings {
        named_proxies: vec![two.named("two")],
        proxy_rotation: Rotation::Sticky,
        hosts: HostRules::new(vec![
            entry(sites[1].address(), false, Some("two")),
            entry(sites[2].address(), false, Some("direct")),
            entry(lax.address, true, Some("direct")),
        ]),
        ..by(&[one.named("one")])
    };
    let fetcher = fetcher(settings.clone());
    let fetch = async |url: &str| {
        let url = PageUrl::parse(url).unwrap();
        fetcher.fetch(&url, &FetchOptions::default()).await
    };
    for (site, label) in sites.iter().zip([Some("one"), Some("two"), None]) {
        let found = fetch(&site.url("/")).await.unwrap();
        assert_eq!(found.proxy.as_deref(), label);
    }
    assert_eq!(fetch(&lax.url()).await.unwrap().body, "secret");
    let error = fetch(&strict.url()).await.unwrap_err();
    assert_eq!(error.class(), "tls_unknown_issuer");
    let unknown = FetchSettings {
        hosts: HostRules::new(vec![entry(sites[0].address(), false, Some("three"))]),
        ..settings
    };
    let complaint = Fetcher::new(unknown, PrivateGuard::closed()).unwrap_err();
    assert_eq!(
        complaint.to_string(),
        "hosts.proxy: no proxy has the label three"
    );
}
