//! A snapshot that somebody holds open (a backup, a report) keeps dead entries in the indexes; claims do not walk them again and again.

use std::time::Duration;

use pgcrawl::frontier::{Appetite, FrontierSettings};
use sqlx::AssertSqlSafe;

use super::protocol::CLAIM;
use super::{Ground, settings};

/// F12 of the field cases.
#[tokio::test]
async fn a_claim_does_not_walk_the_dead_entries_that_a_snapshot_keeps() {
    const HOSTS: usize = 40;
    let ground = Ground::with(FrontierSettings {
        delay: Duration::ZERO,
        ..settings()
    })
    .await;
    let me = ground.worker("me").await;
    let seeds: Vec<String> = (0..HOSTS)
        .flat_map(|host| (0..30).map(move |n| format!("https://h{host}.example/{n}")))
        .collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    ground.seed(me, &seeds).await;
    let mut snapshot = ground.db.pool.begin().await.unwrap();
    sqlx::raw_sql("set transaction isolation level repeatable read; select 1 from hosts limit 1")
        .execute(&mut *snapshot)
        .await
        .unwrap();

    let appetite = Appetite {
        hosts: 4,
        tasks: 4,
        tasks_per_host: 1,
    };
    let mut claimed = 0;
    let mut last = None;
    while claimed < HOSTS * 25 {
        let claim = ground.frontier.claim(me, appetite).await.unwrap();
        assert_eq!(claim.hosts.len(), 4);
        claimed += 4;
        let ready =
            "select (extract(epoch from min(ready_at)) * 1000000)::bigint from hosts where has_new";
        last = Some(ground.number(ready).await);
    }
    let from_the_start = walked(&ground, me.0, "null").await;
    let from_there = walked(
        &ground,
        me.0,
        &format!("array[null, {}, null]", last.unwrap()),
    )
    .await;
    // Each of a thousand claims of a host left an entry at the head of the index, a few of them to a page.
    assert!(from_the_start > 100, "{from_the_start}");
    assert!(
        from_there < from_the_start / 4,
        "{from_there} of {from_the_start}"
    );
    snapshot.rollback().await.unwrap();
}

/// Pages that a claim looks at to find its hosts, from these moments on.
async fn walked(ground: &Ground, worker: i32, from: &str) -> i64 {
    let mut statement = CLAIM.to_owned();
    for (number, value) in [
        (11, from.to_owned()),
        (10, "0".to_owned()),
        (9, "false".to_owned()),
        (8, "600000".to_owned()),
        (7, "0".to_owned()),
        (6, "120000".to_owned()),
        (5, "5000".to_owned()),
        (4, "1".to_owned()),
        (3, "4".to_owned()),
        (2, "4".to_owned()),
        (1, worker.to_string()),
    ] {
        statement = statement.replace(&format!("${number}"), &format!("({value})"));
    }
    let mut db = ground.db.pool.begin().await.unwrap();
    let plan: serde_json::Value = sqlx::query_scalar(AssertSqlSafe(format!(
        "explain (analyze, buffers, format json) {statement}"
    )))
    .fetch_one(&mut *db)
    .await
    .unwrap();
    db.rollback().await.unwrap();
    on_hosts_ready(&plan[0]["Plan"]).expect("the claim walks hosts_ready")
}

fn on_hosts_ready(node: &serde_json::Value) -> Option<i64> {
    if node["Index Name"] == "hosts_ready" {
        return Some(node["Shared Hit Blocks"].as_i64()? + node["Shared Read Blocks"].as_i64()?);
    }
    let children = node["Plans"].as_array()?;
    children.iter().find_map(on_hosts_ready)
}
