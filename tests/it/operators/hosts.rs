//! Changes of hosts and of the whole crawl.

use std::time::Duration;

use pgcrawl::frontier::Pace;
use pgcrawl::frontier::operate::{Change, Class, KnownHost, OperateError, Paused};

use super::{Ground, failed};

async fn find(ground: &Ground, host: &str) -> Vec<KnownHost> {
    ground.operator.find_hosts(host).await.expect(host)
}

fn names(hosts: &[KnownHost]) -> Vec<&str> {
    hosts.iter().map(|host| host.authority.as_str()).collect()
}

#[tokio::test]
async fn a_host_is_found_by_its_authority_a_url_or_its_bare_name() {
    let ground = Ground::new().await;
    ground
        .seed(&[
            "https://example.org/",
            "http://example.org/",
            "http://example.org:8080/",
            "http://example.org.evil.example/",
            "http://my_host.example/",
            "http://myxhost.example/",
        ])
        .await;
    assert_eq!(
        names(&find(&ground, "example.org").await),
        [
            "http://example.org",
            "http://example.org:8080",
            "https://example.org"
        ]
    );
    assert_eq!(
        names(&find(&ground, "https://EXAMPLE.org/a?b#c").await),
        ["https://example.org"]
    );
    assert_eq!(
        names(&find(&ground, "example.org:8080").await),
        ["http://example.org:8080"]
    );
    assert_eq!(
        names(&find(&ground, "my_host.example").await),
        ["http://my_host.example"]
    );
}

#[tokio::test]
async fn an_unknown_host_is_an_error_that_names_those_of_a_similar_name() {
    let ground = Ground::new().await;
    ground
        .seed(&["http://www.example.org/", "http://elsewhere.example/"])
        .await;
    let error = ground.operator.find_hosts("exampel.org").await.unwrap_err();
    assert!(
        matches!(&error, OperateError::UnknownHost { near, .. } if near.is_empty()),
        "{error}"
    );
    for slip in ["example.org", "www.exampel.org", "https://www.example.org"] {
        let error = ground.operator.find_hosts(slip).await.unwrap_err();
        let hint = error.hint().unwrap();
        assert!(error.to_string().contains(slip), "{error}");
        assert_eq!(hint, "it has http://www.example.org");
    }
}

#[tokio::test]
async fn a_parked_host_is_not_claimed_until_it_is_unparked() {
    let ground = Ground::new().await;
    ground
        .seed(&["http://a.example/1", "http://b.example/1"])
        .await;
    let hosts = find(&ground, "a.example").await;
    assert_eq!(
        ground
            .operator
            .park(&hosts, "asked us to")
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        ground.operator.park(&hosts, "again").await.unwrap().len(),
        0
    );
    assert!(find(&ground, "a.example").await[0].is_parked);
    let state = "select state, note from host_progress where authority = 'http://a.example'";
    assert_eq!(ground.column(state).await, ["parked,\"asked us to\""]);
    assert_eq!(ground.claimed_urls().await, ["http://b.example/1"]);
    assert_eq!(ground.operator.unpark(&hosts).await.unwrap().len(), 1);
    assert_eq!(ground.claimed_urls().await, ["http://a.example/1"]);
}

#[tokio::test]
async fn what_a_server_asked_for_is_not_ended_by_an_unpark() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/1"]).await;
    ground
        .typed("update hosts set deferred_until = now() + interval '1 hour', note = 'Retry-After'")
        .await;
    let hosts = find(&ground, "a.example").await;
    assert!(ground.operator.unpark(&hosts).await.unwrap().is_empty());
    assert_eq!(ground.claimed_urls().await.len(), 0);
    assert_eq!(
        ground.column("select note from hosts").await,
        ["Retry-After"]
    );
}

#[tokio::test]
async fn what_a_server_asks_for_before_or_while_its_host_is_parked_counts_when_it_is_unparked() {
    let ground = Ground::new().await;
    ground
        .seed(&["http://a.example/1", "http://b.example/1"])
        .await;
    let hour = Duration::from_secs(3600);
    let (before, meanwhile) = (
        find(&ground, "a.example").await,
        find(&ground, "b.example").await,
    );
    let wait = async |host: &KnownHost| {
        let deferred = ground
            .frontier()
            .defer(host.id, hour, Pace::Same, Some("Retry-After"));
        deferred.await.unwrap();
    };
    wait(&before[0]).await;
    for hosts in [&before, &meanwhile] {
        ground.operator.park(hosts, "asked us to").await.unwrap();
    }
    wait(&meanwhile[0]).await;
    let states = "select state from host_progress order by authority";
    assert_eq!(ground.column(states).await, ["parked", "parked"]);
    for hosts in [&before, &meanwhile] {
        assert_eq!(ground.operator.unpark(hosts).await.unwrap().len(), 1);
    }
    assert_eq!(ground.column(states).await, ["deferred", "deferred"]);
    assert_eq!(ground.claimed_urls().await.len(), 0);
}

#[tokio::test]
async fn a_host_that_was_parked_by_hand_is_parked_already_and_is_unparked() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/1"]).await;
    for typed in [
        "deferred_until = 'infinity'",
        "parked_at = now() - interval '1 day'",
    ] {
        ground.typed(&format!("update hosts set {typed}")).await;
        let hosts = find(&ground, "a.example").await;
        assert!(hosts[0].is_parked);
        assert!(
            ground
                .operator
                .park(&hosts, "again")
                .await
                .unwrap()
                .is_empty()
        );
        assert_eq!(ground.operator.unpark(&hosts).await.unwrap().len(), 1);
        assert!(!find(&ground, "a.example").await[0].is_parked);
    }
    assert_eq!(ground.claimed_urls().await.len(), 1);
}

/// Claims look on from the readiest host that they saw last.
#[tokio::test]
async fn a_host_that_comes_back_or_changes_its_class_is_ready_from_then_on_and_no_sooner() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/1"]).await;
    ground.end_all(|_| failed("timeout", None)).await;
    ground.seed(&["http://a.example/2"]).await;
    let since = "select ready_at > (now() - interval '1 minute') from hosts";
    let hosts = find(&ground, "a.example").await;
    for deed in ["unpark", "class", "retry", "refresh"] {
        ground
            .typed("update hosts set polite_at = now() - interval '1 hour', failures = 1")
            .await;
        match deed {
            "unpark" => {
                ground.operator.park(&hosts, "so").await.unwrap();
                ground.operator.unpark(&hosts).await.unwrap();
            }
            "class" => {
                let moved = ground.operator.reprioritise_hosts(&hosts, Class::High);
                moved.await.unwrap();
            }
            "retry" => {
                assert_eq!(ground.change(Change::Retry, "true").await.tasks, 1);
            }
            _ => {
                ground.frontier().refresh().await.unwrap();
            }
        }
        assert_eq!(ground.column(since).await, ["t"], "{deed}");
    }
    // A hold is longer than that.
    ground
        .typed("update hosts set polite_at = now() + interval '1 hour', failures = 1")
        .await;
    ground.frontier().refresh().await.unwrap();
    ground
        .operator
        .reprioritise_hosts(&hosts, Class::Low)
        .await
        .unwrap();
    assert_eq!(ground.claimed_urls().await.len(), 0);
}

#[tokio::test]
async fn a_host_of_a_higher_class_is_claimed_before_the_others() {
    let ground = Ground::new().await;
    ground
        .seed(&[
            "http://a.example/",
            "http://b.example/",
            "http://c.example/",
        ])
        .await;
    for (host, class) in [("a.example", Class::Low), ("c.example", Class::High)] {
        let hosts = find(&ground, host).await;
        let moved = ground
            .operator
            .reprioritise_hosts(&hosts, class)
            .await
            .unwrap();
        assert_eq!(moved.len(), 1);
        assert_eq!(find(&ground, host).await[0].class, class);
        let moved = ground
            .operator
            .reprioritise_hosts(&hosts, class)
            .await
            .unwrap();
        assert_eq!(moved.len(), 0, "it is in that class already");
    }
    let one = pgcrawl::frontier::Appetite {
        hosts: 1,
        tasks: 1,
        tasks_per_host: 1,
    };
    let mut order = Vec::new();
    while order.len() < 3 {
        let claim = ground.frontier().claim(ground.worker, one).await.unwrap();
        order.extend(claim.hosts.into_iter().map(|host| host.authority));
        ground.frontier().park(&claim.empty).await.unwrap();
    }
    assert_eq!(
        order,
        ["http://c.example", "http://b.example", "http://a.example"]
    );
}

#[tokio::test]
async fn nothing_is_claimed_in_a_pause_and_it_goes_on_where_it_stood() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/1"]).await;
    assert_eq!(ground.operator.paused().await.unwrap(), Paused::No);
    assert_eq!(ground.operator.pause().await.unwrap(), Paused::No);
    let Paused::Since(since) = ground.operator.paused().await.unwrap() else {
        panic!("it is paused");
    };
    assert_eq!(ground.operator.pause().await.unwrap(), Paused::Since(since));
    assert_eq!(ground.claimed_urls().await.len(), 0);
    assert_eq!(
        ground.operator.resume().await.unwrap(),
        Paused::Since(since)
    );
    assert_eq!(ground.operator.resume().await.unwrap(), Paused::No);
    assert_eq!(ground.claimed_urls().await.len(), 1);
}

#[tokio::test]
async fn without_a_crawl_there_is_nothing_to_pause() {
    let ground = Ground::new().await;
    ground.typed("delete from crawl").await;
    let error = ground.operator.pause().await.unwrap_err();
    assert!(matches!(error, OperateError::NoCrawl), "{error}");
}

#[tokio::test]
async fn a_delay_of_its_own_replaces_the_crawl_s_and_goes_again() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/1"]).await;
    let five = Some(Duration::from_secs(5));
    for delay in [five, None] {
        let hosts = find(&ground, "http://a.example").await;
        ground.operator.set_delay(&hosts, delay).await.unwrap();
        assert_eq!(find(&ground, "http://a.example").await[0].delay, delay);
    }
}
