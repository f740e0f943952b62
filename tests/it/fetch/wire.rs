//! Answers as they come over the wire: codings, cuts, rubbish.

use super::*;

/// An answer with these header lines and this body, closed after it.
fn raw(headers: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes(), body].concat()
}

async fn raw_listener(answers: &'static [(&'static str, &'static [u8])]) -> RawListener {
    RawListener::start(move |request| {
        let found = answers.iter().find(|answer| answer.0 == request.target());
        (found.expect("a known target").1.to_vec(), Then::Close)
    })
    .await
}

#[tokio::test]
async fn a_coded_body_comes_decoded_and_is_counted_as_sent() {
    let html = "<p>hello</p>".repeat(1000);
    let wire = gzip(html.as_bytes()).await;
    let sent = wire.len() as u64;
    let site = Site::builder()
        .answer("/", move |_| {
            ([("content-encoding", "X-GZip")], wire.clone()).into_response()
        })
        .start()
        .await;
    let found = fetch(&site.url("/")).await.unwrap();
    assert_eq!(found.body, html);
    assert_eq!((found.wire_bytes, found.coding), (sent, Coding::Decoded));
    assert_eq!(found.header("content-encoding").unwrap(), "X-GZip");
}

#[tokio::test]
async fn two_codings_in_a_row_are_both_undone() {
    let twice = gzip(&gzip(b"<a href=/after>").await).await;
    let site = Site::builder()
        .answer("/", move |_| {
            ([("content-encoding", "gzip, gzip")], twice.clone()).into_response()
        })
        .start()
        .await;
    assert_eq!(fetch(&site.url("/")).await.unwrap().body, "<a href=/after>");
}

#[tokio::test]
async fn a_compressed_bomb_ends_at_the_cap() {
    let bomb = gzip(&vec![b' '; 200 << 20]).await;
    let site = Site::builder()
        .answer("/", move |_| {
            ([("content-encoding", "gzip")], bomb.clone()).into_response()
        })
        .start()
        .await;
    let found = fetch(&site.url("/")).await.unwrap();
    let cap = settings().max_body_bytes;
    assert_eq!(
        (found.body.len() as u64, found.truncated),
        (cap, Some(Truncated::Length))
    );
}

#[tokio::test]
async fn a_compressed_body_that_just_stops_is_kept_and_flagged() {
    let page: String = (0..5000).map(|n| format!("<p>entry {n}</p>")).collect();
    let mut wire = gzip(page.as_bytes()).await;
    wire.truncate(wire.len() / 2);
    let raw = RawListener::always(raw("content-encoding: gzip\r\n", &wire)).await;
    let found = fetch(&raw.url("/")).await.unwrap();
    assert_eq!(found.truncated, Some(Truncated::Disconnect));
    assert!(found.body.len() > 1000 && page.as_bytes().starts_with(&found.body));
}

#[tokio::test]
async fn a_body_cut_short_is_an_error_and_not_a_page() {
    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n";
    let raw = raw_listener(&[
        ("/between", CHUNKED),
        (
            "/within",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        ),
        (
            "/length",
            b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello",
        ),
    ])
    .await;
    for target in ["/between", "/within", "/length"] {
        let error = fetch(&raw.url(target)).await.unwrap_err();
        assert_eq!(
            (error.class(), error.disposition()),
            ("incomplete", Disposition::Retry),
            "{target}"
        );
        assert!(!error.is_host_level(), "{target}");
    }
}

#[tokio::test]
async fn what_is_not_http_is_malformed_and_asked_for_once() {
    let raw = raw_listener(&[
        (
            "/chunk",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx",
        ),
        ("/09", b"<html>no status line at all</html>"),
        ("/ssh", b"SSH-2.0-OpenSSH_9.2\r\n"),
        (
            "/length",
            b"HTTP/1.1 200 OK\r\ncontent-length: abc\r\n\r\nhello",
        ),
        (
            "/lengths",
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        ),
    ])
    .await;
    for target in ["/chunk", "/09", "/ssh", "/length", "/lengths"] {
        let error = fetch(&raw.url(target)).await.unwrap_err();
        assert_eq!(
            (error.class(), error.disposition()),
            ("malformed", Disposition::Never),
            "{target}"
        );
    }
    assert_eq!(raw.requests().len(), 5);
}

#[tokio::test]
async fn two_equal_lengths_are_one() {
    let raw = raw_listener(&[
        (
            "/comma",
            b"HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\nhello",
        ),
        (
            "/lines",
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        ),
    ])
    .await;
    for target in ["/comma", "/lines"] {
        assert_eq!(
            fetch(&raw.url(target)).await.unwrap().body,
            "hello",
            "{target}"
        );
    }
}

#[tokio::test]
async fn rubbish_among_the_headers_does_not_cost_the_page() {
    let raw = raw_listener(&[
        (
            "/php",
            b"HTTP/1.1 200 OK\r\nPHP Warning: Startup: cannot load x in Unknown on line 0\r\n\
              content-type: text/html\r\nconnection: close\r\n\r\npage",
        ),
        ("/folded", b"HTTP/1.1 200 OK\r\nx-note: one\r\n two\r\nconnection: close\r\n\r\npage"),
        ("/quotes", b"HTTP/1.1 200 OK\r\n\xE2\x80\x9Cx\xE2\x80\x9D: y\r\nconnection: close\r\n\r\npage"),
        ("/space", b"HTTP/1.1 200 OK\r\nx-note : y\r\nconnection: close\r\n\r\npage"),
        ("/bytes", b"HTTP/1.1 200 OK\r\nlast-modified: 3. J\xE4nner\r\nx-a: \xC3\xA9\r\nconnection: close\r\n\r\npage"),
        ("/no-reason", b"HTTP/1.1 200\r\nconnection: close\r\n\r\npage"),
    ])
    .await;
    for target in [
        "/php",
        "/folded",
        "/quotes",
        "/space",
        "/bytes",
        "/no-reason",
    ] {
        assert_eq!(
            fetch(&raw.url(target)).await.unwrap().body,
            "page",
            "{target}"
        );
    }
    let found = fetch(&raw.url("/bytes")).await.unwrap();
    assert_eq!(found.header("last-modified").unwrap(), "3. Jänner");
    assert_eq!(found.header("x-a").unwrap(), "é");
    let folded = fetch(&raw.url("/folded")).await.unwrap();
    assert_eq!(folded.header("x-note").unwrap(), "one two");
    let space = fetch(&raw.url("/space")).await.unwrap();
    assert_eq!(space.header("x-note").unwrap(), "y");
    assert_eq!(
        fetch(&raw.url("/php"))
            .await
            .unwrap()
            .content_type()
            .unwrap(),
        "text/html"
    );
}

#[tokio::test]
async fn two_hundred_headers_are_fine_and_a_flood_of_them_is_an_error() {
    let lines = |count| {
        (0..count)
            .map(|n| format!("x-{n}: y\r\n"))
            .collect::<String>()
    };
    let few = RawListener::always(raw(&lines(200), b"page")).await;
    assert_eq!(fetch(&few.url("/")).await.unwrap().body, "page");
    let flood = RawListener::always(raw(&lines(5000), b"page")).await;
    assert_eq!(class_of(&flood.url("/")).await, "malformed");
}

#[tokio::test]
async fn a_page_without_a_content_type_is_kept_without_one() {
    let raw = RawListener::always(raw("connection: close\r\n", b"<html>")).await;
    let found = fetch(&raw.url("/")).await.unwrap();
    assert_eq!(
        (found.content_type(), &found.body[..]),
        (None, &b"<html>"[..])
    );
}

#[tokio::test]
async fn a_host_that_hangs_up_without_an_answer_is_asked_once() {
    for then in [Then::Close, Then::Reset] {
        let raw = RawListener::start(move |_| (Vec::new(), then)).await;
        let error = fetch(&raw.url("/")).await.unwrap_err();
        assert_eq!(
            (error.class(), error.is_host_level()),
            ("reset", true),
            "{then:?}"
        );
        assert_eq!(raw.requests().len(), 1, "{then:?}");
    }
}

#[tokio::test]
async fn a_kept_connection_that_turns_out_dead_is_replaced_unseen() {
    for then in [Then::Close, Then::Reset] {
        let raw = RawListener::start(move |request| match request.nth {
            0 => (
                b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage".to_vec(),
                Then::KeepOpen,
            ),
            _ => (Vec::new(), then),
        })
        .await;
        let (fetcher, url) = (fetcher(settings()), PageUrl::parse(&raw.url("/")).unwrap());
        for _ in 0..2 {
            let found = fetcher.fetch(&url, &FetchOptions::default()).await.unwrap();
            assert_eq!(found.body, "page");
        }
        let asked: Vec<_> = raw
            .requests()
            .iter()
            .map(|r| (r.connection, r.nth))
            .collect();
        assert_eq!(asked, [(0, 0), (0, 1), (1, 0)], "{then:?}");
    }
}

#[tokio::test]
async fn many_visits_share_a_fetcher_without_harm() {
    let site = Site::builder().page("/", "page").start().await;
    let (fetcher, url) = (fetcher(settings()), PageUrl::parse(&site.url("/")).unwrap());
    let visits = (0..100).map(|_| {
        let (fetcher, url) = (fetcher.clone(), url.clone());
        async move {
            fetcher
                .fetch(&url, &FetchOptions::default())
                .await
                .unwrap()
                .status
        }
    });
    assert_eq!(futures_util::future::join_all(visits).await, vec![200; 100]);
}
