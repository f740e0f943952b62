//! The embedded server dies under its crawl.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pgcrawl::db::embedded::{EmbeddedSettings, Server, StopMode, stop};
use pgcrawl::db::{DbSettings, connect};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::web;
use crate::support::crawl::{broken_invariants, number};
use crate::support::db::scratch_dir;
use crate::support::program::ended;
use crate::support::site::Site;

fn crawl(dir: &Path, site: &Site) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pgcrawl"))
        .args(["crawl", &site.url("/"), "--delay", "0s", "--data-dir"])
        .arg(dir)
        .env_remove("DATABASE_URL")
        .env("NO_COLOR", "1")
        .env("PGCRAWL_DATABASE_PATIENCE", "40s")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Kills the server. What it says of itself stays, but for this mark.
fn kill_server(dir: &Path) {
    let file = dir.join("postgres/postmaster.pid");
    let text = std::fs::read_to_string(&file).unwrap();
    let pid = text.lines().next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    std::fs::write(&file, text.replace("ready", "gone ")).unwrap();
}

/// Another server runs in its place.
async fn ready_again(dir: &Path) {
    let file = dir.join("postgres/postmaster.pid");
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.contains("ready")) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Each page is in the database, was asked for once, and nothing is broken.
async fn assert_whole(dir: &Path, site: &Site, pages: usize, said: &str) {
    let server = Server::start(&EmbeddedSettings::in_dir(dir)).await.unwrap();
    let pool = connect(&server.url("main"), &DbSettings::default())
        .await
        .unwrap();
    let stored = "select count(*) from pages where http_status = 200";
    assert_eq!(number(&pool, stored).await, pages as i64, "{said}");
    assert_eq!(broken_invariants(&pool).await, Vec::<String>::new());
    pool.close().await;
    server.leave().await.unwrap();
    let mut targets = site.targets();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(
        (site.requests().len(), targets.len()),
        (pages + 1, pages + 1),
        "{said}"
    );
}

#[tokio::test]
async fn a_server_that_is_killed_is_started_again_and_its_crawl_goes_on() {
    let dir = scratch_dir("killed");
    let site = web(150, Duration::from_millis(10)).start().await;
    let child = crawl(&dir, &site);
    site.wait_for(|log| log.len() > 40).await;
    kill_server(&dir);
    let (code, said) = ended(&child.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the database server runs again"), "{said}");
    assert_whole(&dir, &site, 151, &said).await;
}

#[tokio::test]
async fn of_two_processes_one_starts_it_again_and_both_go_on_each_time() {
    let dir = scratch_dir("killed-twice");
    let site = web(200, Duration::from_millis(20)).start().await;
    let children = [crawl(&dir, &site), crawl(&dir, &site)];
    for asked in [60, 120] {
        site.wait_for(|log| log.len() > asked).await;
        kill_server(&dir);
        ready_again(&dir).await;
    }
    let mut all = String::new();
    for child in children {
        let (code, said) = ended(&child.wait_with_output().await.unwrap());
        assert_eq!(code, 0, "{said}");
        all.push_str(&said);
    }
    assert!(all.contains("the database server runs again"), "{all}");
    assert_whole(&dir, &site, 201, &all).await;
}

#[tokio::test]
async fn a_server_that_is_stopped_on_purpose_stays_stopped() {
    let dir = scratch_dir("stopped");
    let site = web(150, Duration::from_millis(10)).start().await;
    let server = Server::start(&EmbeddedSettings::in_dir(&dir))
        .await
        .unwrap();
    let watch = server.watch();
    let mut crawl = crawl(&dir, &site);
    site.wait_for(|log| log.len() > 40).await;
    stop(&EmbeddedSettings::in_dir(&dir), StopMode::Force)
        .await
        .unwrap();
    // That it is not started again has no event to wait for; two looks of the watchers fit in here, and on a slow machine this sees less.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!dir.join("postgres/postmaster.pid").exists());
    crawl.kill().await.unwrap();
    watch.end().await;
    server.leave().await.unwrap();
}
