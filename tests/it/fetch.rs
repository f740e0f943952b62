//! Fetching from real sockets: what is an answer, what is an error, and which.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use async_compression::tokio::bufread::GzipEncoder;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use pgcrawl::canon::{HostKey, PageUrl};
use pgcrawl::exchange::{Coding, Exchange, Truncated};
use pgcrawl::fetch::{
    BodyRoom, Disposition, FetchError, FetchOptions, FetchSettings, Fetcher, PrivateGuard,
    Resolver, Way,
};
use tokio::io::AsyncReadExt;

use crate::support::site::{RawListener, Site, Then, endless};

mod addresses;
mod command;
mod hosts;
mod http2;
mod proxies;
mod real_proxies;
mod redirects;
mod robots;
pub(crate) mod rubbish;
mod sessions;
mod tls;
mod wire;

/// Settings whose limits are short enough for a test to see them, and far above what loopback takes.
fn settings() -> FetchSettings {
    FetchSettings {
        user_agent: "testbot/1.0 (+https://testbot.test/)".to_owned(),
        resolver: Resolver::System,
        ..FetchSettings::default()
    }
}

/// A fetcher that may ask this machine.
fn fetcher(settings: FetchSettings) -> Fetcher {
    Fetcher::new(settings, PrivateGuard::open()).unwrap()
}

async fn fetch(url: &str) -> Result<Exchange, FetchError> {
    fetch_with(settings(), url).await
}

async fn fetch_with(settings: FetchSettings, url: &str) -> Result<Exchange, FetchError> {
    let url = PageUrl::parse(url).unwrap();
    fetcher(settings)
        .fetch(&url, &FetchOptions::default())
        .await
}

async fn class_of(url: &str) -> &'static str {
    fetch(url).await.unwrap_err().class()
}

async fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    GzipEncoder::new(plain).read_to_end(&mut out).await.unwrap();
    out
}

#[tokio::test]
async fn an_answer_of_any_status_is_an_exchange_with_its_facts() {
    let site = Site::builder()
        .page("/a", "<p>hello")
        .status("/gone", 410)
        .start()
        .await;
    let found = fetch(&site.url("/a?q=1")).await.unwrap();
    assert_eq!((found.status, &found.body[..]), (200, &b"<p>hello"[..]));
    assert_eq!(
        found.content_type().as_deref(),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(
        (found.wire_bytes, found.hops, found.truncated),
        (8, 0, None)
    );
    assert_eq!(found.ip, Some(site.address().ip()));
    assert_eq!(found.proxy, None);
    assert_eq!(found.final_url, found.url);
    assert!(found.elapsed > Duration::ZERO);
    assert_eq!(fetch(&site.url("/gone")).await.unwrap().status, 410);

    let request = &site.requests()[0];
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("GET", "/a?q=1")
    );
    assert_eq!(
        request.header("user-agent"),
        "testbot/1.0 (+https://testbot.test/)"
    );
    assert_eq!(request.header("accept-encoding"), "gzip, br, zstd, deflate");
    assert_eq!(
        (request.header("referer"), request.header("cookie")),
        ("", "")
    );
}

#[tokio::test]
async fn a_redirect_elsewhere_is_a_result_and_is_not_followed() {
    let site = Site::builder()
        .redirect("/old", 301, "/new?a=1")
        .page("/new", "new")
        .start()
        .await;
    let found = fetch(&site.url("/old")).await.unwrap();
    assert_eq!((found.status, found.hops), (301, 0));
    assert_eq!(found.redirect_target().as_deref(), Some("/new?a=1"));
    assert_eq!(site.targets(), ["/old"]);
}

#[tokio::test]
async fn a_redirect_to_another_spelling_of_itself_is_followed_in_the_visit() {
    let site = Site::builder()
        .answer("/p", |request| match request.uri().query() {
            Some("a=1&b=2") => "sorted".into_response(),
            _ => (axum::http::StatusCode::FOUND, [("location", "/p?a=1&b=2")]).into_response(),
        })
        .start()
        .await;
    let found = fetch(&site.url("/p?b=2&a=1")).await.unwrap();
    assert_eq!(
        (found.status, found.hops, &found.body[..]),
        (200, 1, &b"sorted"[..])
    );
    assert_eq!(found.url.as_str(), site.url("/p?b=2&a=1"));
    assert_eq!(found.final_url.as_str(), site.url("/p?a=1&b=2"));
}

#[tokio::test]
async fn a_page_that_only_wants_its_cookie_shown_is_had_and_the_next_visit_starts_without() {
    let site = Site::builder()
        .answer("/c", |request| match request.headers().get("cookie") {
            Some(cookie) => format!("shown {}", cookie.to_str().unwrap()).into_response(),
            None => {
                let headers = [("location", "/c"), ("set-cookie", "seen=yes; Path=/")];
                (axum::http::StatusCode::SEE_OTHER, headers).into_response()
            }
        })
        .start()
        .await;
    let (fetcher, url) = (
        fetcher(settings()),
        PageUrl::parse(&site.url("/c")).unwrap(),
    );
    for _ in 0..2 {
        let found = fetcher.fetch(&url, &FetchOptions::default()).await.unwrap();
        assert_eq!((found.hops, &found.body[..]), (1, &b"shown seen=yes"[..]));
    }
    assert_eq!(site.count("/c"), 4);
}

#[tokio::test]
async fn a_hop_keeps_the_host_s_delay_and_is_not_made_where_there_is_no_time_for_it() {
    let site = Site::builder()
        .answer("/p", |request| match request.uri().query() {
            Some("a=1&b=2") => "sorted".into_response(),
            _ => (axum::http::StatusCode::FOUND, [("location", "/p?a=1&b=2")]).into_response(),
        })
        .start()
        .await;
    let url = PageUrl::parse(&site.url("/p?b=2&a=1")).unwrap();
    let paused = |pause| FetchOptions {
        pause,
        ..FetchOptions::default()
    };
    let pause = Duration::from_millis(200);
    let found = fetcher(settings())
        .fetch(&url, &paused(pause))
        .await
        .unwrap();
    assert_eq!((found.status, found.hops), (200, 1));
    let log = site.requests();
    assert!(log[1].started - log[0].ended.unwrap() >= pause);

    let error = fetcher(settings())
        .fetch(&url, &paused(Duration::from_secs(3600)))
        .await
        .unwrap_err();
    // The host has answered: its breaker has nothing to count.
    assert_eq!(
        (error.class(), error.is_host_level()),
        ("total_timeout", false)
    );
    assert_eq!(site.requests().len(), 3);
}

#[tokio::test]
async fn a_page_that_redirects_to_itself_for_ever_is_given_up() {
    let counted = std::sync::atomic::AtomicU32::new(0);
    let site = Site::builder()
        .redirect("/same", 302, "/same")
        .answer("/new-cookie", move |_| {
            let n = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let headers = [
                ("location", "/new-cookie".to_owned()),
                ("set-cookie", format!("n={n}")),
            ];
            (axum::http::StatusCode::FOUND, headers).into_response()
        })
        .start()
        .await;
    assert_eq!(class_of(&site.url("/same")).await, "redirect_loop");
    assert_eq!(
        site.count("/same"),
        1,
        "the same request would bring the same answer"
    );
    let error = fetch(&site.url("/new-cookie")).await.unwrap_err();
    assert_eq!(
        (error.class(), error.disposition()),
        ("redirect_loop", Disposition::Never)
    );
    assert_eq!(site.count("/new-cookie"), 6, "the page and five hops");
}

#[tokio::test]
async fn an_unwanted_type_is_cut_after_its_headers() {
    let site = Site::builder()
        .answer("/radio", |_| endless("Audio/MPEG; rate=1"))
        .page("/page", "text")
        .start()
        .await;
    let options = FetchOptions {
        wanted: |media| media == Some("text/html"),
        ..FetchOptions::default()
    };
    let fetcher = fetcher(settings());
    let radio = PageUrl::parse(&site.url("/radio")).unwrap();
    let found = fetcher.fetch(&radio, &options).await.unwrap();
    assert_eq!(
        (found.status, found.truncated),
        (200, Some(Truncated::Unwanted))
    );
    assert_eq!((found.body.len(), found.wire_bytes), (0, 0));
    assert_eq!(found.content_type().as_deref(), Some("Audio/MPEG; rate=1"));
    let page = PageUrl::parse(&site.url("/page")).unwrap();
    assert_eq!(
        fetcher.fetch(&page, &options).await.unwrap().truncated,
        None
    );
}

#[tokio::test]
async fn a_stream_without_end_is_cut_by_size_or_by_time() {
    let site = Site::builder()
        .answer("/", |_| endless("text/html"))
        .start()
        .await;
    let small = FetchSettings {
        max_body_bytes: 3000,
        ..settings()
    };
    let found = fetch_with(small, &site.url("/")).await.unwrap();
    assert_eq!(
        (found.body.len(), found.truncated),
        (3000, Some(Truncated::Length))
    );

    let short = FetchSettings {
        total_timeout: Duration::from_millis(300),
        ..settings()
    };
    let found = fetch_with(short, &site.url("/")).await.unwrap();
    assert_eq!(found.truncated, Some(Truncated::Time));
    assert!(!found.body.is_empty());
}

#[tokio::test]
async fn a_body_cut_by_the_caller_s_hurry_is_an_error_not_a_page() {
    let site = Site::builder()
        .answer("/", |_| endless("text/html"))
        .start()
        .await;
    let url = PageUrl::parse(&site.url("/")).unwrap();
    let options = FetchOptions {
        budget: Duration::from_millis(200),
        ..FetchOptions::default()
    };
    let error = fetcher(settings()).fetch(&url, &options).await.unwrap_err();
    assert_eq!(
        (error.class(), error.is_host_level()),
        ("total_timeout", false)
    );
}

#[tokio::test]
async fn silence_has_its_own_limit_before_the_headers_and_within_the_body() {
    let raw = RawListener::start(|request| match request.target() {
        "/body" => (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec(),
            Then::Hang,
        ),
        _ => (Vec::new(), Then::Hang),
    })
    .await;
    let limits = FetchSettings {
        connect_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(200),
        ..settings()
    };
    let error = fetch_with(limits.clone(), &raw.url("/headers"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.is_host_level()),
        ("idle_timeout", true)
    );
    let error = fetch_with(limits.clone(), &raw.url("/body"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.is_host_level()),
        ("idle_timeout", false)
    );

    let total = FetchSettings {
        total_timeout: Duration::from_millis(200),
        ..settings()
    };
    let error = fetch_with(total, &raw.url("/headers")).await.unwrap_err();
    assert_eq!(
        (error.class(), error.is_host_level()),
        ("total_timeout", true)
    );
}

#[tokio::test]
async fn a_connection_that_never_stands_is_its_own_class() {
    // A queue of one that nobody accepts from: further handshakes get no answer.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(
        Duration::from_millis(300),
        tokio::net::TcpStream::connect(address),
    )
    .await
    {
        held.push(stream);
    }
    let limits = FetchSettings {
        connect_timeout: Duration::from_millis(300),
        ..settings()
    };
    let error = fetch_with(limits, &format!("http://{address}/"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.is_host_level()),
        ("connect_timeout", true)
    );
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_refused() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = fetch(&url).await.unwrap_err();
    assert_eq!((error.class(), error.is_host_level()), ("refused", true));
    assert_eq!(error.disposition(), Disposition::Retry);
}

#[tokio::test]
async fn a_mail_address_of_the_operator_s_is_said_in_from() {
    let site = Site::builder().page("/", "page").start().await;
    let settings = FetchSettings {
        from: Some("bot@testbot.test".to_owned()),
        ..settings()
    };
    fetch_with(settings, &site.url("/")).await.unwrap();
    fetch(&site.url("/")).await.unwrap();
    let said: Vec<String> = site
        .requests()
        .iter()
        .map(|request| request.header("from").to_owned())
        .collect();
    assert_eq!(said, ["bot@testbot.test", ""]);
}
