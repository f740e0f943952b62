//! `pgcrawl explain`: what is thought and known of a URL.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::Value;

use crate::support::{
    db::TestDb,
    program::{ended, run},
    site::Site,
};

async fn explain(db: &TestDb, url: &str) -> Value {
    let output = run(db, &["explain", "--json", url]).await;
    let (code, said) = ended(&output);
    assert_eq!(code, 0, "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn is(found: &Value, chapter: &str, name: &str) -> String {
    found[chapter][name].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn it_tells_who_decided_how_a_url_was_found_and_what_came_of_it() {
    let site = Site::builder()
        .robots("# ours\nUser-agent: *\nDisallow: /no/ # private\nAllow: /no/but\n")
        .page("/", "<a href=/one>1</a>")
        .page(
            "/one",
            "<a href='/two?b=2&amp;a=1'>2</a><a href=/no/1>3</a>",
        )
        .page("/two", "<meta name=robots content=noai><title>Two</title>")
        .redirect("/moved", 301, "/there")
        .page("/there", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let seeds = [site.url("/"), site.url("/moved")];
    let output = run(&db, &["crawl", &seeds[0], &seeds[1], "--delay", "0s"]).await;
    let (code, said) = ended(&output);
    assert_eq!(code, 0, "{said}");

    let two = explain(&db, &site.url("/two?a=1&b=2#part")).await;
    assert_eq!(is(&two, "url", "asked for"), site.url("/two?a=1&b=2"));
    assert_eq!(is(&two, "task", "fetched_as"), site.url("/two?b=2&a=1"));
    assert_eq!(
        is(&two, "task", "found_by"),
        format!("{} → {}", site.url("/"), site.url("/one"))
    );
    assert_eq!(is(&two, "scope", "decision"), "belongs to the crawl");
    assert!(is(&two, "scope", "guards").starts_with("depth 2 of 20, "));
    assert_eq!(
        is(&two, "robots.txt", "decision"),
        "allowed: no rule speaks of it"
    );
    assert_eq!(is(&two, "last visit", "http_status"), "200");
    assert_eq!(is(&two, "last visit", "charset_from"), "header");
    assert!(is(&two, "last visit", "signals").contains("noai"));
    assert_eq!(is(&two, "host", "delay_ms"), "0");
    assert_eq!(is(&two, "last visit", "http_version"), "1.1");
    assert_eq!(is(&two, "last visit", "unchanged_since"), "");

    let forbidden = explain(&db, &site.url("/no/1")).await;
    assert_eq!(
        is(&forbidden, "robots.txt", "decision"),
        "forbidden by line 3: Disallow: /no/ # private"
    );
    assert_eq!(is(&forbidden, "task", "status"), "excluded");
    assert_eq!(is(&forbidden, "task", "detail"), "disallow: /no/");
    assert!(forbidden["last visit"].is_null());

    let unseen = explain(&db, &site.url("/no/but/unseen")).await;
    assert_eq!(
        is(&unseen, "robots.txt", "decision"),
        "allowed by line 4: Allow: /no/but"
    );
    assert!(unseen["task"].is_null());
    assert!(is(&unseen, "scope", "guards").starts_with("depth unknown of 20, "));

    let moved = explain(&db, &site.url("/moved")).await;
    assert_eq!(is(&moved, "task", "found_by"), "a seed");
    assert_eq!(is(&moved, "last visit", "redirect_to"), site.url("/there"));

    let trapped = explain(&db, &site.url("/a/a/a/a/")).await;
    assert_eq!(
        is(&trapped, "scope", "decision"),
        "does not belong to the crawl: repeated_segment"
    );
    let stranger = run(&db, &["explain", "https://example.org/"]).await;
    let stranger = String::from_utf8(stranger.stdout).unwrap();
    assert!(
        stranger.contains("robots.txt  not yet known: it is fetched before the first page"),
        "{stranger}"
    );
}

#[tokio::test]
async fn of_a_page_that_was_confirmed_it_tells_since_when_it_is_unchanged() {
    let site = Site::builder()
        .answer("/", |request| {
            let headers = [("etag", "\"1\""), ("content-type", "text/html")];
            match request.headers().contains_key("if-none-match") {
                true => (StatusCode::NOT_MODIFIED, headers).into_response(),
                false => (headers, "page").into_response(),
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let url = site.url("/");
    let mut visits = Vec::new();
    for more in [&["--delay", "0s"][..], &["--delay", "0s", "--refresh"]] {
        let arguments = [&["crawl", url.as_str()], more].concat();
        let (code, said) = ended(&run(&db, &arguments).await);
        assert_eq!(code, 0, "{said}");
        visits.push(explain(&db, &url).await);
    }
    let of = |visit: usize, name| is(&visits[visit], "last visit", name);
    assert_eq!(of(0, "unchanged_since"), "");
    assert_eq!(of(1, "unchanged_since"), of(0, "fetched_at"));
    assert_ne!(of(1, "fetched_at"), of(0, "fetched_at"));
    assert_eq!(of(1, "http_status"), "200");
}

/// A file that is had no more does not mean that all is allowed, and one that is old is not taken for a new one.
#[tokio::test]
async fn it_does_not_take_what_is_not_known_for_allowed() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /no\n")
        .start()
        .await;
    let db = TestDb::new().await;
    let all = ["crawl", &site.url("/no"), "--delay", "0s"];
    let (code, said) = ended(&run(&db, &all).await);
    assert_eq!(code, 7, "{said}");

    // As if the file had asked for it: to wait for that long is not for a test.
    for change in [
        "update robots set body = body || convert_to(E'Crawl-delay: 86400\\nContent-Usage: train-ai=n\\n', 'UTF8')",
        "update hosts set crawl_delay_ms = 300000",
    ] {
        sqlx::query(change).execute(&db.pool).await.unwrap();
    }
    let found = explain(&db, &site.url("/x")).await;
    assert_eq!(
        is(&found, "robots.txt", "crawl delay"),
        "5m, the most that is kept; it asks for 1day"
    );
    assert_eq!(is(&found, "robots.txt", "content usage"), "train-ai=n");
    assert_eq!(is(&found, "host", "crawl_delay_ms"), "300000");
    assert!(!is(&found, "robots.txt", "robots_until").is_empty());

    sqlx::query("update hosts set robots_until = now() - interval '1 hour'")
        .execute(&db.pool)
        .await
        .unwrap();
    let old = explain(&db, &site.url("/no")).await;
    assert!(is(&old, "robots.txt", "due").contains("counts no more"));
    assert!(is(&old, "robots.txt", "decision").starts_with("forbidden by line 2"));

    sqlx::query("update robots set http_status = 503")
        .execute(&db.pool)
        .await
        .unwrap();
    for path in ["/no", "/x"] {
        let lost = explain(&db, &site.url(path)).await;
        assert_eq!(
            is(&lost, "robots.txt", "decision"),
            "not known: nothing is fetched until it is had"
        );
        assert_eq!(is(&lost, "robots.txt", "http_status"), "503");
    }
}
