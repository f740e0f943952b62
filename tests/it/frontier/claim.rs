//! Claims, holds and releases.

use std::time::Duration;

use pgcrawl::frontier::{Appetite, FrontierSettings, Release};

use super::{ALL, Ground, done, giving, release, settings};

#[tokio::test]
async fn a_claimed_task_is_not_claimed_again() {
    let ground = Ground::new().await;
    let (me, other) = (ground.worker("me").await, ground.worker("other").await);
    ground
        .seed(me, &["https://a.example/1", "https://a.example/2"])
        .await;
    let one = Appetite { tasks: 1, ..ALL };
    let first = ground.frontier.claim(me, one).await.unwrap();
    let second = ground.frontier.claim(other, ALL).await.unwrap();
    assert_eq!(first.hosts[0].tasks[0].url, "https://a.example/1");
    assert_eq!(second.hosts[0].tasks[0].url, "https://a.example/2");
    assert!(ground.claim(me).await.hosts.is_empty());
}

#[tokio::test]
async fn a_better_priority_comes_first_within_its_host() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground
        .seed(me, &["https://a.example/1", "https://a.example/2"])
        .await;
    ground
        .typed("update tasks set priority = -1 where url like '%2'")
        .await;
    let urls: Vec<_> = ground
        .claim_host(me)
        .await
        .tasks
        .into_iter()
        .map(|task| task.url)
        .collect();
    assert_eq!(urls, ["https://a.example/2", "https://a.example/1"]);
}

#[tokio::test]
async fn giving_back_uncounts_the_attempt() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let first = ground.claim_task(me).await;
    ground
        .frontier
        .give_back(me, &[giving(&first)])
        .await
        .unwrap();
    let second = ground.claim_task(me).await;
    assert_eq!((first.attempt, second.attempt), (1, 1));
    assert_eq!(second.claim_version, first.claim_version + 1);
}

#[tokio::test]
async fn what_another_claimed_cannot_be_given_back() {
    let ground = Ground::new().await;
    let (me, other) = (ground.worker("me").await, ground.worker("other").await);
    ground.seed(me, &["https://a.example/"]).await;
    let task = ground.claim_task(me).await;
    ground
        .frontier
        .give_back(other, &[giving(&task)])
        .await
        .unwrap();
    assert_eq!(
        ground
            .number("select count(*) from tasks where status = 'claimed'")
            .await,
        1
    );
    ground
        .frontier
        .give_back(me, &[giving(&task)])
        .await
        .unwrap();
    let again = ground.claim_task(me).await;
    // Of the claim before this one: it changes nothing.
    ground
        .frontier
        .give_back(me, &[giving(&task)])
        .await
        .unwrap();
    assert_eq!(ground.finish(me, &[done(&again)]).await, [true]);
}

#[tokio::test]
async fn a_host_with_a_delay_is_held_by_its_claimer() {
    let ground = polite().await;
    let (me, other) = (ground.worker("me").await, ground.worker("other").await);
    ground
        .seed(me, &["https://a.example/1", "https://a.example/2"])
        .await;
    let host = ground
        .frontier
        .claim(me, Appetite { tasks: 1, ..ALL })
        .await
        .unwrap()
        .hosts
        .remove(0);
    assert_eq!(host.delay, Duration::from_secs(10));
    assert!(host.hold.is_some());
    assert!(ground.claim(other).await.hosts.is_empty());
    // Lease and delay: after its lease the holder fetches nothing more, and the next must still keep the delay.
    let wait = ground.host_ms("ready_at").await;
    assert!((129_000..=130_000).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_host_without_a_delay_is_shared() {
    let ground = Ground::new().await;
    let (me, other) = (ground.worker("me").await, ground.worker("other").await);
    ground
        .seed(me, &["https://a.example/1", "https://a.example/2"])
        .await;
    let one = Appetite { tasks: 1, ..ALL };
    let first = ground.frontier.claim(me, one).await.unwrap();
    let second = ground.frontier.claim(other, one).await.unwrap();
    assert_eq!((first.hosts[0].hold, second.hosts[0].hold), (None, None));
    assert_ne!(first.hosts[0].tasks[0].id, second.hosts[0].tasks[0].id);
}

#[tokio::test]
async fn no_more_is_claimed_of_a_polite_host_than_can_be_fetched_soon() {
    let ground = Ground::with(FrontierSettings {
        delay: Duration::from_millis(1_000),
        hold: Duration::from_millis(3_500),
        ..settings()
    })
    .await;
    let me = ground.worker("me").await;
    let seeds: Vec<String> = (0..10)
        .map(|page| format!("https://a.example/{page}"))
        .collect();
    ground
        .seed(me, &seeds.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    assert_eq!(ground.claim_host(me).await.tasks.len(), 3);
}

#[tokio::test]
async fn a_release_counts_the_delay_from_the_end_of_the_last_fetch() {
    let ground = polite().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.claim_host(me).await;
    let hold = release(&host);
    let ended = hold
        .last_fetch
        .map(|end| end.saturating_sub(Duration::from_secs(4)));
    ground
        .frontier
        .release(
            me,
            &[Release {
                last_fetch: ended,
                took: Duration::ZERO,
                ..hold
            }],
        )
        .await
        .unwrap();
    let wait = ground.host_ms("ready_at").await;
    assert!((4_000..=6_000).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_release_of_a_hold_without_a_fetch_counts_the_delay_from_now() {
    let ground = polite().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.claim_host(me).await;
    ground
        .frontier
        .release(
            me,
            &[Release {
                last_fetch: None,
                took: Duration::ZERO,
                ..release(&host)
            }],
        )
        .await
        .unwrap();
    let wait = ground.host_ms("ready_at").await;
    assert!((8_000..=10_000).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_stale_release_changes_nothing() {
    let ground = polite().await;
    let (me, other) = (ground.worker("me").await, ground.worker("other").await);
    ground.seed(me, &["https://a.example/"]).await;
    let first = ground.claim_host(me).await;
    ground
        .frontier
        .give_back(me, &[giving(&first.tasks[0])])
        .await
        .unwrap();
    ground.waits_end().await;
    let second = ground.claim_host(me).await;
    let before = ground
        .column("select polite_at, held_by, hold_version from hosts")
        .await;
    // The same worker's hold of before, and another worker with the right version.
    ground
        .frontier
        .release(me, &[release(&first)])
        .await
        .unwrap();
    ground
        .frontier
        .release(other, &[release(&second)])
        .await
        .unwrap();
    assert_eq!(
        ground
            .column("select polite_at, held_by, hold_version from hosts")
            .await,
        before
    );
    ground
        .frontier
        .release(me, &[release(&second)])
        .await
        .unwrap();
    assert_ne!(
        ground
            .column("select polite_at, held_by, hold_version from hosts")
            .await,
        before
    );
}

#[tokio::test]
async fn a_release_ends_no_pause_of_the_host() {
    let ground = polite().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.claim_host(me).await;
    ground
        .typed("update hosts set deferred_until = 'infinity'")
        .await;
    ground
        .frontier
        .release(me, &[release(&host)])
        .await
        .unwrap();
    assert_eq!(
        ground
            .number("select count(*) from hosts where ready_at = 'infinity'")
            .await,
        1
    );
}

#[tokio::test]
async fn the_next_host_is_waited_for_and_not_one_that_an_operator_parked() {
    let ground = polite().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    assert_eq!(ground.frontier.next_ready().await.unwrap(), None);
    ground
        .typed("update hosts set polite_at = now() + interval '5 s'")
        .await;
    let wait = ground.frontier.next_ready().await.unwrap().unwrap();
    assert!(
        wait <= Duration::from_secs(5) && wait > Duration::from_secs(3),
        "{wait:?}"
    );
    ground
        .typed("update hosts set deferred_until = 'infinity'")
        .await;
    assert_eq!(ground.frontier.next_ready().await.unwrap(), None);
}

#[tokio::test]
async fn what_slipped_behind_an_old_mark_is_found() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    ground
        .typed("update hosts set low_priority = 5, low_id = 1000, low_since = now()")
        .await;
    let claim = ground.claim(me).await;
    assert!(claim.hosts.is_empty());
    assert_eq!(claim.empty.len(), 1);
    ground
        .typed("update hosts set low_since = now() - interval '1 day'")
        .await;
    assert_eq!(ground.claim_host(me).await.tasks.len(), 1);
}

async fn polite() -> Ground {
    Ground::with(FrontierSettings {
        delay: Duration::from_secs(10),
        ..settings()
    })
    .await
}
