//! One private server a test binary, one database a test.
//!
//! The first [`TestDb::new`] starts the server in a folder of the system's temporary one and migrates a template;
//! each test works in a clone of it. A shell on a pipe outlives the test process by whatever way that ends, then
//! stops the server and removes the folder.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use pgcrawl::db::embedded::{EmbeddedSettings, Server};
use pgcrawl::db::{DbSettings, connect, migrate};
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool};
use tokio::sync::{Mutex, OnceCell};

/// The crawl that the others are cloned from.
const TEMPLATE: &str = "template";

/// A migrated database of its own, dropped some time after the test.
pub(crate) struct TestDb {
    /// Connected as the crawl connects, with at most 8 connections.
    pub(crate) pool: PgPool,
    /// The same database for another pool or another process, as the role that writes.
    pub(crate) url: SecretString,
    /// As the role that can only read.
    pub(crate) reader_url: SecretString,
    /// Name of the database.
    pub(crate) name: String,
}

impl TestDb {
    /// Clones the template.
    pub(crate) async fn new() -> Self {
        let shared = shared().await;
        let crawl = format!("test-{}", shared.next.fetch_add(1, Ordering::Relaxed));
        let name = format!("crawl_{crawl}");
        shared.clone_template(&name).await;
        let url = shared.server.url(&crawl);
        let pool = connect(&url, &DbSettings::default())
            .await
            .expect("a clone takes connections");
        Self {
            pool,
            reader_url: shared.server.reader_url(&crawl),
            url,
            name,
        }
    }

    /// A second pool, for a second process so to speak.
    pub(crate) async fn another_pool(&self, settings: &DbSettings) -> PgPool {
        connect(&self.url, settings)
            .await
            .expect("a clone takes connections")
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        // Another thread does it: there is no waiting in a drop, and the pool may still be in use.
        if let Some(shared) = SHARED.get() {
            let _ = shared.finished.send(self.name.clone());
        }
    }
}

/// A new database without any table; encoding and template as given, e.g. `SQL_ASCII`. Never dropped.
pub(crate) async fn bare_database(encoding: &str) -> SecretString {
    let shared = shared().await;
    let crawl = format!("bare-{}", shared.next.fetch_add(1, Ordering::Relaxed));
    let mut connection = shared.maintenance().await;
    let statement =
        format!("create database \"crawl_{crawl}\" template template0 encoding '{encoding}'");
    connection
        .execute(AssertSqlSafe(statement))
        .await
        .expect("a database can be created");
    shared.server.url(&crawl)
}

/// The private server of this test binary.
pub(crate) async fn server() -> &'static Server {
    &shared().await.server
}

struct Shared {
    server: Server,
    next: AtomicU32,
    cloning: Mutex<()>,
    finished: Sender<String>,
}

static SHARED: OnceCell<Shared> = OnceCell::const_new();

async fn shared() -> &'static Shared {
    SHARED.get_or_init(Shared::start).await
}

impl Shared {
    async fn start() -> Self {
        let dir = scratch_dir("server");
        let mut settings = EmbeddedSettings::in_dir(dir);
        settings.max_connections = 500;
        let server = Server::start(&settings)
            .await
            .expect("the private server starts");
        server
            .create_database(TEMPLATE)
            .await
            .expect("the template can be created");
        let pool = connect(&server.url(TEMPLATE), &DbSettings::default())
            .await
            .expect("the template takes connections");
        migrate(&pool).await.expect("the template can be migrated");
        pool.close().await;
        let options: PgConnectOptions = maintenance_url(&server)
            .parse()
            .expect("our own URL is one");
        let (finished, names) = channel::<String>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            for name in names {
                runtime.block_on(async {
                    let Ok(mut connection) = PgConnection::connect_with(&options).await else {
                        return;
                    };
                    let drop = format!("drop database if exists \"{name}\" with (force)");
                    let _ = connection.execute(AssertSqlSafe(drop)).await;
                    let _ = connection.close().await;
                });
            }
        });
        Self {
            server,
            next: AtomicU32::new(1),
            cloning: Mutex::new(()),
            finished,
        }
    }

    async fn maintenance(&self) -> PgConnection {
        PgConnection::connect(&maintenance_url(&self.server))
            .await
            .expect("the private server takes connections")
    }

    async fn clone_template(&self, name: &str) {
        let _one_at_a_time = self.cloning.lock().await;
        let mut connection = self.maintenance().await;
        let statement = format!("create database \"{name}\" template \"crawl_{TEMPLATE}\"");
        for _ in 0..200 {
            match connection.execute(AssertSqlSafe(statement.clone())).await {
                Ok(_) => {
                    connection.close().await.expect("a connection closes");
                    return;
                }
                // Somebody, autovacuum for one, is connected to the template.
                Err(error)
                    if error
                        .as_database_error()
                        .and_then(sqlx::error::DatabaseError::code)
                        .as_deref()
                        == Some("55006") =>
                {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("cloning the template: {error}"),
            }
        }
        panic!("the template stays in use");
    }
}

fn maintenance_url(server: &Server) -> String {
    server
        .url("X")
        .expose_secret()
        .replace("/crawl_X?", "/postgres?")
}

/// A new folder of the system's temporary one that any user may enter. When this process ends, a server that runs in
/// it, or in a folder in it, is stopped, and it is removed.
pub(crate) fn scratch_dir(purpose: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir =
        std::env::temp_dir().join(format!("pgcrawl-{purpose}-{}-{number}", std::process::id()));
    // Left by an earlier process of this number whose guardian was killed, too.
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).expect("the temporary folder is writable");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).expect("our own folder");
    guard(&dir);
    dir
}

/// Tells the guardian of a folder that holds data directories.
fn guard(dir: &Path) {
    static GUARDIAN: OnceLock<std::sync::Mutex<ChildStdin>> = OnceLock::new();
    let guardian = GUARDIAN.get_or_init(|| std::sync::Mutex::new(start_guardian()));
    let mut pipe = guardian.lock().expect("nobody panics with it");
    writeln!(pipe, "{}", dir.display()).expect("the guardian reads");
}

/// Reads names of folders until the pipe closes, which it does with the last of this process, kill -9 included.
/// SIGQUIT is Postgres's immediate shutdown; the pid file is that of a private folder.
const GUARDIAN: &str = r#"
dirs=
while IFS= read -r dir; do dirs="$dirs $dir"; done
for dir in $dirs; do
    for file in "$dir"/postgres/postmaster.pid "$dir"/*/postgres/postmaster.pid; do
        [ -f "$file" ] || continue
        pid=$(head -n 1 "$file")
        kill -QUIT "$pid" 2>/dev/null
        n=0; while kill -0 "$pid" 2>/dev/null && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
    done
    rm -rf "$dir" || { sleep 1; rm -rf "$dir"; }
done
"#;

#[expect(clippy::zombie_processes, reason = "it outlives us")]
fn start_guardian() -> ChildStdin {
    let mut child = Command::new("/bin/sh")
        .args(["-c", GUARDIAN])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C goes to the whole group of the terminal, and the guardian must outlive it.
        .process_group(0)
        .spawn()
        .expect("there is a shell");
    child.stdin.take().expect("it was piped")
}
