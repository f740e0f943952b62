//! A server that vanishes and leaves its sockets open: nothing waits for it for ever.

use std::time::Duration;

use pgcrawl::db::DbSettings;
use rustix::process::Signal;

use super::{ALL, Stage, web};
use crate::support::crawl::{broken_invariants, number};
use crate::support::db::TestDb;
use crate::support::program::{ended, pgcrawl, signal};
use crate::support::wire::{Cut, Wire};

/// What hangs never comes; all else comes long before this.
const NEVER: Duration = Duration::from_secs(60);

async fn stage(max_connections: u32) -> Stage {
    Stage::with(&DbSettings {
        max_connections,
        statement_timeout: Duration::from_millis(500),
        ..DbSettings::default()
    })
    .await
}

/// Fails instead of hanging.
async fn soon<T>(deed: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, deed)
        .await
        .expect("it waits for ever")
}

#[tokio::test]
async fn a_statement_that_gets_no_answer_is_repeated_on_another_connection() {
    let stage = stage(8).await;
    let me = stage.worker(1).await;
    stage.seed(me, &["https://a.example/"]).await;
    let claim = include_str!("../../../src/frontier/sql/claim.sql");
    stage.wire.arm(claim, Cut::Silent);
    let claim = soon(stage.frontier.claim(me, ALL)).await.unwrap();
    assert_eq!(claim.hosts[0].tasks[0].attempt, 1);
    assert_eq!(
        broken_invariants(&stage.db.pool).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn idle_connections_that_went_silent_hold_nobody_up() {
    let stage = stage(4).await;
    let me = stage.worker(1).await;
    let many = || async {
        let all = (0..8).map(|_| stage.frontier.next_ready());
        for one in futures_util::future::join_all(all).await {
            one.unwrap();
        }
    };
    many().await;
    stage.wire.silence();
    soon(many()).await;
    assert!(soon(stage.frontier.beat(me)).await.unwrap());
}

#[tokio::test]
async fn a_connection_that_goes_silent_on_its_way_back_does_not_keep_its_place_in_the_pool() {
    let stage = stage(1).await;
    for _ in 0..2 {
        stage.frontier.next_ready().await.unwrap();
        // It is being asked for a sign of life now, and that is the pool's only place.
        stage.wire.silence();
        soon(stage.frontier.next_ready()).await.unwrap();
    }
}

#[tokio::test]
async fn new_connections_that_get_no_answer_are_given_up_and_tried_again() {
    let stage = Stage::with(&DbSettings {
        connect_timeout: Duration::from_millis(500),
        ..DbSettings::default()
    })
    .await;
    stage.wire.silence_all();
    let asking = stage.frontier.next_ready();
    let mending = async {
        // One that was given up is followed by another.
        let made = stage.wire.connections();
        while stage.wire.connections() < made + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stage.wire.mend();
        // What was silent speaks again, unless it was given up.
        stage.wire.silence();
    };
    let (answer, ()) = soon(async { tokio::join!(asking, mending) }).await;
    answer.unwrap();
}

const ARGUMENTS: [&str; 6] = [
    "crawl",
    "--delay",
    "0s",
    "--per-host",
    "4",
    "--database-url",
];

#[tokio::test]
async fn a_crawl_goes_on_when_its_connections_go_silent_and_others_can_be_had() {
    let site = web(100, Duration::from_millis(10)).start().await;
    let db = TestDb::new().await;
    let wire = Wire::to(&db).await;
    let child = pgcrawl(
        &db,
        &[&ARGUMENTS[..], &[&wire.url(), &site.url("/")]].concat(),
    )
    .env("PGCRAWL_DATABASE_STATEMENT_TIMEOUT", "1s")
    .spawn()
    .unwrap();
    site.wait_for(|log| log.len() > 40).await;
    wire.silence();
    let (code, said) = ended(&soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 0, "{said}");
    let pages = "select count(*) from pages where http_status = 200";
    assert_eq!(number(&db.pool, pages).await, 101, "{said}");
    assert_eq!(site.requests().len(), 102, "{said}");
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_crawl_leaves_though_its_server_is_silent_in_the_middle_of_a_commit() {
    let site = web(100, Duration::from_millis(10)).start().await;
    let db = TestDb::new().await;
    let wire = Wire::to(&db).await;
    let child = pgcrawl(
        &db,
        &[&ARGUMENTS[..], &[&wire.url(), &site.url("/")]].concat(),
    )
    .env("PGCRAWL_SHUTDOWN_GRACE", "1s")
    .spawn()
    .unwrap();
    site.wait_for(|log| log.len() > 40).await;
    let finish = include_str!("../../../src/frontier/sql/finish.sql");
    wire.arm(finish, Cut::Silent);
    while wire.is_armed() {
        tokio::task::yield_now().await;
    }
    wire.silence_all();
    signal(&child, Signal::TERM);
    let (code, said) = ended(&soon(child.wait_with_output()).await.unwrap());
    assert!(matches!(code, 5 | 8), "{code}: {said}");
}
