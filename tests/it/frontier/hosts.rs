//! Hosts in trouble: the breaker, giving up, deferrals, and delays that change.

use std::time::Duration;

use pgcrawl::frontier::{FrontierSettings, Pace, Release};

use super::{Ground, failed, release, settings};

const PAUSES: [Duration; 2] = [Duration::from_secs(100), Duration::from_secs(1_000)];

#[tokio::test]
async fn failures_in_a_row_pause_a_host_longer_each_time_and_then_give_it_up() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.host("https://a.example/").await;
    let fail = async || {
        ground
            .frontier
            .host_failed(host, 3, &PAUSES, "refused", false)
            .await
            .unwrap()
    };
    for _ in 0..2 {
        assert!(!fail().await);
        assert!(ground.host_ms("deferred_until").await < 0);
    }
    for pause in PAUSES {
        assert!(!fail().await);
        let wait = ground.host_ms("deferred_until").await;
        let pause = i64::try_from(pause.as_millis()).unwrap();
        assert!(wait <= pause && wait > pause - 5_000, "{wait}");
        // Others were in flight when the pause began: they count, and change nothing else.
        assert!(!fail().await);
        assert!((wait - 5_000..=wait).contains(&ground.host_ms("deferred_until").await));
        assert!(ground.claim(me).await.hosts.is_empty());
        ground.waits_end().await;
    }
    assert!(fail().await);
    assert!(fail().await);
    let given_up = ground.claim_host(me).await;
    assert_eq!(given_up.given_up.as_deref(), Some("host_down"));
    let ending = ground.frontier.ending().await.unwrap();
    assert_eq!(
        ending.given_up,
        [("https://a.example".to_owned(), "refused".to_owned())]
    );
    assert_eq!(ending.given_up_total, 1);
}

#[tokio::test]
async fn the_waiting_tasks_of_a_host_that_is_given_up_come_back_to_be_failed() {
    let ground = Ground::with(FrontierSettings {
        delay: Duration::from_secs(5),
        ..settings()
    })
    .await;
    let me = ground.worker("me").await;
    ground
        .seed(
            me,
            &[
                "https://a.example/1",
                "https://a.example/2",
                "https://b.example/",
            ],
        )
        .await;
    ground.typed("update tasks set status = 'failed', available_at = now() + interval '1 hour' where url not like '%2'").await;
    let host = ground.host("https://a.example/").await;
    assert!(
        ground
            .frontier
            .host_failed(host, 1, &[], "refused", false)
            .await
            .unwrap()
    );
    let claimed = ground.claim_host(me).await;
    assert_eq!(claimed.given_up.as_deref(), Some("host_down"));
    // Nothing is fetched, so nothing is kept waiting.
    assert_eq!(
        (claimed.delay, claimed.hold, claimed.tasks.len()),
        (Duration::ZERO, None, 2)
    );
    let visits: Vec<_> = claimed
        .tasks
        .iter()
        .map(|task| failed(task, None, true))
        .collect();
    ground.finish(me, &visits).await;
    assert_eq!(
        ground
            .number("select count(*) from tasks where available_at is not null")
            .await,
        1,
        "the other host's retry goes on waiting"
    );
}

#[tokio::test]
async fn an_answer_ends_the_row_of_failures() {
    let ground = Ground::with(FrontierSettings {
        delay: Duration::from_secs(5),
        ..settings()
    })
    .await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.host("https://a.example/").await;
    let row = "select failures, pauses from hosts";
    ground
        .frontier
        .host_failed(host, 1, &PAUSES, "refused", false)
        .await
        .unwrap();
    assert_eq!(ground.column(row).await, ["1,1"]);
    ground.frontier.answered(&[host]).await.unwrap();
    assert_eq!(ground.column(row).await, ["0,0"]);
    ground.waits_end().await;
    ground
        .frontier
        .host_failed(host, 1, &PAUSES, "refused", false)
        .await
        .unwrap();
    ground.waits_end().await;
    let claimed = ground.claim_host(me).await;
    assert!(claimed.ailing);
    ground
        .frontier
        .release(
            me,
            &[Release {
                answered: false,
                ..release(&claimed)
            }],
        )
        .await
        .unwrap();
    assert_eq!(ground.column(row).await, ["1,1"]);
    ground.waits_end().await;
    ground.typed("update tasks set status = 'new'").await;
    let claimed = ground.claim_host(me).await;
    ground
        .frontier
        .release(me, &[release(&claimed)])
        .await
        .unwrap();
    assert_eq!(ground.column(row).await, ["0,0"]);
}

#[tokio::test]
async fn a_shorter_deferral_does_not_shorten_a_longer_one() {
    let ground = Ground::new().await;
    let host = ground.host("https://a.example/").await;
    ground
        .frontier
        .defer(
            host,
            Duration::from_secs(100),
            Pace::Same,
            Some("retry after"),
        )
        .await
        .unwrap();
    ground
        .frontier
        .defer(
            host,
            Duration::from_secs(10),
            Pace::Same,
            Some("retry after"),
        )
        .await
        .unwrap();
    assert!(ground.host_ms("ready_at").await > 90_000);
    ground
        .frontier
        .defer(
            host,
            Duration::from_secs(200),
            Pace::Same,
            Some("retry after"),
        )
        .await
        .unwrap();
    assert!(ground.host_ms("ready_at").await > 190_000);
}

#[tokio::test]
async fn a_delay_where_there_was_none_first_waits_until_the_leases_without_a_hold_are_over() {
    let ground = Ground::new().await;
    let host = ground.host("https://a.example/").await;
    let lease = 120_000;
    ground
        .frontier
        .set_delay(host, Some(Duration::from_secs(10)))
        .await
        .unwrap();
    let wait = ground.host_ms("ready_at").await;
    assert!(wait <= lease + 10_000 && wait > lease + 5_000, "{wait}");
    // From one delay to another there is nothing to wait for.
    ground.waits_end().await;
    ground
        .frontier
        .set_delay(host, Some(Duration::from_secs(20)))
        .await
        .unwrap();
    assert!(ground.host_ms("ready_at").await <= 0);
}

#[tokio::test]
async fn a_release_does_not_cut_the_wait_for_leases_without_a_hold() {
    let ground = Ground::with(FrontierSettings {
        obey_robots: true,
        ..settings()
    })
    .await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    // Fetched without a hold so far; held now because its robots.txt is due again.
    ground.typed("update hosts set robots_until = now()").await;
    let held = ground.claim_host(me).await;
    ground
        .frontier
        .set_delay(held.id, Some(Duration::from_secs(10)))
        .await
        .unwrap();
    ground
        .frontier
        .release(me, &[release(&held)])
        .await
        .unwrap();
    assert!(ground.host_ms("ready_at").await > 120_000);
}

#[tokio::test]
async fn a_crawl_is_finished_beside_hosts_that_an_operator_parked_and_names_them() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    assert!(!ground.frontier.finished().await.unwrap());
    ground
        .typed("update hosts set deferred_until = 'infinity'")
        .await;
    assert!(ground.frontier.finished().await.unwrap());
    assert_eq!(
        ground.frontier.ending().await.unwrap().parked,
        ["https://a.example"]
    );
}

#[tokio::test]
async fn failures_between_answers_never_open_the_breaker() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.host("https://a.example/").await;
    for _ in 0..10 {
        let given_up = ground
            .frontier
            .host_failed(host, 2, &PAUSES, "timeout", true)
            .await;
        assert!(!given_up.unwrap());
    }
    assert!(ground.host_ms("deferred_until").await < 0);
    // Two in a row do.
    let given_up = ground
        .frontier
        .host_failed(host, 2, &PAUSES, "timeout", false)
        .await;
    assert!(!given_up.unwrap());
    assert!(ground.host_ms("deferred_until").await > 0);
}
