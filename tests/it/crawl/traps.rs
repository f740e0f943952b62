//! Endless spaces of URLs end, and budgets are kept.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::response::{Html, IntoResponse as _};
use pgcrawl::crawl::{Budget, End, Stop};

use crate::support::{
    crawl::{Setup, broken_invariants, column, number, urls},
    db::TestDb,
    site::{Site, SiteBuilder},
};

/// A site that answers any path, with what is made of that.
fn anything(page: fn(&str) -> String) -> SiteBuilder {
    Site::builder().otherwise(move |request| {
        let target = request.uri().to_string();
        async move { Html(page(&target)).into_response() }
    })
}

fn number_at_the_end(target: &str) -> usize {
    let number = target.rsplit('/').next();
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Crawls such a site beside one of three pages, which must not suffer.
async fn beside_a_small_site(trap: SiteBuilder, seed: &str) -> (TestDb, Site) {
    let trap = trap.start().await;
    let small = Site::builder()
        .page("/", "<a href=/a>a</a><a href=/b>b</a>")
        .page("/a", "")
        .page("/b", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    let summary = setup.crawl(&db, &[trap.url(seed), small.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!(small.targets().len(), 3);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
    (db, trap)
}

/// T02 of the field cases.
#[tokio::test]
async fn a_link_without_scheme_that_stacks_up_ends_and_says_why() {
    let site = anything(|_| "<a href=www.partner.test/pol/>partner</a>".to_owned());
    let (db, site) = beside_a_small_site(site, "/p/").await;
    let stacked = |target: &String| target.matches("www.partner.test").count() > 3;
    assert!(!site.targets().iter().any(stacked), "{:?}", site.targets());
    assert_eq!(
        column(
            &db.pool,
            "select reason from tasks where status = 'excluded'"
        )
        .await,
        ["repeated_segment"]
    );
}

/// T05 of the field cases.
#[tokio::test]
async fn a_path_that_is_one_deeper_on_each_page_ends() {
    let site = anything(|target| format!("depth {target} <a href={target}1/>on</a>"));
    let (_, site) = beside_a_small_site(site, "/d/1/").await;
    assert_eq!(site.targets(), ["/d/1/", "/d/1/1/", "/d/1/1/1/"]);
}

/// T06 of the field cases.
#[tokio::test]
async fn a_query_that_each_page_echoes_escaped_once_more_ends() {
    let site = anything(|target| {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let escaped = query.replace('&', "&amp;amp;");
        format!("<a href=\"?{escaped}&amp;x=1\">on</a>")
    });
    let (db, site) = beside_a_small_site(site, "/?a=1&b=2").await;
    let targets = site.targets();
    assert!((2..=6).contains(&targets.len()), "{targets:?}");
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where reason in ('nested_escapes', 'repeated_parameter')"
        )
        .await,
        1
    );
}

/// A site with this many pages below its front page, all linked there.
fn flat(pages: usize, body: fn(usize) -> String) -> SiteBuilder {
    let all: String = (0..pages)
        .map(|n| format!("<a href=/{n}>{n}</a>"))
        .collect();
    (0..pages).fold(Site::builder().page("/", all), |site, n| {
        site.page(&format!("/{n}"), body(n))
    })
}

#[tokio::test]
async fn a_calendar_whose_pages_say_the_same_is_parked_and_products_are_not() {
    let (park, parked) = tokio::sync::watch::channel(false);
    let asked = AtomicUsize::new(0);
    let site = Site::builder()
        .otherwise(move |request| {
            let (target, mut parked) = (request.uri().to_string(), parked.clone());
            let is_day = target.starts_with("/cal/");
            let days = asked.fetch_add(usize::from(is_day), Ordering::Relaxed);
            async move {
                let n: usize = number_at_the_end(&target);
                // Nobody waits for the detector, so the site does.
                if is_day && days >= 300 {
                    let _ = parked.wait_for(|parked| *parked).await;
                }
                let page = match target.as_str() {
                    "/" => ["p", "cal"]
                        .iter()
                        .zip([150, 600])
                        .flat_map(|(name, all)| {
                            (0..all).map(move |n| format!("<a href=/{name}/{n}>x</a>"))
                        })
                        .collect(),
                    product if product.starts_with("/p/") => format!("product {n}"),
                    _ => format!("nothing on {}", n % 3),
                };
                Html(page).into_response()
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.frontier.delay = std::time::Duration::from_millis(15);
    setup.crawl.per_host = 1;
    let looking = tokio::spawn({
        let pool = db.pool.clone();
        async move {
            while number(&pool, "select count(*) from trap_shapes").await == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            let _ = park.send(true);
        }
    });
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    let fetched = |prefix: &str| {
        let targets = site.targets();
        targets.iter().filter(|t| t.starts_with(prefix)).count()
    };
    assert_eq!(fetched("/p/"), 150);
    looking.await.unwrap();
    let days = fetched("/cal/");
    assert!((100..320).contains(&days), "{days} days of the calendar");
    assert_eq!(
        column(
            &db.pool,
            "select shape, different, parked_at is not null from trap_shapes"
        )
        .await,
        ["/cal/#,3,t"]
    );
    assert_eq!(
        column(
            &db.pool,
            "select reason, detail, count(*) from tasks where status = 'excluded' group by 1, 2"
        )
        .await,
        [format!("trap_shape,/cal/#,{}", 600 - days)]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_budget_of_pages_is_kept_over_processes_and_a_greater_one_goes_on() {
    let site = flat(120, |n| format!("page {n}")).start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.crawl.concurrency = 4;
    setup.crawl.budget = Budget {
        pages: Some(50),
        ..Budget::default()
    };
    let (one, two) = (setup.join(&db).await, setup.join(&db).await);
    one.add_seeds(&urls(&[site.url("/")])).await.unwrap();
    let (first, second) = tokio::join!(one.run(Stop::default()), two.run(Stop::default()));
    assert_eq!(first.unwrap().end, End::Limit);
    assert_eq!(second.unwrap().end, End::Limit);
    one.leave().await;
    two.leave().await;
    let asked = site.targets().len();
    // Claims of the same moment may take two more each.
    assert!((50..=54).contains(&asked), "{asked} requests");
    let made = "select sum(done + failed + retried) from worker_counts";
    assert_eq!(number(&db.pool, made).await, asked as i64);
    // Used up, it lets nobody fetch anything.
    let again = setup.join(&db).await;
    assert_eq!(again.run(Stop::default()).await.unwrap().end, End::Limit);
    again.leave().await;
    assert_eq!(site.targets().len(), asked);
    setup.crawl.budget.pages = Some(500);
    let more = setup.join(&db).await;
    assert_eq!(more.run(Stop::default()).await.unwrap().end, End::Finished);
    more.leave().await;
    assert_eq!(site.targets().len(), 121);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn budgets_of_bytes_and_of_time_end_a_crawl() {
    let site = flat(400, |_| "x".repeat(10_000)).start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.frontier.delay = std::time::Duration::from_millis(20);
    setup.crawl.per_host = 1;
    setup.crawl.budget.bytes = Some(50_000);
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Limit);
    let bytes = number(&db.pool, "select sum(bytes) from worker_counts").await;
    assert!(bytes >= 50_000, "{bytes}");
    assert!(site.targets().len() < 400, "{}", site.targets().len());

    setup.crawl.budget.bytes = None;
    setup.crawl.budget.duration = Some(std::time::Duration::from_millis(1));
    let before = site.targets().len();
    let late = setup.join(&db).await;
    assert_eq!(late.run(Stop::default()).await.unwrap().end, End::Limit);
    late.leave().await;
    assert_eq!(site.targets().len(), before);
}

#[tokio::test]
async fn a_host_gives_as_many_pages_as_its_budget_and_another_one_all_of_its_own() {
    let large = flat(60, |n| format!("page {n}")).start().await;
    let small = flat(5, |n| format!("page {n}")).start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.frontier.delay = std::time::Duration::from_millis(1);
    setup.crawl.per_host = 1;
    setup.crawl.budget.pages_per_host = Some(20);
    let summary = setup.crawl(&db, &[large.url("/"), small.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!((large.targets().len(), small.targets().len()), (20, 6));
    assert_eq!(
        column(
            &db.pool,
            "select reason, detail, count(*) from tasks where status = 'excluded' group by 1, 2"
        )
        .await,
        ["host_pages,\"budget.pages_per_host = 20\",41"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_is_in_stock_of_a_host_uses_none_of_its_pages_before_it_is_begun() {
    let site = flat(300, |n| format!("page {n}")).start().await;
    let db = TestDb::new().await;
    // Without a delay: further claims join what is in stock.
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.crawl.budget.pages_per_host = Some(100);
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!(site.targets().len(), 100);
    let left = "select count(*) from tasks where reason = 'host_pages'";
    assert_eq!(number(&db.pool, left).await, 201);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn no_more_urls_of_a_host_become_tasks_than_its_budget_has() {
    let large = flat(60, |n| format!("page {n} <a href=/more/{n}>more</a>"))
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.crawl.budget.urls_per_host = Some(70);
    let summary = setup.crawl(&db, &[large.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    // All of the first page's links, and nine of the others.
    assert_eq!(number(&db.pool, "select count(*) from tasks").await, 70);
    assert_eq!(
        column(&db.pool, "select reason, links from rejections").await,
        ["host_urls,51"]
    );
}
