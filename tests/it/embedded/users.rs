//! As whom the server runs, and what its roles may do.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use pgcrawl::db::embedded::{EmbeddedError, EmbeddedSettings, Server};

use super::{connection, is_root, start};
use crate::support::db::{scratch_dir, server};

/// `nobody`, who exists everywhere.
const NOBODY: u32 = 65_534;

#[tokio::test]
async fn passwords_and_sockets_are_private_and_the_server_is_never_root() {
    let dir = scratch_dir("private");
    let server = start(&dir).await;
    for (name, mode) in [
        ("pgpass", 0o600),
        ("run", 0o700),
        ("postgres", 0o700),
        ("server.log", 0o600),
    ] {
        let found = fs::metadata(dir.join(name)).unwrap();
        assert_eq!(found.mode() & 0o777, mode, "{name}");
        assert_ne!(found.uid(), 0, "{name}");
    }
    let listening = format!("/proc/{}/status", super::server_pid(&dir));
    let status = fs::read_to_string(listening).unwrap();
    let groups = status
        .lines()
        .find_map(|line| line.strip_prefix("Groups:"))
        .unwrap();
    if is_root() {
        assert_eq!(groups.trim(), "", "root's supplementary groups are gone");
    }
    server.leave().await.unwrap();
}

#[tokio::test]
async fn a_parent_folder_that_the_servers_user_cannot_enter_is_named() {
    if !is_root() {
        eprintln!("SKIPPED: only root hands the server to another user");
        return;
    }
    let closed = scratch_dir("closed").join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let refused = Server::start(&EmbeddedSettings::in_dir(closed.join("deep/data")))
        .await
        .unwrap_err();
    let EmbeddedError::CannotEnter { folder, .. } = &refused else {
        panic!("{refused}")
    };
    assert_eq!(folder, &closed);
    assert!(refused.hint().unwrap().contains("--data-dir"));
}

#[tokio::test]
async fn root_runs_the_server_of_a_users_folder_as_that_user() {
    if !is_root() {
        eprintln!("SKIPPED: only root hands the server to another user");
        return;
    }
    let dir = scratch_dir("theirs");
    chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
    let server = start(&dir).await;
    for name in ["pgpass", "run", "postgres", "server.log", "start.lock"] {
        assert_eq!(
            fs::metadata(dir.join(name)).unwrap().uid(),
            NOBODY,
            "{name}"
        );
    }
    server.leave().await.unwrap();
}

fn as_nobody(program: &Path, home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .current_dir("/");
    command.uid(NOBODY).gid(NOBODY).output().unwrap()
}

#[tokio::test]
async fn an_ordinary_user_with_nothing_but_path_and_home_gets_a_server_under_home() {
    if !is_root() {
        eprintln!(
            "SKIPPED: only root can become another user; the other tests run as an ordinary one now"
        );
        return;
    }
    let home = scratch_dir("home");
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    // The build folder may lie where that user cannot go.
    let program = home.join("pgcrawl");
    fs::copy(env!("CARGO_BIN_EXE_pgcrawl"), &program).unwrap();
    let data = home.join(".local/share/pgcrawl");

    let started = as_nobody(&program, &home, &["db", "start"]);
    assert!(
        started.status.success(),
        "{}",
        String::from_utf8_lossy(&started.stderr)
    );
    assert!(data.join("postgres/PG_VERSION").exists());
    assert!(as_nobody(&program, &home, &["db", "url"]).status.success());
    let answer = as_nobody(
        &program,
        &home,
        &["sql", "--csv", "select current_user as me"],
    );
    assert_eq!(
        String::from_utf8_lossy(&answer.stdout),
        "me\r\npgcrawl_read\r\n"
    );
    let changed = as_nobody(&program, &home, &["sql", "create table t (x int)"]);
    assert_eq!(changed.status.code(), Some(1));
    assert!(
        as_nobody(
            &program,
            &home,
            &["sql", "--write", "create table t (x int)"]
        )
        .status
        .success()
    );
    let stopped = as_nobody(&program, &home, &["db", "stop"]);
    assert!(
        stopped.status.success(),
        "{}",
        String::from_utf8_lossy(&stopped.stderr)
    );
}

#[tokio::test]
async fn the_crawls_role_is_no_superuser_and_the_readers_can_only_read() {
    let server = server().await;
    server.create_database("roles").await.unwrap();
    let mut writer = connection(&server.url("roles")).await;
    let superuser: bool =
        sqlx::query_scalar("select rolsuper from pg_roles where rolname = current_user")
            .fetch_one(&mut writer)
            .await
            .unwrap();
    assert!(!superuser);
    sqlx::raw_sql("create table t (x int); insert into t values (7)")
        .execute(&mut writer)
        .await
        .unwrap();

    let mut reader = connection(&server.reader_url("roles")).await;
    let x: i32 = sqlx::query_scalar("select x from t")
        .fetch_one(&mut reader)
        .await
        .unwrap();
    assert_eq!(x, 7);
    sqlx::raw_sql("set default_transaction_read_only = off")
        .execute(&mut reader)
        .await
        .unwrap();
    for forbidden in [
        "insert into t values (8)",
        "create table u (x int)",
        "create temporary table u (x int)",
        "create schema s",
        "copy t to program 'cat'",
        "set role pgcrawl",
        "select pg_read_file('/etc/passwd')",
    ] {
        let error = sqlx::raw_sql(forbidden)
            .execute(&mut reader)
            .await
            .unwrap_err();
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .unwrap()
            .into_owned();
        assert_eq!(code, "42501", "{forbidden}: {error}");
    }
}

#[tokio::test]
async fn fsync_is_on_and_the_server_listens_on_loopback_alone() {
    let server = server().await;
    server.create_database("settings").await.unwrap();
    let mut reader = connection(&server.reader_url("settings")).await;
    for (name, value) in [
        ("fsync", "on"),
        ("listen_addresses", "127.0.0.1"),
        ("jit", "off"),
        ("server_encoding", "UTF8"),
    ] {
        let found: String = sqlx::query_scalar("select current_setting($1)")
            .bind(name)
            .fetch_one(&mut reader)
            .await
            .unwrap();
        assert_eq!(found, value, "{name}");
    }
    let over_tcp = connection(&server.tcp_url("settings")).await;
    drop(over_tcp);
}
