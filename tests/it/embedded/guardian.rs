//! The tests' own server does not outlive them.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{server_pid, until};
use crate::support::db::{TestDb, server};

/// The other side of the test below: uses the tests' server until it is killed.
#[tokio::test]
#[ignore = "never ends by itself"]
async fn holds_the_server_until_it_is_killed() {
    let _db = TestDb::new().await;
    println!("\nDIR {}", server().await.data_dir().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_tests_server_ends_and_leaves_nothing_when_the_test_process_is_killed() {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "embedded::guardian::holds_the_server_until_it_is_killed",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(holder.stdout.take().unwrap());
    let dir = output
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("DIR ").map(PathBuf::from))
        .unwrap();
    let pid = server_pid(&dir);
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("the folder is removed", || !dir.exists()).await;
    let runs =
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&dir));
    assert!(!runs, "the server has ended");
}
