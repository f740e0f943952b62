//! The crawl of one process, against local sites.

use pgcrawl::crawl::End;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    site::Site,
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
