//! robots.txt in a crawl: asked for first, kept for all, never taken for granted.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use pgcrawl::crawl::End;

use crate::support::{
    crawl::{Setup, column, number},
    db::TestDb,
    site::Site,
};

/// R03 of the field cases.
#[tokio::test]
async fn robots_that_answers_429_is_asked_again_before_any_page() {
    let mut patience = HeaderMap::new();
    patience.insert("retry-after", HeaderValue::from_static("1"));
    let site = Site::builder()
        .sequence(
            "/robots.txt",
            vec![
                (429, patience.clone(), String::new()),
                (429, patience, String::new()),
                (
                    200,
                    HeaderMap::new(),
                    "User-agent: *\nAllow: /\n".to_owned(),
                ),
            ],
        )
        .page("/", "<a href=/a>a</a>")
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.retry.robots_wait = Duration::from_millis(100);
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!(
        site.targets(),
        ["/robots.txt", "/robots.txt", "/robots.txt", "/", "/a"]
    );
    let requests = site.requests();
    assert!(requests[1].started - requests[0].started >= Duration::from_secs(1));
    assert!(requests[2].started - requests[1].started >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_host_whose_robots_cannot_be_had_is_given_up_and_named() {
    let site = Site::builder()
        .status("/robots.txt", 503)
        .page("/", "")
        .start()
        .await;
    let healthy = Site::builder()
        .page("/", "<title>Healthy</title>")
        .start()
        .await;
    let db = TestDb::new().await;
    let summary = Setup::quick()
        .crawl(&db, &[site.url("/"), site.url("/2"), healthy.url("/")])
        .await;
    assert_eq!(site.targets(), ["/robots.txt"; 4]);
    let ending = summary.ending.unwrap();
    assert_eq!(
        ending.given_up,
        [(site.authority(), "robots.txt answered 503".to_owned())]
    );
    assert_eq!(
        column(&db.pool, "select reason from tasks where status = 'failed'").await,
        ["robots_unreachable"; 2]
    );
    assert_eq!(
        column(&db.pool, "select title from pages where http_status = 200").await,
        ["Healthy"]
    );
}

#[tokio::test]
async fn robots_is_kept_in_its_table_and_not_asked_for_by_a_second_run() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /no\nSitemap: http://map.invalid/s.xml\n")
        .page("/", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    Setup::quick().crawl(&db, &[site.url("/no/1")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/"]);
    assert_eq!(
        column(&db.pool, "select detail from tasks where reason = 'robots'").await,
        ["\"disallow: /no\""]
    );
    assert_eq!(
        column(&db.pool, "select sitemaps[1] from robots").await,
        ["http://map.invalid/s.xml"]
    );
}

#[tokio::test]
async fn a_crawl_that_ignores_robots_neither_asks_nor_obeys() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /\n")
        .page("/", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.targets(), ["/"]);
}

#[tokio::test]
async fn links_that_are_known_to_be_forbidden_become_rows_and_no_requests() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /no\n")
        .page(
            "/",
            "<a href=/no/1>1</a><a href=/no/2>2</a><a href=/yes>3</a>",
        )
        .page("/yes", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let summary = Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/", "/yes"]);
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'excluded' and claim_version = 0"
        )
        .await,
        2
    );
    assert_eq!(summary.counts.excluded, 0);
}
