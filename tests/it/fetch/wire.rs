//! Answers as they come over the wire: codings, cuts, rubbish.

use std::sync::{Arc, Mutex};

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
async fn a_compressed_bomb_ends_long_before_the_cap() {
    let bomb = gzip(&vec![b' '; 200 << 20]).await;
    let site = Site::builder()
        .answer("/", move |_| {
            ([("content-encoding", "gzip")], bomb.clone()).into_response()
        })
        .start()
        .await;
    let found = fetch(&site.url("/")).await.unwrap();
    assert_eq!(
        (found.body.len(), found.truncated),
        (1 << 20, Some(Truncated::Length))
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
    assert_eq!(class_of(&flood.url("/")).await, "header_limit");
    let long = format!("x-long: {}\r\n", "y".repeat(1 << 20));
    let long = RawListener::always(raw(&long, b"page")).await;
    assert_eq!(class_of(&long.url("/")).await, "header_limit");
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

#[tokio::test]
async fn a_bomb_of_ten_gigabytes_ends_when_its_head_is_known() {
    // 10,000 members of a megabyte each, a kilobyte on the wire.
    let bomb = gzip(&vec![b' '; 1 << 20]).await.repeat(10_000);
    assert!(bomb.len() as u64 <= settings().max_body_bytes + (1 << 20));
    let raw = RawListener::always(raw("content-encoding: gzip\r\n", &bomb)).await;
    let found = fetch(&raw.url("/")).await.unwrap();
    assert_eq!(
        (found.body.len(), found.truncated),
        (1 << 20, Some(Truncated::Length))
    );
    // Nobody waits for the ten megabytes.
    assert!(found.wire_bytes < 1 << 20, "{}", found.wire_bytes);
}

#[tokio::test]
async fn a_large_body_waits_for_room_and_is_tried_again_where_there_is_none() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let site = Site::builder()
        .page("/small", "x".repeat(200_000))
        .page("/large", "x".repeat(3_000_000))
        .answer("/coded", |_| {
            // As good as noise: what comes out is hardly more than what is sent.
            let noise: Vec<u8> = std::iter::successors(Some(1_u64), |n| {
                Some(n.wrapping_mul(6_364_136_223_846_793_005) + 1)
            })
            .map(|n| (n >> 56) as u8)
            .take(400_000)
            .collect();
            (
                [("content-encoding", "gzip")],
                futures_util::FutureExt::now_or_never(gzip(&noise)).unwrap(),
            )
                .into_response()
        })
        .start()
        .await;
    let patient = fetcher(settings());
    let hurried = fetcher(FetchSettings {
        total_timeout: Duration::from_secs(1),
        ..settings()
    });
    let ask = async |path: &str, has_room: bool| {
        let asked = Arc::clone(&asked);
        let room = BodyRoom::new(move |bytes| {
            asked.lock().unwrap().push(bytes);
            async move {
                if !has_room {
                    std::future::pending::<()>().await;
                }
            }
        });
        let options = FetchOptions {
            room,
            ..FetchOptions::default()
        };
        let fetcher = if has_room { &patient } else { &hurried };
        fetcher
            .fetch(&PageUrl::parse(&site.url(path)).unwrap(), &options)
            .await
    };
    let whole = async |path: &str| ask(path, true).await.unwrap().body.len();
    assert_eq!(whole("/small").await, 200_000);
    assert_eq!(whole("/large").await, 3_000_000);
    assert_eq!(whole("/coded").await, 400_000);
    let cap = usize::try_from(settings().max_body_bytes).unwrap();
    assert_eq!(*asked.lock().unwrap(), [3_000_000, cap]);
    // Others took the room: no answer is cut for that, it is asked for again.
    let error = ask("/large", false).await.unwrap_err();
    assert_eq!(error.disposition(), Disposition::Retry, "{error}");
    assert!(!error.is_host_level());
    assert!(
        error.to_string().contains("room for a large body"),
        "{error}"
    );
}

#[tokio::test]
async fn interim_answers_are_passed_over_and_a_flood_of_them_ends() {
    let hint = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";
    let (few, page) = (hint.repeat(3), raw("content-length: 4\r\n", b"page"));
    let few = RawListener::always([few.as_bytes(), &page].concat()).await;
    let found = fetch(&few.url("/")).await.unwrap();
    assert_eq!((found.status, &found.body[..]), (200, &b"page"[..]));
    assert_eq!(found.header("link"), None);

    let flood = RawListener::start(move |_| (hint.repeat(1000).into(), Then::Hang)).await;
    let impatient = FetchSettings {
        connect_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(100),
        ..settings()
    };
    let error = fetch_with(impatient, &flood.url("/")).await.unwrap_err();
    assert_eq!(error.class(), "idle_timeout");

    let upgrade = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n";
    let upgrade = RawListener::always(*upgrade).await;
    assert_eq!(class_of(&upgrade.url("/")).await, "malformed");
}

#[tokio::test]
async fn statuses_without_a_body_end_with_their_headers() {
    let raw = RawListener::start(|request| {
        let status = request.target().trim_start_matches('/').to_owned();
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 9\r\n\r\n");
        (answer.into_bytes(), Then::Hang)
    })
    .await;
    let found = fetch(&raw.url("/204")).await.unwrap();
    assert_eq!(
        (found.status, found.body.len(), found.truncated),
        (204, 0, None)
    );
    let empty = b"HTTP/1.1 205 X\r\ncontent-length: 0\r\n\r\n";
    let raw = RawListener::start(|_| (empty.to_vec(), Then::Hang)).await;
    let found = fetch(&raw.url("/")).await.unwrap();
    assert_eq!(
        (found.status, found.body.len(), found.truncated),
        (205, 0, None)
    );
}

#[tokio::test]
async fn a_part_that_nobody_asked_for_is_flagged_and_a_whole_in_one_part_is_not() {
    let raw = raw_listener(&[
        ("/part", b"HTTP/1.1 206 P\r\ncontent-range: bytes 0-3/9\r\ncontent-length: 4\r\n\r\npage"),
        ("/tail", b"HTTP/1.1 206 P\r\ncontent-range: bytes 5-8/9\r\ncontent-length: 4\r\n\r\npage"),
        ("/untold", b"HTTP/1.1 206 P\r\ncontent-length: 4\r\n\r\npage"),
        ("/huge", b"HTTP/1.1 206 P\r\ncontent-range: bytes 0-18446744073709551615/0\r\ncontent-length: 4\r\n\r\npage"),
        ("/whole", b"HTTP/1.1 206 P\r\ncontent-range: bytes 0-3/4\r\ncontent-length: 4\r\n\r\npage"),
        ("/ok", b"HTTP/1.1 200 OK\r\ncontent-range: bytes 0-3/9\r\ncontent-length: 4\r\n\r\npage"),
    ])
    .await;
    for target in ["/part", "/tail", "/untold", "/huge"] {
        let found = fetch(&raw.url(target)).await.unwrap();
        assert_eq!(found.truncated, Some(Truncated::Partial), "{target}");
        assert_eq!(found.body, "page", "{target}");
    }
    for target in ["/whole", "/ok"] {
        assert_eq!(
            fetch(&raw.url(target)).await.unwrap().truncated,
            None,
            "{target}"
        );
    }
}

#[tokio::test]
async fn a_304_that_nobody_asked_for_is_an_error_of_its_own() {
    let raw = RawListener::always(*b"HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n").await;
    let error = fetch(&raw.url("/")).await.unwrap_err();
    assert_eq!(
        (error.class(), error.disposition()),
        ("unasked_304", Disposition::Retry)
    );
    assert!(!error.is_host_level());
}

/// A field that has one value is believed where all lines say the same (Fetch standard, "extract header list values").
#[tokio::test]
async fn two_locations_count_if_they_are_equal_and_neither_does_if_they_differ() {
    let raw = raw_listener(&[
        (
            "/equal",
            b"HTTP/1.1 302 Found\r\nlocation: /one\r\nlocation: /one\r\ncontent-length: 0\r\n\r\n",
        ),
        (
            "/differing",
            b"HTTP/1.1 302 Found\r\nlocation: /one\r\nlocation: /two\r\ncontent-length: 0\r\n\r\n",
        ),
    ])
    .await;
    let equal = fetch(&raw.url("/equal")).await.unwrap();
    assert_eq!(equal.redirect_target().as_deref(), Some("/one"));
    let differing = fetch(&raw.url("/differing")).await.unwrap();
    assert_eq!((differing.status, differing.redirect_target()), (302, None));
}

#[tokio::test]
async fn of_two_content_types_the_last_counts() {
    let raw = raw_listener(&[(
        "/types",
        b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\npage",
    )])
    .await;
    let options = FetchOptions {
        wanted: pgcrawl::extract::is_wanted,
        ..FetchOptions::default()
    };
    let url = PageUrl::parse(&raw.url("/types")).unwrap();
    let found = fetcher(settings()).fetch(&url, &options).await.unwrap();
    assert_eq!(found.body, "page");
}

#[tokio::test]
async fn a_nul_among_the_headers_is_malformed() {
    // RFC 9110 §5.5 leaves no choice but to refuse it or to change it; browsers refuse.
    let raw = RawListener::always(raw("x-nul: a\0b\r\nconnection: close\r\n", b"page")).await;
    assert_eq!(class_of(&raw.url("/")).await, "malformed");
}

#[tokio::test]
async fn connections_are_kept_to_so_many_hosts_and_no_more() {
    async fn keeping() -> RawListener {
        let page = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage";
        RawListener::start(|_| (page.to_vec(), Then::KeepOpen)).await
    }
    let (first, second) = (keeping().await, keeping().await);
    let fetcher = fetcher(FetchSettings {
        kept_hosts: 1,
        ..settings()
    });
    for raw in [&first, &second, &first, &second] {
        let url = PageUrl::parse(&raw.url("/")).unwrap();
        fetcher.fetch(&url, &FetchOptions::default()).await.unwrap();
    }
    let connections = |raw: &RawListener| -> Vec<usize> {
        raw.requests()
            .iter()
            .map(|request| request.connection)
            .collect()
    };
    assert_eq!(
        (connections(&first), connections(&second)),
        (vec![0, 0], vec![0, 1])
    );
}

#[tokio::test]
async fn every_request_is_a_get() {
    let raw = RawListener::always(raw("content-length: 4\r\n", b"page")).await;
    fetch(&raw.url("/a.zip")).await.unwrap();
    assert!(
        raw.requests()
            .iter()
            .all(|request| request.head.starts_with("GET "))
    );
}
