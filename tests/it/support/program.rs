//! The program as a process of its own, on a test's database.

#![allow(dead_code, reason = "each test module uses its own part")]

use std::process::{Output, Stdio};

use secrecy::ExposeSecret as _;
use tokio::process::{Child, Command};

use super::db::TestDb;

/// The program with these arguments, or another build of it that `PGCRAWL_BIN` names.
pub(crate) fn pgcrawl(db: &TestDb, arguments: &[&str]) -> Command {
    let program = std::env::var_os("PGCRAWL_BIN");
    let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_pgcrawl").into()));
    command
        .args(arguments)
        .env("DATABASE_URL", db.url.expose_secret())
        .env("NO_COLOR", "1")
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs it to its end.
pub(crate) async fn run(db: &TestDb, arguments: &[&str]) -> Output {
    pgcrawl(db, arguments)
        .output()
        .await
        .expect("the program starts")
}

/// Its exit code and what it said on standard error.
pub(crate) fn ended(output: &Output) -> (i32, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

/// Sends a signal.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let id = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .expect("it runs");
    let pid = rustix::process::Pid::from_raw(id).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("it can be told");
}
