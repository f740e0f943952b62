//! The embedded server, in every state that one may find it in.

mod failures;
mod guardian;
mod sharing;
mod users;

use std::path::Path;
use std::time::Duration;

use pgcrawl::db::embedded::{EmbeddedSettings, Server};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{Connection, PgConnection};

/// What a test waits for comes long before this, or never.
const NEVER: Duration = Duration::from_secs(60);

async fn start(dir: &Path) -> Server {
    Server::start(&EmbeddedSettings::in_dir(dir))
        .await
        .expect("the server starts")
}

async fn connection(url: &SecretString) -> PgConnection {
    PgConnection::connect(url.expose_secret())
        .await
        .expect("the server takes connections")
}

/// When the server was started: tells one run of it from another.
async fn started_at(server: &Server) -> String {
    server
        .create_database("main")
        .await
        .expect("a database can be created");
    let mut connection = connection(&server.url("main")).await;
    let started = sqlx::query_scalar("select pg_postmaster_start_time()::text")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    started
}

fn server_pid(dir: &Path) -> i32 {
    let text = std::fs::read_to_string(dir.join("postgres/postmaster.pid")).unwrap();
    text.lines().next().unwrap().parse().unwrap()
}

fn kill_9(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits until something has become true.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < NEVER, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
