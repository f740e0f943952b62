//! What fails, and what becomes of it.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse as _;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    site::{RawListener, Site, Then},
};

const NO_ROBOTS: &[u8] =
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_page_that_answers_503_for_ever_is_tried_four_times_and_fails() {
    let site = Site::builder()
        .page("/", "<a href=/bad>x</a>")
        .status("/bad", 503)
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.count("/bad"), 4);
    assert_eq!(
        column(
            &db.pool,
            "select status, reason, attempts from tasks where reason is not null"
        )
        .await,
        ["failed,http_503,4"]
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 503"
        )
        .await,
        1
    );
}

#[tokio::test]
async fn a_page_that_recovers_is_done() {
    let site = Site::builder()
        .sequence(
            "/",
            vec![
                (500, HeaderMap::new(), String::new()),
                (200, HeaderMap::new(), "fine".to_owned()),
            ],
        )
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        column(&db.pool, "select status, attempts from tasks").await,
        ["done,2"]
    );
}

/// H16 of the field cases: the host waits, and no attempt is charged.
#[tokio::test]
async fn a_429_moves_the_host_and_is_not_charged_to_the_page() {
    let mut patience = HeaderMap::new();
    patience.insert("retry-after", HeaderValue::from_static("1"));
    let site = Site::builder()
        .page("/", "<a href=/a>a</a><a href=/b>b</a>")
        .sequence(
            "/a",
            vec![
                (429, patience, String::new()),
                (200, HeaderMap::new(), "fine".to_owned()),
            ],
        )
        .page("/b", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.per_host = 1;
    setup.crawl(&db, &[site.url("/")]).await;
    let requests = site.requests();
    let refused = requests
        .iter()
        .position(|request| request.target == "/a")
        .unwrap();
    let next = requests.get(refused + 1).unwrap();
    assert!(next.started - requests[refused].started >= Duration::from_secs(1));
    assert_eq!(
        column(
            &db.pool,
            "select attempts, deferrals from tasks where url like '%/a'"
        )
        .await,
        ["1,1"]
    );
}

/// F05 and F06: a dead host ends, by its breaker, and the crawl with it.
#[tokio::test]
async fn a_host_that_resets_every_connection_is_given_up_and_the_others_are_crawled() {
    let dead = RawListener::start(|request| match request.target() {
        "/robots.txt" => (NO_ROBOTS.to_vec(), Then::Close),
        _ => (Vec::new(), Then::Reset),
    })
    .await;
    let healthy = Site::builder()
        .page("/", "<a href=/a>a</a>")
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut seeds: Vec<String> = (0..20).map(|n| dead.url(&format!("/{n}"))).collect();
    seeds.push(healthy.url("/"));
    let summary = Setup::quick().crawl(&db, &seeds).await;
    assert_eq!(summary.ending.unwrap().given_up_total, 1);
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'failed' and available_at is null"
        )
        .await,
        20
    );
    assert_eq!(
        number(&db.pool, "select count(*) from tasks where status = 'done'").await,
        2
    );
    assert!(
        dead.requests().len() <= 1 + 20 * 4,
        "{}",
        dead.requests().len()
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_does_not_resolve_fails_by_its_class_and_the_crawl_ends() {
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.fetch.resolver = pgcrawl::fetch::Resolver::System;
    let summary = setup
        .crawl(&db, &["http://no-such-host.invalid/".to_owned()])
        .await;
    let ending = summary.ending.unwrap();
    assert_eq!(ending.given_up_total, 1);
    assert!(!ending.any_page);
    assert_eq!(column(&db.pool, "select error from robots").await, ["dns"]);
}

/// F04: the end waits for what is in flight.
#[tokio::test]
async fn the_crawl_does_not_end_while_a_page_in_flight_may_add_links() {
    let slow = Duration::from_millis(400);
    let site = Site::builder()
        .delay("/", slow, "<a href=/b>b</a>")
        .delay("/b", slow, "<a href=/c>c</a>")
        .page("/c", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let (setup, seeds) = (Setup::quick(), [site.url("/")]);
    tokio::join!(setup.crawl(&db, &seeds), setup.crawl(&db, &seeds));
    assert_eq!(site.count("/c"), 1);
}

#[tokio::test]
async fn a_host_that_answers_429_to_everything_is_given_up() {
    let mut patience = HeaderMap::new();
    patience.insert("retry-after", HeaderValue::from_static("0"));
    let site = Site::builder()
        .page("/robots.txt", "")
        .otherwise(move |_| {
            let patience = patience.clone();
            async move { (axum::http::StatusCode::TOO_MANY_REQUESTS, patience).into_response() }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let seeds: Vec<String> = (0..30).map(|n| site.url(&format!("/{n}"))).collect();
    let mut setup = Setup::quick();
    setup.crawl.per_host = 1;
    let summary = setup.crawl(&db, &seeds).await;
    assert_eq!(summary.ending.unwrap().given_up_total, 1);
    assert!(site.requests().len() < 15, "{}", site.requests().len());
    let reasons = "select distinct reason from tasks where status = 'failed'";
    assert_eq!(column(&db.pool, reasons).await, ["host_down"]);
}
