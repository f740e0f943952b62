//! What a redirect costs: little of its body, and leave for each hop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgcrawl::fetch::HopLeave;

use super::*;

#[tokio::test]
async fn of_a_redirect_s_body_only_the_head_is_read() {
    let site = Site::builder()
        .answer("/", |_| {
            let mut answer = endless("text/html");
            *answer.status_mut() = axum::http::StatusCode::FOUND;
            answer
                .headers_mut()
                .insert("location", "/next".parse().unwrap());
            answer
        })
        .start()
        .await;
    let settings = FetchSettings {
        idle_timeout: Duration::from_secs(3600),
        total_timeout: Duration::from_secs(3600),
        ..settings()
    };
    let found = fetch_with(settings, &site.url("/")).await.unwrap();
    assert_eq!(
        (found.status, found.redirect_target().as_deref()),
        (302, Some("/next"))
    );
    assert!(found.truncated.is_some());
    assert!(found.body.len() <= 64 * 1024, "{}", found.body.len());
}

#[tokio::test]
async fn a_redirect_counts_though_its_body_is_cut_off_or_never_comes() {
    for then in [Then::Close, Then::Reset, Then::Hang] {
        let head = b"HTTP/1.1 301 Moved\r\nlocation: /next\r\ncontent-length: 99\r\n\r\ncut";
        let raw = RawListener::start(move |_| (head.to_vec(), then)).await;
        let found = fetch(&raw.url("/")).await.unwrap();
        assert_eq!(
            (found.status, found.redirect_target().as_deref()),
            (301, Some("/next")),
            "{then:?}"
        );
        assert!(found.truncated.is_some(), "{then:?}");
    }
}

#[tokio::test]
async fn the_connection_of_a_redirect_is_used_again() {
    let raw = RawListener::start(|request| {
        let answer = match request.target() {
            "/?b&a" => "HTTP/1.1 301 Moved\r\nlocation: /?a&b\r\ncontent-length: 5\r\n\r\nmoved",
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage",
        };
        (answer.into(), Then::KeepOpen)
    })
    .await;
    let found = fetch(&raw.url("/?b&a")).await.unwrap();
    assert_eq!((found.hops, &found.body[..]), (1, &b"page"[..]));
    let asked: Vec<_> = raw
        .requests()
        .iter()
        .map(|r| (r.connection, r.nth))
        .collect();
    assert_eq!(asked, [(0, 0), (0, 1)]);
}

#[tokio::test]
async fn each_hop_of_a_page_waits_for_leave() {
    let site = Site::builder()
        .answer("/p", |request| match request.uri().query() {
            Some("a&b") => "sorted".into_response(),
            _ => (axum::http::StatusCode::FOUND, [("location", "/p?a&b")]).into_response(),
        })
        .start()
        .await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let options = FetchOptions {
        hop_leave: HopLeave::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        }),
        ..FetchOptions::default()
    };
    let (fetcher, url) = (
        fetcher(settings()),
        PageUrl::parse(&site.url("/p?b&a")).unwrap(),
    );
    assert_eq!(fetcher.fetch(&url, &options).await.unwrap().hops, 1);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_hop_whose_leave_does_not_come_in_time_is_not_made() {
    let site = Site::builder()
        .answer("/p", |_| {
            (axum::http::StatusCode::FOUND, [("location", "/p?a&b")]).into_response()
        })
        .start()
        .await;
    let options = FetchOptions {
        budget: Duration::from_millis(300),
        hop_leave: HopLeave::new(std::future::pending),
        ..FetchOptions::default()
    };
    let url = PageUrl::parse(&site.url("/p?b&a")).unwrap();
    let error = fetcher(settings()).fetch(&url, &options).await.unwrap_err();
    assert_eq!(
        (error.class(), error.is_host_level()),
        ("total_timeout", false)
    );
    assert_eq!(site.requests().len(), 1);
}
