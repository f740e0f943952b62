//! How a run ends: limits, signals, and what they leave behind.

use std::time::Duration;

use pgcrawl::crawl::{End, Stop};

use crate::support::{
    crawl::{Setup, broken_invariants, number, urls},
    db::TestDb,
    site::Site,
};

/// A site of a hundred slow pages.
async fn slow_site(each: Duration) -> Site {
    let all: String = (0..100).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    (0..100)
        .fold(Site::builder().page("/", all), |site, n| {
            site.delay(&format!("/{n}"), each, format!("<title>{n}</title>"))
        })
        .start()
        .await
}

#[tokio::test]
async fn the_greatest_number_of_pages_is_exact_and_the_next_run_goes_on() {
    let site = slow_site(Duration::from_millis(1)).await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.max_pages = Some(7);
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!((summary.end, summary.counts.done), (End::Limit, 7));
    assert_eq!(site.requests().len(), 1 + 7);
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'claimed'"
        )
        .await,
        0
    );
    setup.crawl.max_pages = None;
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!((summary.end, summary.counts.done), (End::Finished, 94));
    assert_eq!(site.requests().len(), 1 + 101);
}

#[tokio::test]
async fn links_below_the_greatest_depth_are_left_alone() {
    let site = (0..6)
        .fold(Site::builder(), |site, n| {
            site.page(&format!("/{n}"), format!("<a href=/{}>x</a>", n + 1))
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.traps.max_depth = 2;
    setup.crawl(&db, &[site.url("/0")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/0", "/1", "/2"]);
}

#[tokio::test]
async fn the_longest_duration_ends_a_run() {
    let site = slow_site(Duration::from_millis(300)).await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.per_host = 1;
    setup.crawl.max_duration = Some(Duration::from_millis(500));
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Limit);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_and_gives_the_rest_back_uncounted() {
    let site = slow_site(Duration::from_millis(300)).await;
    let db = TestDb::new().await;
    let crawl = Setup::quick().join(&db).await;
    crawl.add_seeds(&urls(&[site.url("/")])).await.unwrap();
    let stop = Stop::default();
    let drain = async {
        site.wait_for(|log| log.len() > 4).await;
        stop.drain.cancel();
    };
    let (summary, ()) = tokio::join!(crawl.run(stop.clone()), drain);
    crawl.leave().await;
    let summary = summary.unwrap();
    assert_eq!(summary.end, End::Interrupted);
    // Each page that was asked for is done: nothing in flight was thrown away.
    assert_eq!(summary.counts.done, site.requests().len() as u64 - 1);
    let open = "select count(*) from tasks where status = 'new' and attempts = 0 and expiries = 0";
    assert_eq!(
        number(&db.pool, open).await,
        101 - summary.counts.done as i64
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_abort_gives_back_what_is_in_flight_at_once() {
    let site = slow_site(Duration::from_secs(60)).await;
    let db = TestDb::new().await;
    let crawl = Setup::quick().join(&db).await;
    crawl.add_seeds(&urls(&[site.url("/")])).await.unwrap();
    let stop = Stop::default();
    let abort = async {
        site.wait_for(|log| log.len() > 4).await;
        stop.abort.cancel();
    };
    let (summary, ()) = tokio::join!(crawl.run(stop.clone()), abort);
    crawl.leave().await;
    assert_eq!(summary.unwrap().end, End::Interrupted);
    let left =
        "select count(*) from tasks where status <> 'done' and (status <> 'new' or attempts > 0)";
    assert_eq!(number(&db.pool, left).await, 0);
}

#[tokio::test]
async fn the_grace_bounds_a_drain() {
    let site = slow_site(Duration::from_secs(60)).await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.grace = Duration::from_millis(100);
    let crawl = setup.join(&db).await;
    crawl.add_seeds(&urls(&[site.url("/")])).await.unwrap();
    let stop = Stop::default();
    let drain = async {
        site.wait_for(|log| log.len() > 4).await;
        stop.drain.cancel();
    };
    let (summary, ()) = tokio::join!(crawl.run(stop.clone()), drain);
    crawl.leave().await;
    assert_eq!(summary.unwrap().counts.done, 1);
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'claimed'"
        )
        .await,
        0
    );
}

#[tokio::test]
async fn tasks_that_robots_forbids_do_not_count_as_pages() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /no\n")
        .page("/1", "")
        .page("/2", "")
        .page("/3", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.max_pages = Some(2);
    let mut seeds: Vec<String> = (0..6).map(|n| site.url(&format!("/no/{n}"))).collect();
    seeds.extend((1..4).map(|n| site.url(&format!("/{n}"))));
    let summary = setup.crawl(&db, &seeds).await;
    assert_eq!((summary.end, summary.counts.done), (End::Limit, 2));
}

#[tokio::test]
async fn a_limit_that_is_just_what_there_was_is_an_end() {
    let site = Site::builder()
        .page("/", "<a href=/a>a</a>")
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.max_pages = Some(2);
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
}
