//! One server for all processes of a data directory.

use std::process::{Child, Command, Stdio};

use pgcrawl::db::embedded::{EmbeddedError, EmbeddedSettings, Server, StopMode, status, stop};
use sqlx::Connection;

use super::{connection, kill_9, start, started_at, until};
use crate::support::db::scratch_dir;

/// Another pgcrawl that uses the server until it is killed.
async fn another_process(dir: &std::path::Path, server: &Server) -> Child {
    server.create_database("main").await.unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_pgcrawl"))
        .args([
            "sql",
            "--timeout",
            "0s",
            "select pg_sleep(3600)",
            "--data-dir",
        ])
        .arg(dir)
        .env_remove("DATABASE_URL")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut watching = connection(&server.reader_url("main")).await;
    let sleeps = "select exists (select from pg_stat_activity where query = 'select pg_sleep(3600)' and state = 'active')";
    let begun = std::time::Instant::now();
    while !sqlx::query_scalar::<_, bool>(sleeps)
        .fetch_one(&mut watching)
        .await
        .unwrap()
    {
        assert!(
            begun.elapsed() < super::NEVER,
            "it never came to its statement"
        );
    }
    watching.close().await.unwrap();
    child
}

#[tokio::test]
async fn processes_that_start_at_once_on_nothing_share_one_server_and_the_last_out_stops_it() {
    let dir = scratch_dir("at-once");
    let (one, two, three, four) = tokio::join!(start(&dir), start(&dir), start(&dir), start(&dir));
    let servers = [one, two, three, four];
    let first = started_at(&servers[0]).await;
    for server in &servers {
        assert_eq!(started_at(server).await, first);
    }
    let mut stopped = Vec::new();
    for server in servers {
        stopped.push(server.leave().await.unwrap());
    }
    assert_eq!(stopped, [false, false, false, true]);
    assert!(
        status(&EmbeddedSettings::in_dir(&dir))
            .await
            .unwrap()
            .running
            .is_none()
    );
}

#[tokio::test]
async fn a_process_that_is_killed_leaves_the_server_and_the_next_adopts_it() {
    let dir = scratch_dir("adopt");
    let settings = EmbeddedSettings::in_dir(&dir);
    let server = start(&dir).await;
    let first = started_at(&server).await;
    let mut other = another_process(&dir, &server).await;
    assert!(!server.leave().await.unwrap(), "the other still uses it");
    let refused = stop(&settings, StopMode::IfUnused).await.unwrap_err();
    assert!(matches!(refused, EmbeddedError::InUse { .. }), "{refused}");

    other.kill().unwrap();
    other.wait().unwrap();
    let left = status(&settings).await.unwrap().running.unwrap();
    assert!(!left.in_use && !left.kept);

    let server = start(&dir).await;
    assert_eq!(
        started_at(&server).await,
        first,
        "the same run of the server"
    );
    assert!(server.leave().await.unwrap());
}

#[tokio::test]
async fn a_kept_server_outlives_its_users_until_it_is_stopped() {
    let dir = scratch_dir("keep");
    let mut settings = EmbeddedSettings::in_dir(&dir);
    settings.keep = true;
    let server = Server::start(&settings).await.unwrap();
    let first = started_at(&server).await;
    assert!(!server.leave().await.unwrap());

    let server = start(&dir).await;
    assert_eq!(started_at(&server).await, first);
    assert!(
        !server.leave().await.unwrap(),
        "one that does not ask for it does not undo it"
    );

    assert!(stop(&settings, StopMode::IfUnused).await.unwrap());
    assert!(
        !stop(&settings, StopMode::IfUnused).await.unwrap(),
        "it did not run any more"
    );
    assert!(
        start(&dir).await.leave().await.unwrap(),
        "the wish ends with the server"
    );
}

#[tokio::test]
async fn a_share_that_is_dropped_on_the_way_out_of_an_error_stops_the_server_too() {
    let dir = scratch_dir("dropped");
    drop(start(&dir).await);
    let pid_file = dir.join("postgres/postmaster.pid");
    until("the server ends", || !pid_file.exists()).await;
}

#[tokio::test]
async fn a_server_that_was_killed_recovers_what_was_committed() {
    let dir = scratch_dir("killed");
    let server = start(&dir).await;
    let first = started_at(&server).await;
    let mut writer = connection(&server.url("main")).await;
    sqlx::raw_sql("create table t (x int); insert into t values (42)")
        .execute(&mut writer)
        .await
        .unwrap();
    kill_9(super::server_pid(&dir));
    drop(server);

    let server = start(&dir).await;
    assert_ne!(started_at(&server).await, first);
    let mut reader = connection(&server.reader_url("main")).await;
    let x: i32 = sqlx::query_scalar("select x from t")
        .fetch_one(&mut reader)
        .await
        .unwrap();
    assert_eq!(x, 42);
    reader.close().await.unwrap();
    server.leave().await.unwrap();
}

#[tokio::test]
async fn a_crawl_in_use_is_not_dropped() {
    let dir = scratch_dir("drop");
    let server = start(&dir).await;
    assert!(server.create_database("a-1").await.unwrap());
    assert!(!server.create_database("a-1").await.unwrap(), "it is there");
    assert!(server.create_database("b").await.unwrap());
    assert_eq!(server.databases().await.unwrap(), ["a-1", "b"]);
    let user = connection(&server.reader_url("b")).await;
    let refused = server.drop_database("b").await.unwrap_err();
    assert!(
        matches!(refused, EmbeddedError::CrawlInUse { .. }),
        "{refused}"
    );
    user.close().await.unwrap();
    assert!(server.drop_database("b").await.unwrap());
    assert!(!server.drop_database("b").await.unwrap());
    assert_eq!(server.databases().await.unwrap(), ["a-1"]);
    server.leave().await.unwrap();
}
