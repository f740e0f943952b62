//! Operators at work while a crawl runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::response::{Html, IntoResponse as _};
use pgcrawl::{
    crawl::{Crawl, End, Stop, Summary},
    frontier::{
        Frontier,
        operate::{Change, Condition, Operator},
    },
};
use tokio::sync::Semaphore;

use super::{on, until};
use crate::support::{
    crawl::{Setup, broken_invariants, column, number, urls},
    db::TestDb,
    site::{RawListener, Recorded, Site, SiteBuilder, Then},
};

/// A page that answers when it is let: the crawl cannot end before.
fn gate(site: SiteBuilder) -> (SiteBuilder, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let site = site.route("/gate", move |_| {
        let opened = Arc::clone(&opened);
        async move {
            let _ = opened.acquire().await;
            Html("open").into_response()
        }
    });
    (site, gate)
}

fn operator(db: &TestDb, setup: &Setup) -> Operator {
    Operator::new(Frontier::new(db.pool.clone(), setup.frontier.clone()))
}

async fn begin(db: &TestDb, setup: &Setup, seeds: &[String]) -> Crawl {
    let crawl = setup.join(db).await;
    crawl.add_seeds(&urls(seeds)).await.unwrap();
    crawl
}

async fn run(crawl: Crawl, stop: Stop) -> Summary {
    let summary = crawl.run(stop).await.unwrap();
    crawl.leave().await;
    summary
}

async fn assert_sound(db: &TestDb) {
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_tasks_of_a_host_that_was_given_up_are_fetched_after_a_retry() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let ailing = RawListener::start(move |request| match request.target() {
        "/robots.txt" => (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
            Then::Close,
        ),
        _ if well.load(Ordering::Relaxed) => (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nfine".to_vec(),
            Then::Close,
        ),
        _ => (Vec::new(), Then::Reset),
    })
    .await;
    let (healthy, gate) = gate(Site::builder());
    let healthy = healthy.start().await;
    let db = TestDb::new().await;
    let setup = Setup::quick();
    let mut seeds: Vec<String> = (0..30).map(|n| ailing.url(&format!("/{n}"))).collect();
    seeds.push(healthy.url("/gate"));
    let crawl = begin(&db, &setup, &seeds).await;
    let operator = operator(&db, &setup);
    let order = async {
        until(
            &db,
            "select ((select count(*) from tasks where status = 'failed' and available_at is null) = 30)::int",
        )
        .await;
        assert_eq!(
            number(
                &db.pool,
                "select count(*) from hosts where given_up_at is not null"
            )
            .await,
            1
        );
        is_well.store(true, Ordering::Relaxed);
        let tally = operator
            .change(Change::Retry, &Condition::every(), &mut on)
            .await
            .unwrap();
        assert_eq!((tally.tasks, tally.hosts, tally.reopened), (30, 1, 1));
        until(
            &db,
            "select ((select count(*) from pages where http_status = 200) >= 30)::int",
        )
        .await;
        gate.add_permits(1);
    };
    let (summary, ()) = tokio::join!(run(crawl, Stop::default()), order);
    assert_eq!(summary.end, End::Finished);
    assert_eq!(summary.ending.unwrap().given_up_total, 0);
    assert_eq!(
        column(&db.pool, "select distinct status from tasks").await,
        ["done"]
    );
    assert_sound(&db).await;
}

#[tokio::test]
async fn what_is_excluded_while_the_crawl_runs_never_becomes_a_page() {
    let all: String = (0..80)
        .map(|n| format!("<a href=/keep/{n}>x</a><a href=/drop/{n}>x</a>"))
        .collect();
    let site = Site::builder()
        .page("/", all)
        .otherwise(|_| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Html("page").into_response()
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let setup = Setup::quick();
    let crawl = begin(&db, &setup, &[site.url("/")]).await;
    let operator = operator(&db, &setup);
    let order = async {
        site.wait_for(|log| log.len() > 30).await;
        let which = operator.condition("url like '%/drop/%'").await.unwrap();
        operator
            .change(Change::Exclude, &which, &mut on)
            .await
            .unwrap()
    };
    let (summary, tally) = tokio::join!(run(crawl, Stop::default()), order);
    assert_eq!(summary.end, End::Finished);
    assert!(tally.tasks > 0);
    let excluded = "select count(*) from tasks where status = 'excluded'";
    assert_eq!(number(&db.pool, excluded).await as u64, tally.tasks);
    assert_eq!(
        number(&db.pool, "select count(*) from pages p join tasks t on t.id = p.task_id where t.status = 'excluded'").await,
        0
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'done' and url like '%/keep/%'"
        )
        .await,
        80
    );
    assert_sound(&db).await;
}

#[tokio::test]
async fn a_paused_crawl_asks_nothing_also_after_a_restart_and_goes_on_when_it_is_resumed() {
    let all: String = (0..60).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let site = Site::builder()
        .page("/", all)
        .otherwise(|_| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Html("page").into_response()
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.per_host = 2;
    let operator = operator(&db, &setup);
    let stop = Stop::default();
    let crawl = begin(&db, &setup, &[site.url("/")]).await;
    let order = async {
        site.wait_for(|log| log.len() > 5).await;
        operator.pause().await.unwrap();
        stop.drain.cancel();
    };
    tokio::join!(run(crawl, stop.clone()), order);
    let asked = site.requests().len();
    assert!(asked < 60, "it was paused too late");

    let crawl = begin(&db, &setup, &[site.url("/")]).await;
    let order = async {
        // It works, since it says so, and was refused its claims all the while.
        until(&db, "select count(*) from worker_reports r join workers w on w.id = r.worker_id where w.stopped_at is null and r.reported_at > w.started_at + interval '1 s'").await;
        assert_eq!(site.requests().len(), asked);
        operator.resume().await.unwrap();
    };
    let (summary, ()) = tokio::join!(run(crawl, Stop::default()), order);
    assert_eq!(summary.end, End::Finished);
    assert_eq!(
        number(&db.pool, "select count(*) from tasks where status = 'done'").await,
        61
    );
    assert_sound(&db).await;
}

#[tokio::test]
async fn a_parked_host_is_left_alone_until_it_is_unparked() {
    let (busy, gate) = gate(Site::builder());
    let busy = busy.start().await;
    let quiet = Site::builder()
        .page("/", "<a href=/a>x</a>")
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let setup = Setup::quick();
    let operator = operator(&db, &setup);
    let crawl = begin(&db, &setup, &[busy.url("/gate"), quiet.url("/")]).await;
    let hosts = operator.find_hosts(&quiet.authority()).await.unwrap();
    operator.park(&hosts, "a test").await.unwrap();
    let order = async {
        busy.wait_for_request("/gate").await;
        assert!(quiet.requests().is_empty(), "{:?}", quiet.targets());
        operator.unpark(&hosts).await.unwrap();
        quiet.wait_for_request("/a").await;
        gate.add_permits(1);
    };
    let (summary, ()) = tokio::join!(run(crawl, Stop::default()), order);
    assert_eq!(summary.end, End::Finished);
    assert_sound(&db).await;
}

/// The gaps between requests, end to start.
fn gaps(requests: &[Recorded]) -> Vec<Duration> {
    requests
        .windows(2)
        .map(|pair| {
            pair[1]
                .started
                .saturating_duration_since(pair[0].ended.unwrap())
        })
        .collect()
}

#[tokio::test]
async fn a_longer_delay_counts_exactly_from_the_next_hold_on() {
    let all: String = (0..14).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let site = Site::builder()
        .page("/", all)
        .otherwise(|_| async { Html("page").into_response() })
        .start()
        .await;
    let db = TestDb::new().await;
    let (short, long) = (Duration::from_millis(30), Duration::from_millis(250));
    let mut setup = Setup::quick();
    setup.frontier.delay = short;
    setup.frontier.hold = 2 * short;
    let operator = operator(&db, &setup);
    let crawl = begin(&db, &setup, &[site.url("/")]).await;
    let order = async {
        let before = site.wait_for(|log| log.len() > 4).await.len();
        let hosts = operator.find_hosts(&site.authority()).await.unwrap();
        operator.set_delay(&hosts, Some(long)).await.unwrap();
        (before, site.requests().len())
    };
    let (_, (before, after)) = tokio::join!(run(crawl, Stop::default()), order);
    let gaps = gaps(&site.requests());
    assert!(gaps.iter().all(|gap| *gap >= short), "{gaps:?}");
    // What the hold of that moment has claimed, two tasks at most and two more in the stock, is fetched at the old pace.
    let settled = &gaps[(after + 3).min(gaps.len())..];
    assert!(settled.len() > 3, "{before} and {after} of {}", gaps.len());
    assert!(settled.iter().all(|gap| *gap >= long), "{gaps:?}");
    assert_sound(&db).await;
}

#[tokio::test]
async fn a_crawl_visits_a_host_s_pages_by_priority() {
    let site = Site::builder()
        .otherwise(|_| async { Html("page").into_response() })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.frontier.delay = Duration::from_millis(5);
    setup.frontier.hold = Duration::from_millis(5);
    let operator = operator(&db, &setup);
    let seeds: Vec<String> = (0..10).map(|n| site.url(&format!("/{n}"))).collect();
    let crawl = begin(&db, &setup, &seeds).await;
    for n in 0..10 {
        let which = operator
            .condition(&format!("url like '%/{n}'"))
            .await
            .unwrap();
        let priority = Change::Reprioritise((n * 7) % 10 - 5);
        operator.change(priority, &which, &mut on).await.unwrap();
    }
    run(crawl, Stop::default()).await;
    let order: Vec<String> = (0..10)
        .map(|place| format!("/{}", (place * 3) % 10))
        .collect();
    let pages: Vec<String> = site.targets();
    assert_eq!(pages, order);
}
