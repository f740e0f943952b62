//! A crawl through proxies: what they do wrong is charged to nobody else.

use std::time::Duration;

use pgcrawl::crawl::Stop;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    real_proxies::RealProxy,
    site::Site,
};

#[tokio::test]
async fn a_proxy_that_is_gone_for_a_while_costs_neither_pages_nor_hosts_anything() {
    let Some(mut proxy) = RealProxy::stopped_http() else {
        return;
    };
    let site = Site::builder()
        .page("/", "<a href=/a>a</a><a href=/b>b</a>")
        .page("/a", "")
        .page("/b", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.fetch.proxies = vec![proxy.named("exit")];
    setup.fetch.proxy_rests = vec![Duration::from_millis(100)];
    // With the first failure of its own the host would be given up.
    setup.crawl.retry.robots_tries = 1;
    setup.crawl.retry.breaker_failures = 1;
    setup.crawl.retry.breaker_pauses = Vec::new();
    let pool = db.pool.clone();
    let repair = tokio::spawn(async move {
        let failed = "select coalesce(max(failed), 0) from proxies where state <> 'healthy'";
        while number(&pool, failed).await < 3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        proxy.run().await;
        proxy
    });
    setup.crawl(&db, &[site.url("/")]).await;
    assert!(
        repair.is_finished(),
        "the crawl gave up before the proxy was back"
    );
    drop(repair.await.unwrap());
    assert_eq!(site.targets().len(), 4, "robots.txt and three pages");
    assert_eq!(
        column(
            &db.pool,
            "select distinct status, reason, attempts from tasks"
        )
        .await,
        ["done,,1"]
    );
    assert_eq!(
        column(&db.pool, "select proxy, count(*) from pages group by proxy").await,
        ["exit,3"]
    );
    assert_eq!(
        column(
            &db.pool,
            "select label, state, failures, rests_until, requests - failed from proxies"
        )
        .await,
        ["exit,healthy,0,,4"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_page_that_is_known_stays_as_it_was_while_the_proxy_is_gone() {
    let site = Site::builder().page("/", "here").start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.crawl(&db, &[site.url("/")]).await;
    let page = "select http_status, error, error_detail, proxy from pages";
    let before = column(&db.pool, page).await;
    assert_eq!(before, ["200,,,"]);

    // Nobody listens there.
    setup.fetch.proxies = vec!["gone=http://127.0.0.1:9".to_owned()];
    setup.fetch.proxy_rests = vec![Duration::from_millis(10)];
    let crawl = setup.join(&db).await;
    crawl.refresh().await.unwrap();
    let stop = Stop::default();
    let drain = async {
        let deferred = "select max(deferrals) from tasks";
        while number(&db.pool, deferred).await == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop.drain.cancel();
    };
    let (summary, ()) = tokio::join!(crawl.run(stop.clone()), drain);
    summary.unwrap();
    crawl.leave().await;
    assert_eq!(column(&db.pool, page).await, before);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}
