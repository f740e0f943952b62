//! robots.txt: due to one process at a time, stored for all, patient and not for ever.

use std::time::Duration;

use pgcrawl::frontier::{Appetite, FrontierSettings, StoredRobots};

use super::{ALL, Ground, release, settings};

async fn obedient() -> Ground {
    Ground::with(FrontierSettings {
        obey_robots: true,
        ..settings()
    })
    .await
}

fn answer(crawl_delay: Option<Duration>) -> StoredRobots {
    StoredRobots {
        http_status: Some(200),
        hops: 0,
        crawl_delay,
        error: None,
        final_url: None,
        sitemaps: vec!["https://a.example/sitemap.xml".to_owned()],
        body: Some(b"User-agent: *\nDisallow:\n".to_vec()),
        ttl: Duration::from_secs(100),
    }
}

#[tokio::test]
async fn a_host_whose_robots_txt_is_due_is_held_by_one_claimer_also_without_a_delay() {
    let ground = obedient().await;
    let (me, other) = (ground.worker("me").await, ground.worker("other").await);
    ground
        .seed(me, &["https://a.example/1", "https://a.example/2"])
        .await;
    let one = Appetite { tasks: 1, ..ALL };
    let host = ground
        .frontier
        .claim(me, one)
        .await
        .unwrap()
        .hosts
        .remove(0);
    assert!(host.robots_due);
    assert_eq!(host.delay, Duration::ZERO);
    assert!(host.hold.is_some());
    assert!(ground.claim(other).await.hosts.is_empty());
    ground
        .frontier
        .store_robots(host.id, &answer(None))
        .await
        .unwrap();
    ground
        .frontier
        .release(me, &[release(&host)])
        .await
        .unwrap();
    let shared = ground.claim_host(other).await;
    assert!(!shared.robots_due);
    assert_eq!(shared.hold, None);
}

#[tokio::test]
async fn claimers_at_once_never_both_get_a_host_whose_robots_txt_is_due() {
    let ground = obedient().await;
    let me = ground.worker("me").await;
    let seeds: Vec<String> = (0..200)
        .map(|n| format!("https://h{}.example/{n}", n % 40))
        .collect();
    ground
        .seed(me, &seeds.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let few = Appetite {
        hosts: 3,
        tasks: 10,
        tasks_per_host: 1,
    };
    let claimers: Vec<_> = (0..8)
        .map(|_| {
            let frontier = ground.frontier.clone();
            tokio::spawn(async move {
                let mut hosts = Vec::new();
                for _ in 0..20 {
                    hosts.extend(frontier.claim(me, few).await.unwrap().hosts);
                }
                hosts
            })
        })
        .collect();
    let mut due = Vec::new();
    for claimer in claimers {
        due.extend(claimer.await.unwrap().into_iter().map(|host| host.id));
    }
    assert_eq!(due.len(), 40);
    due.sort_unstable();
    due.dedup();
    assert_eq!(due.len(), 40);
}

#[tokio::test]
async fn a_known_robots_txt_is_read_by_all_until_it_is_due_again() {
    let ground = obedient().await;
    let host = ground.host("https://a.example/").await;
    assert!(ground.frontier.robots_of(&[host]).await.unwrap().is_empty());
    ground
        .frontier
        .store_robots(host, &answer(None))
        .await
        .unwrap();
    let known = ground.frontier.robots_of(&[host]).await.unwrap();
    assert_eq!(known[0].authority, "https://a.example");
    assert_eq!(known[0].body, answer(None).body);
    assert!(known[0].left <= Duration::from_secs(100) && known[0].left > Duration::from_secs(90));
    ground.typed("update hosts set robots_until = now()").await;
    assert!(ground.frontier.robots_of(&[host]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_crawl_delay_of_a_first_robots_txt_counts_from_its_fetch_on() {
    let ground = obedient().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.claim_host(me).await;
    let delay = Duration::from_secs(10);
    assert_eq!(
        ground
            .frontier
            .store_robots(host.id, &answer(Some(delay)))
            .await
            .unwrap(),
        Some(delay)
    );
    ground
        .frontier
        .release(me, &[release(&host)])
        .await
        .unwrap();
    let wait = ground.host_ms("ready_at").await;
    assert!((8_000..=10_000).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_crawl_delay_that_is_new_on_a_host_fetched_without_a_hold_waits_for_a_lease() {
    let ground = obedient().await;
    let me = ground.worker("me").await;
    ground
        .seed(me, &["https://a.example/", "https://a.example/2"])
        .await;
    let host = ground.host("https://a.example/").await;
    ground
        .frontier
        .store_robots(host, &answer(None))
        .await
        .unwrap();
    let appetite = Appetite {
        hosts: 1,
        tasks: 1,
        tasks_per_host: 1,
    };
    let other = ground.worker("other").await;
    let shared = ground.frontier.claim(other, appetite).await.unwrap();
    assert_eq!(shared.hosts[0].hold, None);
    ground.typed("update hosts set robots_until = now()").await;
    let held = ground.claim_host(me).await;
    assert!(held.robots_due);
    let delay = ground
        .frontier
        .store_robots(host, &answer(Some(Duration::from_secs(10))))
        .await
        .unwrap();
    assert_eq!(delay, None, "nothing more may be fetched in this hold");
    assert!(ground.host_ms("ready_at").await > 120_000);
    // Its holder's release must not cut that wait: others may fetch without a hold until their leases are over.
    ground
        .frontier
        .release(me, &[release(&held)])
        .await
        .unwrap();
    assert!(ground.host_ms("ready_at").await > 120_000);
}

#[tokio::test]
async fn a_robots_txt_that_cannot_be_had_defers_the_host_and_then_gives_it_up() {
    let ground = obedient().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.host("https://a.example/").await;
    let wait = Duration::from_secs(300);
    let fail = async || {
        ground
            .frontier
            .robots_failed(host, wait, 3, Some(503), None, "503")
            .await
            .unwrap()
    };
    for _ in 0..3 {
        assert!(!fail().await);
        let left = ground.host_ms("deferred_until").await;
        assert!((295_000..=300_000).contains(&left), "{left}");
        assert!(ground.claim(me).await.hosts.is_empty());
        ground.waits_end().await;
    }
    assert!(fail().await);
    let claimed = ground.claim_host(me).await;
    assert_eq!(claimed.given_up.as_deref(), Some("robots_unreachable"));
    assert!(!claimed.robots_due);
}

#[tokio::test]
async fn a_robots_txt_that_is_had_at_last_ends_the_row_of_deferrals() {
    let ground = obedient().await;
    let host = ground.host("https://a.example/").await;
    ground
        .frontier
        .robots_failed(
            host,
            Duration::from_secs(1),
            3,
            None,
            Some("refused"),
            "refused",
        )
        .await
        .unwrap();
    assert_eq!(ground.number("select robots_failures from hosts").await, 1);
    ground
        .frontier
        .store_robots(host, &answer(None))
        .await
        .unwrap();
    assert_eq!(ground.number("select robots_failures from hosts").await, 0);
    assert_eq!(
        ground.column("select http_status, error from robots").await,
        ["200,"]
    );
}

#[tokio::test]
async fn a_crawl_delay_above_the_most_is_capped_and_what_was_asked_is_kept() {
    let ground = obedient().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/1"]).await;
    let host = ground.claim_host(me).await;
    let day = Duration::from_secs(86_400);
    let delay = ground
        .frontier
        .store_robots(host.id, &answer(Some(day)))
        .await
        .unwrap();
    assert_eq!(delay, Some(pgcrawl::robots::MAX_CRAWL_DELAY));
    let kept: (i32, i32) = sqlx::query_as(
        "select h.crawl_delay_ms, r.crawl_delay_ms from hosts h join robots r on r.host_id = h.id",
    )
    .fetch_one(&ground.db.pool)
    .await
    .unwrap();
    assert_eq!(kept, (300_000, 86_400_000));
}

#[test]
fn a_robots_txt_counts_for_a_day_and_its_absence_for_an_hour() {
    let settings = FrontierSettings::default();
    assert_eq!(settings.robots_ttl, Duration::from_secs(24 * 3600));
    assert_eq!(settings.robots_error_ttl, Duration::from_secs(3600));
}
