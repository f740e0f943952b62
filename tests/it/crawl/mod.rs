//! The crawl of one process, against local sites.

mod answers;
mod assets;
mod blocks;
mod bounds;
mod ending;
mod hostile;
mod links;
mod order;
mod politeness;
mod proxies;
mod redirects;
mod revisits;
mod robots;
mod scope;
mod seeds;
mod sitemaps;
mod together;
mod traps;
mod troubles;
mod urls;

use axum::response::IntoResponse as _;
use pgcrawl::crawl::End;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    site::{RawListener, Site, Then},
};

#[tokio::test]
async fn a_crawl_visits_what_its_seed_leads_to_once_and_ends() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /private/\n")
        .page("/", "<title>Home</title><a href=/a>a</a><a href=/b#x>b</a><a href=/private/x>no</a><a href=http://other.invalid/>out</a>")
        .page("/a", "<title>A</title><a href=/>home</a><a href=/b>b</a><a href=/gone>gone</a>")
        .page("/b", "<title>B</title><a href=/old>old</a>")
        .redirect("/old", 301, "/new")
        .page("/new", "<title>New</title>")
        .start()
        .await;
    let db = TestDb::new().await;
    let summary = Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    let mut asked = site.targets();
    asked.sort_unstable();
    assert_eq!(
        asked,
        ["/", "/a", "/b", "/gone", "/new", "/old", "/robots.txt"]
    );
    assert_eq!(
        site.targets().first().map(String::as_str),
        Some("/robots.txt")
    );
    let titles = column(
        &db.pool,
        "select title from pages where http_status = 200 order by title",
    )
    .await;
    assert_eq!(titles, ["A", "B", "Home", "New"]);
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'excluded' and reason = 'robots'"
        )
        .await,
        1
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 404"
        )
        .await,
        1
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_second_run_of_a_finished_crawl_fetches_nothing() {
    let site = Site::builder()
        .page("/", "<a href=/a>a</a>")
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    let first = site.requests().len();
    let summary = Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!(site.requests().len(), first);
    assert_eq!(summary.counts.done, 0);
}

#[tokio::test]
async fn a_refreshed_crawl_visits_everything_once_more() {
    let site = Site::builder()
        .page("/", "<a href=/a>a</a>")
        .page("/a", "<title>A</title>")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    let crawl = Setup::quick().join(&db).await;
    assert_eq!(crawl.refresh().await.unwrap(), 2);
    crawl.run(Default::default()).await.unwrap();
    crawl.leave().await;
    assert_eq!((site.count("/"), site.count("/a")), (2, 2));
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_page_row_tells_what_was_served() {
    let html = "<html lang=de><title>T\u{e4}</title><meta name=description content=D><h1>H</h1><link rel=canonical href=/c>";
    let site = Site::builder()
        .answer("/", move |_| {
            let headers = [
                ("content-type", "text/html; charset=utf-8"),
                ("etag", "\"1\""),
                ("set-cookie", "secret=1"),
                ("x-powered-by", "tests"),
            ];
            (headers, html).into_response()
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.keep_bodies = true;
    setup.crawl(&db, &[site.url("/")]).await;
    let row = "select title, description, h1, lang, charset, charset_from, etag, host(ip), body_bytes from pages where title is not null";
    let expected = format!(
        "T\u{e4},D,H,de,UTF-8,header,\"\"\"1\"\"\",127.0.0.1,{}",
        html.len()
    );
    assert_eq!(column(&db.pool, row).await, [expected]);
    assert_eq!(
        column(
            &db.pool,
            "select canonical_url from pages where title is not null"
        )
        .await,
        [site.url("/c")]
    );
    let headers = "select string_agg(k, ' ' order by k) from pages, jsonb_object_keys(headers) k where title is not null and k like 'set-%' or k like 'x-%'";
    assert_eq!(column(&db.pool, headers).await, ["x-powered-by"]);
    assert_eq!(
        number(&db.pool, "select count(*) from pages p where p.title is not null and p.digest = sha256((select body from bodies b where b.task_id = p.task_id))").await,
        1
    );
}

#[tokio::test]
async fn nul_bytes_and_endless_titles_lose_no_page() {
    let site = Site::builder()
        .page(
            "/",
            "<a href=/nul>a</a><a href=/long>b</a><a href='/%00'>c</a>",
        )
        .page("/nul", "<title>a\0b</title>\0")
        .page("/long", format!("<title>{}</title>", "x".repeat(100_000)))
        .page("/%00", "<title>path</title>")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.keep_bodies = true;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 200"
        )
        .await,
        4
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from bodies where position('\\x00'::bytea in body) > 0"
        )
        .await,
        1
    );
}

#[tokio::test]
async fn nul_and_broken_bytes_in_all_places_lose_neither_the_page_nor_its_batch() {
    const ROOT: &[u8] = b"<a href=/good0>a</a><a href='/nul%00?\0=\0'>b</a><a href=/good1>c</a><a href=/header>d</a>";
    const PAGE: &[u8] = b"<html lang='d\0e'><title>a\0\xFFb</title><h1>\0</h1><meta name=description content='\xC3\0'>\0<link rel=canonical href='/\0'>";
    let raw = RawListener::start(|request| {
        let (fields, body): (&[u8], &[u8]) = match request.target() {
            "/robots.txt" => (b"content-type: text/plain\r\n", b"User-agent: *\n\0\xFF: \0\n"),
            "/" => (b"content-type: text/html; charset=utf-8\r\n", ROOT),
            _ => (
                b"content-type: text/html; charset=utf-8\r\netag: \"\xFF\"\r\nx-bytes: \x80\xFF\r\n",
                PAGE,
            ),
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", body.len());
        let answer = [head.as_bytes(), fields, b"\r\n", body].concat();
        (answer, Then::KeepOpen)
    })
    .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.keep_bodies = true;
    // All that the first page leads to in one batch.
    setup.crawl.linger = std::time::Duration::from_millis(500);
    setup.crawl(&db, &[raw.url("/")]).await;
    assert_eq!(
        column(
            &db.pool,
            "select status, count(*) from tasks group by status"
        )
        .await,
        ["done,6"]
    );
    // In an attribute NUL is U+FFFD (WHATWG HTML §13.2.5.37), so the canonical of these pages is another one.
    assert_eq!(
        column(
            &db.pool,
            "select distinct canonical_url like '%/%EF%BF%BD' from pages where canonical_url is not null"
        )
        .await,
        ["t"]
    );
    assert_eq!(
        column(
            &db.pool,
            "select distinct title, charset, charset_from from pages where title is not null"
        )
        .await,
        ["a\u{fffd}b,UTF-8,header"]
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from bodies where position('\\x00'::bytea in body) > 0"
        )
        .await,
        6
    );
}

#[tokio::test]
async fn two_processes_share_a_crawl_and_fetch_nothing_twice() {
    let pages = 60;
    let mut builder = Site::builder();
    let all: String = (0..pages)
        .map(|n| format!("<a href=/p{n}>{n}</a>"))
        .collect();
    builder = builder.page("/", all.clone());
    for n in 0..pages {
        builder = builder.page(&format!("/p{n}"), all.clone());
    }
    let site = builder.start().await;
    let db = TestDb::new().await;
    let (setup, seeds) = (Setup::quick(), [site.url("/")]);
    let (one, two) = tokio::join!(setup.crawl(&db, &seeds), setup.crawl(&db, &seeds));
    assert_eq!(one.counts.done + two.counts.done, pages + 1);
    assert_eq!(site.requests().len() as u64, pages + 2);
    assert_eq!(site.count("/robots.txt"), 1);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// F09 of the field cases.
#[tokio::test]
async fn a_url_longer_than_an_index_entry_costs_only_itself() {
    let mut links: String = (0..49).map(|n| format!("<a href=/{n}>x</a>")).collect();
    // Such as no compression brings below the 2,704 bytes of an index entry.
    let long: String = rand::random_iter::<u32>()
        .take(750)
        .map(|part| format!("{part:08x}"))
        .collect();
    links.push_str(&format!("<a href=/long?{long}>x</a>"));
    let site = Site::builder()
        .page("/", links)
        .otherwise(|_| async { axum::response::Html("page").into_response() })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.traps.max_url_length = 10_000;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 200"
        )
        .await,
        51
    );
}

/// L13 and F09 of the field cases: a skip by a stated limit is a row.
#[tokio::test]
async fn a_url_above_the_limit_is_left_out_with_its_reason() {
    let long = format!("/l?x={}", "A".repeat(3_000));
    let site = Site::builder()
        .page(
            "/",
            format!("<a href='{long}'>x</a><a href=/a/a/a/a/a>y</a><a href=/tail>z</a>"),
        )
        .page("/tail", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/", "/tail"]);
    let reasons = "select reason from tasks where status = 'excluded' order by reason";
    assert_eq!(
        column(&db.pool, reasons).await,
        ["repeated_segment", "url_length"]
    );
}
