//! The commands, as they are typed.

use axum::response::IntoResponse as _;
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::Executor as _;

use super::{Ground, done, failed, until};
use crate::support::{
    program::{ended, pgcrawl, run, signal},
    site::Site,
};

/// What a command prints, and that it succeeds.
async fn printed(ground: &Ground, arguments: &[&str]) -> String {
    let output = run(&ground.db, arguments).await;
    let (code, said) = ended(&output);
    assert_eq!(code, 0, "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What it complains about.
async fn complaint(ground: &Ground, arguments: &[&str], expected: i32) -> String {
    let (code, said) = ended(&run(&ground.db, arguments).await);
    assert_eq!(code, expected, "{arguments:?}: {said}");
    said
}

async fn three_failed() -> Ground {
    let ground = Ground::new().await;
    ground
        .seed(&[
            "http://a.example/1",
            "http://a.example/2",
            "http://b.example/1",
            "http://b.example/2",
        ])
        .await;
    ground
        .end_all(|url| match url {
            "http://b.example/2" => done(),
            _ => failed("timeout", None),
        })
        .await;
    ground
}

#[tokio::test]
async fn a_dry_run_counts_and_changes_nothing_and_the_command_says_what_it_did() {
    let ground = three_failed().await;
    let text = printed(&ground, &["retry", "--dry-run"]).await;
    assert_eq!(text, "3 tasks of 2 hosts would be tried again\n");
    let by_status = "select new, done, failed, excluded from progress";
    assert_eq!(ground.column(by_status).await, ["0,1,3,0"]);
    let text = printed(
        &ground,
        &["retry", "--where", "authority = 'http://b.example'"],
    )
    .await;
    assert_eq!(text, "1 task of 1 host is to be tried again\n");
    let text = printed(&ground, &["retry", "--json"]).await;
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        object,
        json!({ "tasks": 2, "hosts": 1, "reopened_hosts": 0, "dry_run": false, "complete": true })
    );
    let text = printed(&ground, &["retry"]).await;
    assert_eq!(text, "no task is to be tried again\n");
    let text = printed(
        &ground,
        &["reprioritise", "-3", "--where", "url like '%/1'"],
    )
    .await;
    assert_eq!(text, "2 tasks of 2 hosts have priority -3 now\n");
    let text = printed(&ground, &["exclude", "--where", "priority = -3"]).await;
    assert_eq!(text, "2 tasks of 2 hosts are excluded\n");
    let text = printed(&ground, &["requeue", "--all"]).await;
    assert_eq!(text, "3 tasks of 2 hosts are to be visited again\n");
    assert_eq!(ground.column(by_status).await, ["4,0,0,0"]);
    ground.assert_sound().await;
}

#[tokio::test]
async fn what_comes_next_is_said() {
    let ground = three_failed().await;
    ground
        .typed("update worker_reports set reported_at = now() - interval '1 hour'")
        .await;
    let (_, said) = ended(&run(&ground.db, &["retry"]).await);
    assert!(said.contains("`pgcrawl crawl` goes on with them"), "{said}");
    ground
        .typed("update worker_reports set reported_at = now()")
        .await;
    let (_, said) = ended(&run(&ground.db, &["requeue", "--all"]).await);
    assert!(said.contains("the running crawl takes them up"), "{said}");
    let text = printed(&ground, &["pause", "--dry-run"]).await;
    assert_eq!(text, "the crawl would be paused\n");
    assert_eq!(
        printed(&ground, &["resume"]).await,
        "the crawl is not paused\n"
    );
    assert_eq!(printed(&ground, &["pause"]).await, "the crawl is paused\n");
    let text = printed(&ground, &["pause"]).await;
    assert!(
        text.starts_with("the crawl is paused already, since 2"),
        "{text}"
    );
    ground
        .typed("update tasks set status = 'failed' where id = 1")
        .await;
    let (_, said) = ended(&run(&ground.db, &["retry"]).await);
    assert!(said.contains("`pgcrawl resume` goes on"), "{said}");
    let text = printed(&ground, &["resume", "--json"]).await;
    assert_eq!(text, "{\"changed\":true,\"dry_run\":false}\n");
}

#[tokio::test]
async fn hosts_are_parked_delayed_and_classed_by_name() {
    let ground = three_failed().await;
    let text = printed(&ground, &["park", "a.example", "--dry-run"]).await;
    assert_eq!(text, "http://a.example would be parked\n");
    let text = printed(&ground, &["park", "a.example", "--note", "asked us to"]).await;
    assert_eq!(text, "http://a.example is parked\n");
    assert_eq!(
        ground
            .column("select note from hosts where parked_at is not null")
            .await,
        ["\"asked us to\""]
    );
    let text = printed(&ground, &["park", "http://a.example/some/page"]).await;
    assert_eq!(text, "http://a.example was parked already\n");
    let text = printed(&ground, &["unpark", "http://a.example"]).await;
    assert_eq!(text, "http://a.example goes on\n");
    let text = printed(&ground, &["set-delay", "b.example", "5s"]).await;
    assert_eq!(
        text,
        "http://b.example waits 5s between two fetches (before: the crawl's delay)\n"
    );
    let text = printed(&ground, &["set-delay", "b.example", "none", "--dry-run"]).await;
    assert_eq!(
        text,
        "http://b.example would wait as the crawl and its robots.txt say (before: 5s)\n"
    );
    assert_eq!(
        ground
            .column("select delay_ms from hosts order by authority")
            .await,
        ["", "5000"]
    );
    let text = printed(
        &ground,
        &["reprioritise", "high", "--host", "b.example", "--json"],
    )
    .await;
    assert_eq!(
        text,
        "{\"dry_run\":false,\"hosts\":[{\"changed\":true,\"host\":\"http://b.example\"}]}\n"
    );
    assert_eq!(
        ground
            .column("select priority from hosts order by authority")
            .await,
        ["1", "0"]
    );
}

#[tokio::test]
async fn what_cannot_be_done_is_said_with_its_reason_and_a_way_out() {
    let ground = three_failed().await;
    let said = complaint(
        &ground,
        &["retry", "--where", "true); drop table pages; --"],
        1,
    )
    .await;
    assert!(
        said.contains("`true); drop table pages; --` is refused: syntax error"),
        "{said}"
    );
    let said = complaint(&ground, &["exclude", "--where", "stauts = 'new'"], 1).await;
    assert!(
        said.contains("(at character 1)") && said.contains("select * from visits limit 1"),
        "{said}"
    );
    let said = complaint(&ground, &["park", "a.exmaple"], 1).await;
    assert!(
        said.contains("no host \"a.exmaple\"") && said.contains("http://a.example"),
        "{said}"
    );
    for wrong in [
        &["requeue"][..],
        &["exclude"],
        &["reprioritise", "1"],
        &["requeue", "--all", "--where", "true"],
        &["set-delay", "a.example", "5"],
    ] {
        complaint(&ground, wrong, 2).await;
    }
    let said = complaint(&ground, &["reprioritise", "high", "--all"], 1).await;
    assert!(said.contains("--host"), "{said}");
}

#[tokio::test]
async fn indexes_are_built_anew_beside_a_running_crawl() {
    let all: String = (0..300).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let site = Site::builder().page("/", all).status("/robots.txt", 404);
    let site = site
        // Each page says something of its own: a shape of pages that are alike would be parked.
        .otherwise(|request| async move {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            axum::response::Html(request.uri().to_string()).into_response()
        })
        .start()
        .await;
    let ground = Ground::new().await;
    let crawl = pgcrawl(
        &ground.db,
        &["crawl", &site.url("/"), "--delay", "0s", "--per-host", "4"],
    )
    .spawn()
    .unwrap();
    site.wait_for(|log| log.len() > 20).await;
    let text = printed(&ground, &["reindex"]).await;
    assert!(
        text.contains("tasks_new") && text.contains("hosts_ready"),
        "{text}"
    );
    assert!(site.requests().len() < 300, "the crawl was over before");
    let (code, said) = ended(&crawl.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        ground
            .number("select count(*) from tasks where status = 'done'")
            .await,
        301
    );
    let object: Value =
        serde_json::from_str(&printed(&ground, &["reindex", "--all", "--json"]).await).unwrap();
    assert!(object["indexes"].as_array().unwrap().len() > 10, "{object}");
    let text = printed(&ground, &["reindex", "--dry-run"]).await;
    assert_eq!(text.lines().count(), 6, "{text}");
}

#[tokio::test]
async fn an_interrupted_reindex_says_so_and_leaves_nothing_half_built() {
    let ground = Ground::new().await;
    let mut old = ground.db.pool.begin().await.unwrap();
    old.execute("set local idle_in_transaction_session_timeout = 0")
        .await
        .unwrap();
    old.execute("select count(*) from tasks").await.unwrap();
    let reindex = pgcrawl(&ground.db, &["reindex", "--wait"]).spawn().unwrap();
    let half_built = "select count(*) from pg_index where not indisvalid and exists (select from blocked where query like 'reindex%')";
    until(&ground.db, half_built).await;
    signal(&reindex, Signal::INT);
    // The half-built index is dropped by itself, which waits for that transaction as well.
    until(
        &ground.db,
        "select count(*) from blocked where query like 'drop index%'",
    )
    .await;
    old.commit().await.unwrap();
    let (code, said) = ended(&reindex.wait_with_output().await.unwrap());
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert_eq!(
        ground
            .number("select count(*) from pg_index where not indisvalid")
            .await,
        0
    );
}

/// As where pgcrawl.toml is meant for another crawl.
#[tokio::test]
async fn what_this_machine_would_fetch_at_once_does_not_keep_it_from_looking_after_a_crawl() {
    let ground = three_failed().await;
    ground
        .typed("insert into settings (key, value) values ('politeness.delay', '\"1s\"')")
        .await;
    let eager = |arguments: &[&str]| {
        let mut command = pgcrawl(&ground.db, arguments);
        command.env("PGCRAWL_POLITENESS_PER_HOST", "4").output()
    };
    let (code, said) = ended(&eager(&["work", "--until-empty"]).await.unwrap());
    assert_ne!(code, 0, "{said}");
    assert!(said.contains("politeness.per_host"), "{said}");
    for arguments in [
        &["pause"][..],
        &["resume"],
        &["retry", "--dry-run"],
        &["explain", "http://a.example/1"],
        &["status"],
        &["workers"],
        &["config", "agreed"],
    ] {
        let (code, said) = ended(&eager(arguments).await.unwrap());
        assert_eq!(code, 0, "{arguments:?}: {said}");
    }
}
