//! Nothing stays lost: leases that ended, workers that died, pages that kill.

use std::time::Duration;

use pgcrawl::frontier::FrontierSettings;

use super::{Ground, done, failed, settings};
use crate::support::crawl::number;

#[tokio::test]
async fn a_task_whose_lease_is_over_is_new_again() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let first = ground.claim_task(me).await;
    assert_eq!(ground.frontier.recycle().await.unwrap(), 0);
    ground.leases_end().await;
    assert_eq!(ground.frontier.recycle().await.unwrap(), 1);
    let second = ground.claim_task(me).await;
    assert_eq!(
        (second.attempt, second.claim_version),
        (2, first.claim_version + 1)
    );
}

#[tokio::test]
async fn a_task_that_loses_its_lease_again_waits() {
    let ground = Ground::with(FrontierSettings {
        spread: Duration::from_secs(1_000),
        ..settings()
    })
    .await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    for _ in 0..2 {
        let task = ground.claim_task(me).await;
        assert!(ground.frontier.begin(me, &task).await.unwrap());
        ground.leases_end().await;
        ground.frontier.recycle().await.unwrap();
    }
    assert_eq!(
        ground
            .column("select status, reason is not null from tasks")
            .await,
        ["failed,t"]
    );
    let wait = ground
        .number("select extract(epoch from available_at - now()) * 1000 from tasks")
        .await;
    assert!(wait <= 2_000_000, "{wait}");
    assert!(!ground.frontier.finished().await.unwrap());
    ground.waits_end().await;
    ground.frontier.promote().await.unwrap();
    ground.claim_task(me).await;
}

#[tokio::test]
async fn a_task_that_loses_too_many_leases_in_a_row_is_poison() {
    let ground = Ground::with(FrontierSettings {
        max_expiries: 3,
        ..settings()
    })
    .await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    for _ in 0..3 {
        let task = ground.claim_task(me).await;
        assert!(ground.frontier.begin(me, &task).await.unwrap());
        ground.leases_end().await;
        ground.frontier.recycle().await.unwrap();
        ground.waits_end().await;
        ground.frontier.promote().await.unwrap();
    }
    assert_eq!(
        ground
            .column("select status, reason, expiries, available_at from tasks")
            .await,
        ["failed,poison,3,"]
    );
    assert!(ground.frontier.finished().await.unwrap());
}

#[tokio::test]
async fn the_late_heartbeat_of_a_worker_that_was_declared_dead_is_refused() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    assert!(ground.frontier.beat(me).await.unwrap());
    ground
        .typed("update workers set heartbeat = now() - interval '1 day'")
        .await;
    // Silence alone is not death: it is declared.
    assert!(ground.frontier.beat(me).await.unwrap());
    ground
        .typed("update workers set heartbeat = now() - interval '1 day'")
        .await;
    ground.frontier.recycle().await.unwrap();
    assert!(!ground.frontier.beat(me).await.unwrap());
}

#[tokio::test]
async fn the_tasks_of_a_dead_worker_are_open_again_and_its_hosts_free_after_the_delay() {
    let ground = Ground::with(FrontierSettings {
        delay: Duration::from_secs(7),
        ..settings()
    })
    .await;
    let (dead, other) = (ground.worker("dead").await, ground.worker("other").await);
    ground.seed(dead, &["https://a.example/"]).await;
    let task = ground.claim_task(dead).await;
    assert!(ground.host_ms("ready_at").await > 100_000);
    ground
        .typed("update workers set heartbeat = now() - interval '1 day' where name = 'dead'")
        .await;
    assert_eq!(ground.frontier.recycle().await.unwrap(), 1);
    // It may have been fetching until now.
    let wait = ground.host_ms("ready_at").await;
    assert!((5_000..=7_000).contains(&wait), "{wait}");
    assert_eq!(
        ground.column("select status, expiries from tasks").await,
        ["new,1"]
    );
    assert_eq!(ground.finish(dead, &[done(&task)]).await, [false]);
    ground.waits_end().await;
    let again = ground.claim_task(other).await;
    assert_eq!(ground.finish(other, &[done(&again)]).await, [true]);
    assert_eq!(
        ground
            .column("select name, cleared_at is null from workers order by id")
            .await,
        ["dead,f", "other,t"]
    );
}

#[tokio::test]
async fn a_worker_whose_process_is_gone_is_buried_at_once() {
    let ground = Ground::new().await;
    let (dead, me) = (ground.worker("dead").await, ground.worker("me").await);
    ground.seed(dead, &["https://a.example/"]).await;
    ground.claim_task(dead).await;
    let neighbours = ground.frontier.neighbours("a machine", me).await.unwrap();
    assert_eq!(
        neighbours
            .iter()
            .map(|worker| worker.id)
            .collect::<Vec<_>>(),
        [dead]
    );
    assert!(
        ground
            .frontier
            .neighbours("another", me)
            .await
            .unwrap()
            .is_empty()
    );
    ground.frontier.bury(&[dead]).await.unwrap();
    assert_eq!(ground.frontier.recycle_dead().await.unwrap(), 1);
    assert!(
        ground
            .frontier
            .neighbours("a machine", me)
            .await
            .unwrap()
            .is_empty()
    );
    ground.claim_task(me).await;
    assert!(ground.frontier.beat(me).await.unwrap());
}

#[tokio::test]
async fn what_a_worker_that_left_had_claimed_is_open_again() {
    let ground = Ground::new().await;
    let (leaver, me) = (ground.worker("leaver").await, ground.worker("me").await);
    ground.seed(leaver, &["https://a.example/"]).await;
    ground.claim_task(leaver).await;
    ground.frontier.leave(leaver).await.unwrap();
    assert_eq!(ground.frontier.recycle_dead().await.unwrap(), 1);
    ground.claim_task(me).await;
}

#[tokio::test]
async fn a_retry_is_promoted_when_it_is_due_and_not_before() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let task = ground.claim_task(me).await;
    ground
        .finish(me, &[failed(&task, Some(Duration::from_secs(60)), true)])
        .await;
    assert_eq!(ground.frontier.promote().await.unwrap(), 0);
    assert!(!ground.frontier.finished().await.unwrap());
    let wait = ground.frontier.next_ready().await.unwrap().unwrap();
    assert!(
        wait > Duration::from_secs(50) && wait <= Duration::from_secs(60),
        "{wait:?}"
    );
    ground.waits_end().await;
    assert_eq!(ground.frontier.promote().await.unwrap(), 1);
    assert_eq!(ground.claim_task(me).await.attempt, 2);
}

#[tokio::test]
async fn more_lost_leases_than_one_statement_takes_come_back_in_one_call() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    let seeds: Vec<String> = (0..1_100)
        .map(|page| format!("https://a.example/{page}"))
        .collect();
    ground
        .seed(me, &seeds.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let claimed = ground.claim_host(me).await.tasks.len();
    assert_eq!(claimed, 1_000);
    ground.leases_end().await;
    assert_eq!(ground.frontier.recycle().await.unwrap(), 1_000);
    ground.claim_host(me).await;
    ground.frontier.leave(me).await.unwrap();
    assert_eq!(ground.frontier.recycle_dead().await.unwrap(), 1_000);
}

#[tokio::test]
async fn a_hold_without_claims_ends_with_its_worker() {
    let ground = Ground::with(FrontierSettings {
        delay: Duration::from_millis(1),
        ..settings()
    })
    .await;
    let (dead, me) = (ground.worker("dead").await, ground.worker("me").await);
    ground.seed(dead, &["https://a.example/"]).await;
    let task = ground.claim_task(dead).await;
    // Killed between its last finish and the release.
    ground.finish(dead, &[done(&task)]).await;
    ground.seed(me, &["https://a.example/2"]).await;
    assert!(ground.claim(me).await.hosts.is_empty());
    ground.frontier.bury(&[dead]).await.unwrap();
    assert_eq!(ground.frontier.recycle_dead().await.unwrap(), 0);
    ground.waits_end().await;
    ground.claim_task(me).await;
    assert_eq!(
        number(
            &ground.db.pool,
            "select count(*) from workers where cleared_at is not null"
        )
        .await,
        1
    );
}

#[tokio::test]
async fn what_only_stood_in_stock_is_charged_once_and_never_waits() {
    let ground = Ground::with(FrontierSettings {
        max_expiries: 3,
        ..settings()
    })
    .await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    for _ in 0..10 {
        // Claimed again at once each time: no wait, no end.
        let task = ground.claim_task(me).await;
        ground.leases_end().await;
        assert!(task.expiries <= 1);
        ground.frontier.recycle().await.unwrap();
        assert!(!ground.frontier.begin(me, &task).await.unwrap());
    }
    assert_eq!(
        ground.column("select status, expiries from tasks").await,
        ["new,1"]
    );
}
