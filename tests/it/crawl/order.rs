//! In which order a crawl visits what it finds.

use std::time::Duration;

use axum::{
    http::{HeaderMap, HeaderValue, header::CONTENT_TYPE},
    response::{Html, IntoResponse as _},
};
use pgcrawl::{frontier::Seed, schedule::Order};

use crate::support::{
    crawl::{Setup, broken_invariants, column, number, urls},
    db::TestDb,
    site::{Site, SiteBuilder},
};

/// One visit at a time, each in the database before the next is claimed.
fn one_by_one(order: Order) -> Setup {
    let mut setup = Setup::quick();
    setup.crawl.concurrency = 1;
    setup.crawl.per_host = 1;
    setup.crawl.linger = Duration::ZERO;
    setup.crawl.order = order;
    // No more of a host is claimed than fits into the hold.
    setup.frontier.delay = Duration::from_millis(150);
    setup.frontier.hold = setup.frontier.delay;
    setup
}

/// The order in which pages were asked for.
async fn visited(setup: &Setup, site: &Site, seeds: &[&str]) -> Vec<String> {
    let db = TestDb::new().await;
    let seeds: Vec<String> = seeds.iter().map(|path| site.url(path)).collect();
    setup.crawl(&db, &seeds).await;
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
    let mut targets = site.targets();
    targets.retain(|target| !target.ends_with(".txt") && !target.ends_with(".xml"));
    targets
}

/// A tree of two branches, three deep.
fn tree() -> SiteBuilder {
    Site::builder()
        .page("/", "<a href=/a>x</a><a href=/b>x</a>")
        .page("/a", "<a href=/a/1>x</a>")
        .page("/b", "<a href=/b/1>x</a>")
        .page("/a/1", "<a href=/a/1/1>x</a>")
        .page("/b/1", "<a href=/b/1/1>x</a>")
        .page("/a/1/1", "")
        .page("/b/1/1", "")
}

fn depth(target: &str) -> usize {
    target.split('/').filter(|part| !part.is_empty()).count()
}

#[tokio::test]
async fn a_crawl_goes_breadth_first_unless_it_is_told_otherwise() {
    assert_eq!(Order::default(), Order::BreadthFirst);
    let site = tree().start().await;
    let found = visited(&one_by_one(Order::default()), &site, &["/"]).await;
    let depths: Vec<usize> = found.iter().map(|target| depth(target)).collect();
    assert_eq!(depths, [0, 1, 1, 2, 2, 3, 3], "{found:?}");
}

/// What is found late, by a retry, at depth 1 comes before what was found early at depth 20.
#[tokio::test]
async fn a_near_page_that_is_found_late_comes_before_far_ones() {
    let html = [(CONTENT_TYPE, HeaderValue::from_static("text/html"))];
    let html: HeaderMap = html.into_iter().collect();
    let late = vec![
        (503, Default::default(), String::new()),
        (200, html, "<a href=/near>x</a>".to_owned()),
    ];
    let site = Site::builder()
        .sequence("/late", late)
        .page("/near", "")
        .page("/", "<a href=/d1>x</a>");
    let db = TestDb::new().await;
    let pool = db.pool.clone();
    // The chain goes on when the retry is due.
    let mut site = site.route("/d20", move |_| {
        let pool = pool.clone();
        async move {
            let waits = "select count(*) from tasks where url like '%/late' and status = 'failed'";
            while number(&pool, waits).await > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Html("<a href=/d21>x</a>").into_response()
        }
    });
    for n in (1..40).filter(|n| *n != 20) {
        site = site.page(&format!("/d{n}"), format!("<a href=/d{}>x</a>", n + 1));
    }
    let site = site.page("/d40", "").start().await;
    let mut setup = one_by_one(Order::default());
    setup.frontier.delay = Duration::from_millis(30);
    setup.traps.max_depth = 60;
    setup.crawl.recycle_every = Duration::from_millis(50);
    setup.crawl(&db, &[site.url("/late"), site.url("/")]).await;
    let targets = site.targets();
    let at = |target: &str| targets.iter().position(|one| one == target).unwrap();
    let again = targets.iter().rposition(|one| one == "/late").unwrap();
    assert!(again < at("/d40"), "the retry came in time: {targets:?}");
    // At most what was claimed already comes between.
    assert!(at("/near") <= again + 4, "{targets:?}");
}

/// What each page of the tree was given as its place.
async fn places(order: Order, seeds: [(&str, i16); 2]) -> Vec<String> {
    let site = tree().start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.order = order;
    let crawl = setup.join(&db).await;
    let urls = urls(&seeds.map(|(path, _)| site.url(path)));
    let seeds: Vec<Seed> = urls
        .into_iter()
        .zip(seeds)
        .map(|(url, (_, priority))| Seed { priority, ..url })
        .collect();
    crawl.add_seeds(&seeds).await.unwrap();
    crawl.run(Default::default()).await.unwrap();
    crawl.leave().await;
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
    let places = "select substring(url from '^http://[^/]*(.*)$'), priority from tasks order by 1";
    column(&db.pool, places).await
}

/// Claims go by the place; that what is claimed is visited in its order is the stock's.
#[tokio::test]
async fn the_order_of_a_crawl_is_counted_on_from_page_to_page() {
    let seeds = [("/b", 0), ("/a", 0)];
    for (order, expected) in [
        (
            Order::BreadthFirst,
            ["/a,0", "/a/1,1", "/a/1/1,2", "/b,0", "/b/1,1", "/b/1/1,2"],
        ),
        (
            Order::DepthFirst,
            [
                "/a,0",
                "/a/1,-1",
                "/a/1/1,-2",
                "/b,0",
                "/b/1,-1",
                "/b/1/1,-2",
            ],
        ),
        (
            Order::Seeds,
            ["/a,1", "/a/1,1", "/a/1/1,1", "/b,0", "/b/1,0", "/b/1/1,0"],
        ),
    ] {
        assert_eq!(places(order, seeds).await, expected, "{order}");
    }
}

#[tokio::test]
async fn the_priority_of_a_seed_goes_on_to_what_it_leads_to() {
    assert_eq!(
        places(Order::BreadthFirst, [("/a", 100), ("/b", -5)]).await,
        [
            "/a,100",
            "/a/1,101",
            "/a/1/1,102",
            "/b,-5",
            "/b/1,-4",
            "/b/1/1,-3"
        ]
    );
}

#[tokio::test]
async fn what_a_sitemap_calls_important_and_new_comes_first() {
    let map = "<urlset><url><loc>/old</loc><lastmod>2001-01-01</lastmod></url><url><loc>/new</loc><lastmod>2024-01-01</lastmod></url>\
        <url><loc>/least</loc><priority>0.1</priority><lastmod>2024-01-01</lastmod></url><url><loc>/first</loc><priority>1.0</priority></url></urlset>";
    let site = Site::builder()
        .page("/", "<a href=/linked>x</a>")
        .typed("/map.xml", "text/xml", map)
        .page("/linked", "")
        .page("/old", "")
        .page("/new", "")
        .page("/least", "")
        .page("/first", "")
        .start()
        .await;
    let found = visited(&one_by_one(Order::Sitemap), &site, &["/map.xml", "/"]).await;
    assert_eq!(found, ["/", "/first", "/new", "/old", "/least", "/linked"]);
}

#[tokio::test]
async fn what_was_linked_before_a_sitemap_names_it_comes_when_the_sitemap_says() {
    let map = "<urlset><url><loc>/old</loc><lastmod>2001-01-01</lastmod></url><url><loc>/best</loc><priority>1.0</priority></url></urlset>";
    let site = Site::builder()
        .page("/", "<a href=/linked>x</a><a href=/best>x</a>")
        .typed("/map.xml", "text/xml", map)
        .page("/linked", "")
        .page("/old", "")
        .page("/best", "")
        .start()
        .await;
    let found = visited(&one_by_one(Order::Sitemap), &site, &["/", "/map.xml"]).await;
    assert_eq!(found, ["/", "/best", "/old", "/linked"]);
}

#[tokio::test]
async fn each_link_to_a_page_moves_it_ahead_in_the_order_by_links() {
    let to = |names: &[&str]| -> String {
        names
            .iter()
            .map(|name| format!("<a href=/{name}>x</a>"))
            .collect()
    };
    let site = Site::builder()
        .page("/s1", to(&["one", "two", "three", "three", "s2"]))
        .page("/s2", to(&["three", "two"]))
        .page("/s3", to(&["three"]))
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.order = Order::InLinks;
    // The seeds, which one claim takes, and no page that they lead to.
    setup.crawl.max_pages = Some(3);
    setup
        .crawl(&db, &[site.url("/s1"), site.url("/s2"), site.url("/s3")])
        .await;
    let order = "select substring(url from '[^/]*$'), priority from tasks where status = 'new' order by priority";
    assert_eq!(
        column(&db.pool, order).await,
        ["three,-3", "two,-2", "one,-1"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_huge_host_does_not_starve_a_small_one() {
    let many: String = (0..400).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let huge = Site::builder()
        .otherwise(move |request| {
            let page = format!("<title>{}</title>{many}", request.uri());
            async move { axum::response::IntoResponse::into_response(axum::response::Html(page)) }
        })
        .start()
        .await;
    let small = Site::builder()
        .page("/", "<a href=/1>x</a>")
        .page("/1", "<a href=/2>x</a>")
        .page("/2", "<a href=/3>x</a>")
        .page("/3", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    // Each host one request at a time, whatever it has in store.
    setup.crawl.per_host = 1;
    setup.crawl.concurrency = 4;
    let crawl = setup.join(&db).await;
    crawl.add_seeds(&urls(&[huge.url("/")])).await.unwrap();
    let crawling = crawl.run(Default::default());
    let seen = async {
        // The huge one has all its tasks by then.
        huge.wait_for(|log| log.len() > 20).await;
        crawl.add_seeds(&urls(&[small.url("/")])).await.unwrap();
        small.wait_for_request("/3").await;
        huge.requests().len()
    };
    let (ended, asked) = tokio::join!(crawling, seen);
    ended.unwrap();
    crawl.leave().await;
    assert!(asked < 400, "{asked} of the huge one came first");
}
