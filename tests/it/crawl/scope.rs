//! What belongs to a crawl: the operator's rules, hops outside, what is kept and counted of what does not.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::response::{Html, IntoResponse as _};
use pgcrawl::crawl::End;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    site::Site,
};

fn setup(rules: &[&str]) -> Setup {
    let mut setup = Setup::quick();
    setup.rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    setup
}

#[tokio::test]
async fn rules_decide_in_their_order_and_each_link_that_is_left_out_is_counted() {
    let site = Site::builder()
        .page("/", "<a href=/a/1>1</a><a href=/a/keep>k</a><a href=/b>b</a><a href=http://other.invalid/>o</a>")
        .page("/a/keep", "<a href=/a/1>1</a>")
        .page("/b", "")
        .start()
        .await;
    let db = TestDb::new().await;
    setup(&["exclude glob /a/**", "include glob /a/keep"])
        .crawl(&db, &[site.url("/")])
        .await;
    let mut targets = site.targets();
    targets.sort();
    assert_eq!(targets, ["/", "/a/keep", "/b", "/robots.txt"]);
    assert_eq!(number(&db.pool, "select count(*) from tasks").await, 3);
    assert_eq!(
        column(&db.pool, "select reason, links from rejections").await,
        ["scope_rule,2", "out_of_scope,1"]
    );
}

#[tokio::test]
async fn a_seed_is_visited_whatever_the_rules_say() {
    let site = Site::builder()
        .page("/", "<a href=/docs/a>a</a><a href=/x>x</a>")
        .page("/docs/a", "<a href=/>home</a>")
        .start()
        .await;
    let db = TestDb::new().await;
    setup(&["exclude glob /**", "include glob /docs/**"])
        .crawl(&db, &[site.url("/")])
        .await;
    assert_eq!((site.count("/"), site.count("/docs/a")), (1, 1));
    assert_eq!(site.count("/x"), 0);
}

#[tokio::test]
async fn a_media_type_that_a_rule_wants_is_read_and_one_that_it_leaves_out_is_not() {
    let site = Site::builder()
        .page("/", "<a href=/a>a</a><a href=/b>b</a>")
        .typed("/a", "image/png", "not really an image")
        .typed("/b", "text/plain", "some text")
        .start()
        .await;
    let db = TestDb::new().await;
    setup(&["include type image/*", "exclude type text/plain"])
        .crawl(&db, &[site.url("/")])
        .await;
    let read = "select right(t.url, 2), p.body_bytes, coalesce(p.truncated, '-') from pages p join tasks t on t.id = p.task_id where t.depth = 1 order by 1";
    let read = column(&db.pool, read).await;
    assert_eq!(read, ["/a,19,-", "/b,0,unwanted"]);
}

/// Four hosts in a row, each with a page that leads to the next and back.
async fn in_a_row() -> [Site; 4] {
    let d = Site::builder().page("/", "").start().await;
    let c = Site::builder()
        .page("/", format!("<a href={}>d</a>", d.url("/")))
        .start()
        .await;
    let b = Site::builder()
        .redirect("/go", 302, "/")
        .page(
            "/",
            format!("<a href={}>c</a><a href=/more>more</a>", c.url("/")),
        )
        .page("/more", "")
        .start()
        .await;
    let a = Site::builder()
        .page("/", format!("<a href={}>b</a>", b.url("/go")))
        .start()
        .await;
    [a, b, c, d]
}

#[tokio::test]
async fn one_extra_hop_fetches_what_pages_inside_link_to_and_none_of_its_links() {
    let [a, b, c, _d] = in_a_row().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.extra_hops = 1;
    setup.fetch.allow_private = true;
    setup.crawl(&db, &[a.url("/")]).await;
    // A redirect is no hop.
    assert_eq!((b.count("/go"), b.count("/")), (1, 1));
    assert_eq!((b.count("/more"), c.targets().len()), (0, 0));
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn two_extra_hops_are_counted_over_the_way_that_led_there() {
    let [a, b, c, d] = in_a_row().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.extra_hops = 2;
    setup.fetch.allow_private = true;
    setup.crawl(&db, &[a.url("/")]).await;
    assert_eq!((b.count("/more"), c.count("/")), (1, 1));
    assert_eq!(d.targets().len(), 0);
}

#[tokio::test]
async fn links_that_are_left_out_become_rows_where_they_are_wanted_and_come_in_from_nearer() {
    // /deep is found too deep first: /1 leads to it by a page between, and /slow directly, later.
    let site = Site::builder()
        .page("/", "<a href=/1>1</a><a href=/slow>s</a><a href=http://other.invalid/>o</a><a href=/no>n</a>")
        .page("/1", "<a href=/2>2</a>")
        .page("/2", "<a href=/deep>d</a>")
        .delay("/slow", std::time::Duration::from_millis(700), "<a href=/deep>d</a>")
        .page("/deep", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = setup(&["exclude glob /no"]);
    setup.traps.max_depth = 2;
    setup.crawl.keep_excluded = true;
    setup.frontier.obey_robots = false;
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!(
        column(
            &db.pool,
            "select reason, detail from tasks where status = 'excluded' order by 1"
        )
        .await,
        [
            "out_of_scope,\"no rule takes it in\"",
            "scope_rule,\"exclude glob /no\""
        ]
    );
    assert_eq!(site.count("/deep"), 1);
    assert_eq!(
        column(
            &db.pool,
            "select t.status, t.depth, right(v.url, 5) from tasks t join tasks v on v.id = t.via where t.url like '%/deep'"
        )
        .await,
        ["done,2,/slow"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_a_rule_left_out_afterwards_comes_in_from_nearer_without_rows_for_all() {
    let asked = AtomicUsize::new(0);
    let site = Site::builder()
        .otherwise(move |request| {
            let page = match request.uri().path() {
                // The second time it leads there itself.
                "/" if asked.fetch_add(1, Ordering::Relaxed) > 0 => "<a href=/deep>d</a>",
                "/" => "<a href=/a>a</a>",
                "/a" => "a <a href=/deep>d</a>",
                _ => "deep",
            };
            async move { Html(page).into_response() }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = setup(&[]);
    setup.frontier.obey_robots = false;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.count("/deep"), 1);
    // As `scope add` and `requeue` leave them.
    let sql = "delete from pages where task_id = (select id from tasks where url like '%/deep');
               update tasks set status = 'excluded', reason = 'scope_rule', detail = 'exclude depth >1' where url like '%/deep';
               update tasks set status = 'new', attempts = 0 where via is null";
    sqlx::raw_sql(sql).execute(&db.pool).await.unwrap();
    setup.rules = vec!["exclude depth >1".parse().unwrap()];
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.count("/deep"), 2);
    assert_eq!(
        column(
            &db.pool,
            "select t.status, t.depth, v.via is null from tasks t join tasks v on v.id = t.via where t.url like '%/deep'"
        )
        .await,
        ["done,1,t"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}
