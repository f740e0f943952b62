//! The link graph of a crawl, and pages that repeat others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use pgcrawl::crawl::LinkGraph;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    site::{Site, SiteBuilder},
};

/// Paths of both ends, without the site's own address.
const LINKS: &str = "select regexp_replace(v.url, '^http://[^/]*', ''), regexp_replace(coalesce(t.url, l.to_url), '^http://127[^/]*', ''), l.kind,
           case when l.nofollow then 'nofollow' else 'follow' end, l.to_task is not null, coalesce(l.anchor, '-')
    from links l join tasks v on v.id = l.from_task left join tasks t on t.id = l.to_task";

fn keeping(graph: LinkGraph) -> Setup {
    let mut setup = Setup::quick();
    setup.crawl.links = graph;
    setup
}

fn site() -> SiteBuilder {
    Site::builder()
        .robots("User-agent: *\nDisallow: /private/\n")
        .page(
            "/",
            "<link rel=canonical href=/home><a href=/a>to a</a><a href=/a>again</a><a href=/b rel=nofollow>b</a>\
             <a href=/unseen rel='nofollow ugc'>u</a><a href=/private/x>no</a><a href=http://other.invalid/x>out</a>",
        )
        .page("/a", "<a href=/>home</a><a href=/b>b</a><a href=/old>old</a>")
        .page("/b", "<meta name=robots content=nofollow><a href=/a>a</a>")
        .page("/home", "")
        .redirect("/old", 301, "/new")
        .redirect("/new", 302, "http://other.invalid/y")
}

const INTERNAL: [&str; 9] = [
    "/,/a,a,follow,t,\"to a\"",
    "/,/b,a,nofollow,t,b",
    "/,/home,canonical,follow,t,-",
    "/,/private/x,a,follow,t,no",
    "/a,/,a,follow,t,home",
    "/a,/b,a,follow,t,b",
    "/a,/old,a,follow,t,old",
    "/b,/a,a,nofollow,t,a",
    "/old,/new,redirect,follow,t,-",
];

#[tokio::test]
async fn links_from_page_to_page_have_their_kind_their_text_and_whether_they_are_followed() {
    let site = site().start().await;
    let db = TestDb::new().await;
    let setup = keeping(LinkGraph::Internal);
    setup.crawl(&db, &[site.url("/")]).await;
    // A withheld link leads to a task only where another one made it: /b is one once /a was read.
    let crawl = setup.join(&db).await;
    crawl.refresh().await.unwrap();
    crawl.run(Default::default()).await.unwrap();
    crawl.leave().await;
    assert_eq!(
        column(&db.pool, &format!("{LINKS} order by 1, 2")).await,
        INTERNAL
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn links_out_of_the_crawl_are_kept_with_their_urls_where_all_are() {
    let site = site().start().await;
    let db = TestDb::new().await;
    keeping(LinkGraph::All).crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        column(
            &db.pool,
            &format!("{LINKS} where l.to_task is null and l.to_url not like '%/b' order by 1, 2")
        )
        .await,
        [
            "/,/unseen,a,nofollow,f,u",
            "/,http://other.invalid/x,a,follow,f,out",
            "/new,http://other.invalid/y,redirect,follow,f,-",
        ]
    );
    assert_eq!(
        column(
            &db.pool,
            "select rel from links where rel is not null and to_url like '%unseen'"
        )
        .await,
        ["\"nofollow ugc\""]
    );
}

#[tokio::test]
async fn without_a_link_graph_no_link_is_kept_and_old_ones_go_with_the_next_visit() {
    let site = site().start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(number(&db.pool, "select count(*) from links").await, 0);
    for (graph, any) in [(LinkGraph::Internal, true), (LinkGraph::None, false)] {
        let crawl = keeping(graph).join(&db).await;
        crawl.refresh().await.unwrap();
        crawl.run(Default::default()).await.unwrap();
        crawl.leave().await;
        assert_eq!(
            number(&db.pool, "select count(*) from links").await > 0,
            any
        );
    }
}

#[tokio::test]
async fn a_304_keeps_the_links_and_another_link_graph_asks_for_the_whole_page() {
    let confirmed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&confirmed);
    let site = Site::builder()
        .answer("/", move |request| {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::CONTENT_TYPE,
                "text/html; charset=utf-8".parse().unwrap(),
            );
            headers.insert(header::ETAG, "\"1\"".parse().unwrap());
            if request.headers().contains_key(header::IF_NONE_MATCH) {
                count.fetch_add(1, Ordering::SeqCst);
                return (StatusCode::NOT_MODIFIED, headers).into_response();
            }
            (headers, "<a href=/a>a</a>").into_response()
        })
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    keeping(LinkGraph::None).crawl(&db, &[site.url("/")]).await;
    for (graph, unmodified) in [(LinkGraph::Internal, 0), (LinkGraph::Internal, 1)] {
        let crawl = keeping(graph).join(&db).await;
        crawl.refresh().await.unwrap();
        crawl.run(Default::default()).await.unwrap();
        crawl.leave().await;
        assert_eq!(confirmed.load(Ordering::SeqCst), unmodified);
        assert_eq!(column(&db.pool, LINKS).await, ["/,/a,a,follow,t,a"]);
    }
}

#[tokio::test]
async fn links_of_a_site_are_whole_after_several_processes_crawled_it() {
    const PAGES: usize = 300;
    let mut site = Site::builder();
    for n in 0..PAGES {
        let links: String = (1..=8)
            .map(|k| format!("<a href=/{}>p</a>", (n * k + k) % PAGES))
            .collect();
        site = site.page(&format!("/{n}"), &links);
    }
    let site = site.start().await;
    let db = TestDb::new().await;
    let setup = keeping(LinkGraph::Internal);
    let seeds = [site.url("/0"), site.url("/1")];
    tokio::join!(setup.crawl(&db, &seeds), setup.crawl(&db, &seeds[1..]));
    let wrong = "select t.url from pages p join tasks t on t.id = p.task_id
                 where p.links <> (select count(*) from links l join tasks d on d.id = l.to_task where l.from_task = p.task_id)";
    assert_eq!(column(&db.pool, wrong).await, Vec::<String>::new());
    assert!(number(&db.pool, "select count(*) from pages").await > 100);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_crawl_that_skips_the_links_of_copies_leaves_the_endless_site_it_is_led_into() {
    // Each page is the same, and links to a page below it.
    let mut site = Site::builder().page("/", "<a href=/x/>x</a>");
    for depth in 1..=6 {
        site = site.page(
            &format!("/{}", "x/".repeat(depth)),
            "the same<a href=x/>more</a>",
        );
    }
    let site = site.start().await;
    let db = TestDb::new().await;
    let mut setup = keeping(LinkGraph::Internal);
    setup.traps.max_repeats = 100;
    setup.frontier.skip_duplicate_links = true;
    setup.crawl(&db, &[site.url("/")]).await;
    let mut asked = site.targets();
    asked.sort_unstable();
    assert_eq!(asked, ["/", "/robots.txt", "/x/", "/x/x/"]);
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where duplicate_of is not null"
        )
        .await,
        1
    );
}
