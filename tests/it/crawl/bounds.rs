//! Every wait and every row of tries has an end, whatever fails.

use std::time::Duration;

use pgcrawl::crawl::End;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    site::{RawListener, Site, Then},
};

/// Tries of a page with [`Setup::quick`]: the first, and one after each of its three waits.
const TRIES: usize = 4;

/// F05 of the field cases, its waits scaled down.
#[tokio::test]
async fn one_dead_name_ends_by_its_class_and_does_not_keep_the_crawl_open() {
    let site = Site::builder()
        .page("/", "<a href=/a>a</a><a href=/b>b</a>")
        .page("/a", "")
        .page("/b", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.fetch.resolver = pgcrawl::fetch::Resolver::System;
    let seeds = ["http://no-such.invalid/".to_owned(), site.url("/")];
    let summary = setup.crawl(&db, &seeds).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!(
        number(&db.pool, "select count(*) from tasks where status = 'done'").await,
        3
    );
    // As many tries as names have waits, and one more: fewer than other failures get.
    assert_eq!(
        column(
            &db.pool,
            "select t.status, t.reason, p.error, t.attempts from tasks t join pages p on p.task_id = t.id where t.status <> 'done'"
        )
        .await,
        ["failed,dns,dns,3"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// F06 of the field cases: no class of failure escapes the counter.
#[tokio::test]
async fn each_class_of_failure_stops_at_its_bound_and_says_what_it_was() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n<title>";
    let reset = RawListener::start(move |_| (head.to_vec(), Then::Reset)).await;
    let silent = RawListener::start(|_| (Vec::new(), Then::Hang)).await;
    let unavailable = Site::builder().status("/", 503).start().await;
    let circle = Site::builder()
        .redirect("/", 302, "/round")
        .redirect("/round", 302, "/")
        .start()
        .await;
    let itself = Site::builder().redirect("/", 302, "/").start().await;

    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.fetch.total_timeout = Duration::from_millis(500);
    let seeds = [
        format!("http://{closed}/"),
        reset.url("/"),
        silent.url("/"),
        // Where no TLS is spoken.
        circle.url("/").replace("http:", "https:"),
        unavailable.url("/"),
        circle.url("/"),
        itself.url("/"),
    ];
    let summary = setup.crawl(&db, &seeds).await;
    assert_eq!(summary.end, End::Finished);

    let ended = async |seed: &str| {
        let row = format!(
            "select status, coalesce(reason, ''), attempts from tasks where url = '{seed}'"
        );
        column(&db.pool, &row).await.join("; ")
    };
    let ends = [
        ended(&seeds[0]).await,
        ended(&seeds[1]).await,
        ended(&seeds[2]).await,
        ended(&seeds[3]).await,
        ended(&seeds[4]).await,
        ended(&seeds[5]).await,
        ended(&seeds[6]).await,
    ];
    assert_eq!(
        ends,
        [
            "failed,refused,4",
            "failed,incomplete,4",
            "failed,total_timeout,4",
            "failed,tls_not_tls,1",
            "failed,http_503,4",
            "done,\"\",1",
            "failed,redirect_loop,1",
        ]
    );
    // What the other ends of the wire saw agrees.
    assert_eq!(reset.requests().len(), TRIES);
    assert_eq!(silent.requests().len(), TRIES);
    assert_eq!(unavailable.count("/"), TRIES);
    assert_eq!((circle.count("/"), circle.count("/round")), (1, 1));
    assert!(itself.requests().len() <= 6, "{:?}", itself.targets());
    assert_eq!(
        number(&db.pool, "select count(*) from tasks where status in ('new', 'claimed') or available_at is not null").await,
        0
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}
