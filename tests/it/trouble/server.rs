//! A server in trouble under a running crawl: it waits, says so, goes on by itself, and loses and doubles nothing.

use std::path::Path;
use std::time::Duration;

use pgcrawl::db::embedded::{EmbeddedSettings, Server};
use pgcrawl::db::{DbSettings, connect};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr};

use super::{Stage, web};
use crate::support::crawl::{broken_invariants, number};
use crate::support::db::{TestDb, scratch_dir};
use crate::support::program::pgcrawl;
use crate::support::site::Site;
use crate::support::wire::Wire;

const PAGES: usize = 150;

/// A crawl as a process of its own, whose words are read as they come.
struct Crawl {
    child: Child,
    words: BufReader<ChildStderr>,
    said: String,
}

impl Crawl {
    fn start(db: &TestDb, url: &str, site: &Site) -> Crawl {
        let seed = site.url("/");
        let arguments = [
            "crawl",
            &seed,
            "--delay",
            "0s",
            "--per-host",
            "4",
            "--database-url",
            url,
        ];
        let mut child = pgcrawl(db, &arguments)
            .env("PGCRAWL_DATABASE_PATIENCE", "50s")
            .env("PGCRAWL_DATABASE_STATEMENT_TIMEOUT", "1s")
            .spawn()
            .unwrap();
        let words = BufReader::new(child.stderr.take().unwrap());
        Crawl {
            child,
            words,
            said: String::new(),
        }
    }

    /// Reads on until it says this.
    async fn until_it_says(&mut self, words: &str) {
        while !self.said.contains(words) {
            let n = self.words.read_line(&mut self.said).await.unwrap();
            assert_ne!(n, 0, "it never says {words:?}: {}", self.said);
        }
    }

    /// It ended well, with each page asked for and stored once.
    async fn ends_whole(mut self, pool: &PgPool, site: &Site) -> String {
        self.words.read_to_string(&mut self.said).await.unwrap();
        let code = self.child.wait().await.unwrap().code();
        let said = self.said;
        assert_eq!(code, Some(0), "{said}");
        let stored = "select count(*) from pages where http_status = 200";
        assert_eq!(number(pool, stored).await, PAGES as i64 + 1, "{said}");
        assert_eq!(
            broken_invariants(pool).await,
            Vec::<String>::new(),
            "{said}"
        );
        let mut targets = site.targets();
        let asked = targets.len();
        targets.sort_unstable();
        targets.dedup();
        assert_eq!((asked, targets.len()), (PAGES + 2, PAGES + 2), "{said}");
        said
    }
}

async fn site() -> Site {
    web(PAGES, Duration::from_millis(10)).start().await
}

fn pid_of(dir: &Path) -> Pid {
    let text = std::fs::read_to_string(dir.join("postgres/postmaster.pid")).unwrap();
    Pid::from_raw(text.lines().next().unwrap().parse().unwrap()).unwrap()
}

/// What `pg_ctl restart` does; the signal is its mode.
async fn restarted_under_a_crawl(name: &str, mode: Signal) {
    let dir = scratch_dir(name);
    let settings = EmbeddedSettings::in_dir(&dir);
    let server = Server::start(&settings).await.unwrap();
    server.create_database("main").await.unwrap();
    let (site, db) = (site().await, TestDb::new().await);
    let mut crawl = Crawl::start(&db, server.tcp_url("main").expose_secret(), &site);
    site.wait_for(|log| log.len() > 40).await;
    let pid = pid_of(&dir);
    kill_process(pid, mode).unwrap();
    while test_kill_process(pid).is_ok() && dir.join("postgres/postmaster.pid").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    crawl.until_it_says("the database is in trouble").await;
    let again = Server::start(&settings).await.unwrap();
    let pool = connect(&again.url("main"), &DbSettings::default())
        .await
        .unwrap();
    crawl.ends_whole(&pool, &site).await;
    pool.close().await;
    again.leave().await.unwrap();
    server.leave().await.unwrap();
}

#[tokio::test]
async fn a_fast_restart_of_the_server_is_sat_out() {
    restarted_under_a_crawl("fast", Signal::INT).await;
}

#[tokio::test]
async fn an_immediate_restart_of_the_server_is_sat_out() {
    restarted_under_a_crawl("immediate", Signal::QUIT).await;
}

#[tokio::test]
async fn a_server_that_is_out_of_reach_for_a_while_is_sat_out() {
    let (site, db) = (site().await, TestDb::new().await);
    let wire = Wire::to(&db).await;
    let mut crawl = Crawl::start(&db, &wire.url(), &site);
    site.wait_for(|log| log.len() > 40).await;
    wire.kill();
    crawl.until_it_says("the database is in trouble").await;
    wire.mend();
    crawl.ends_whole(&db.pool, &site).await;
}

/// Changes the database for new sessions, and ends the crawl's.
async fn for_new_sessions(keeper: &mut PgConnection, db: &TestDb, change: &str) {
    let change = format!("alter database \"{}\" {change}", db.name);
    keeper.execute(AssertSqlSafe(change)).await.unwrap();
    keeper
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and application_name like 'pgcrawl%' and pid <> pg_backend_pid()",
        )
        .await
        .unwrap();
}

async fn sat_out_by_new_sessions(trouble: &str, relief: &str, reason: &str) {
    let (site, db) = (site().await, TestDb::new().await);
    let mut keeper = PgConnection::connect(db.url.expose_secret()).await.unwrap();
    let mut crawl = Crawl::start(&db, db.url.expose_secret(), &site);
    site.wait_for(|log| log.len() > 40).await;
    for_new_sessions(&mut keeper, &db, trouble).await;
    crawl.until_it_says(reason).await;
    keeper
        .execute("set transaction_read_only = off")
        .await
        .unwrap();
    for_new_sessions(&mut keeper, &db, relief).await;
    crawl.ends_whole(&db.pool, &site).await;
}

#[tokio::test]
async fn too_many_connections_are_sat_out_and_named() {
    sat_out_by_new_sessions(
        "connection limit 0",
        "connection limit -1",
        "too many connections",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_is_read_only_for_a_while_is_sat_out() {
    sat_out_by_new_sessions(
        "set default_transaction_read_only = on",
        "reset default_transaction_read_only",
        "read-only transaction",
    )
    .await;
}

/// Each statement that writes tasks raises this, or sleeps.
async fn sat_out(code: &str, words: &str) {
    let (site, db) = (site().await, TestDb::new().await);
    db.pool
        .execute(
            "create table trouble (code text);
             create function trouble() returns trigger language plpgsql as $$
             declare
                 raised text := (select min(code) from trouble);
             begin
                 if raised = 'sleep' then
                     perform pg_sleep(60);
                 elsif raised is not null then
                     raise exception 'trouble on purpose' using errcode = raised;
                 end if;
                 return null;
             end $$;
             create trigger trouble after update on tasks for each statement execute function trouble()",
        )
        .await
        .unwrap();
    let mut crawl = Crawl::start(&db, db.url.expose_secret(), &site);
    site.wait_for(|log| log.len() > 40).await;
    let trouble = format!("insert into trouble values ('{code}')");
    db.pool.execute(AssertSqlSafe(trouble)).await.unwrap();
    crawl.until_it_says(words).await;
    db.pool.execute("delete from trouble").await.unwrap();
    crawl.ends_whole(&db.pool, &site).await;
}

#[tokio::test]
async fn a_full_disk_is_sat_out_and_named() {
    sat_out("53100", "the database's disk is full").await;
}

#[tokio::test]
async fn statements_that_take_too_long_are_repeated() {
    sat_out("sleep", "canceling statement due to statement timeout").await;
}

#[tokio::test]
async fn a_server_out_of_memory_is_sat_out() {
    sat_out("53200", "the database is in trouble").await;
}

/// One connection, so that what happens to it happens to the next statement.
async fn on_one_connection() -> Stage {
    Stage::with(&DbSettings {
        max_connections: 1,
        ..DbSettings::default()
    })
    .await
}

#[tokio::test]
async fn plans_of_before_an_upgrade_of_the_schema_are_made_anew() {
    let stage = on_one_connection().await;
    stage.frontier.rules_after(0).await.unwrap();
    stage
        .db
        .pool
        .execute("alter table scope_rules alter column rule type varchar(5000)")
        .await
        .unwrap();
    stage.frontier.rules_after(0).await.unwrap();
}

#[tokio::test]
async fn prepared_statements_that_somebody_dropped_are_prepared_anew() {
    let stage = on_one_connection().await;
    stage.frontier.rules_after(0).await.unwrap();
    stage
        .frontier
        .pool()
        .execute("deallocate all")
        .await
        .unwrap();
    stage.frontier.rules_after(0).await.unwrap();
}

#[tokio::test]
async fn read_committed_is_set_whatever_the_role_and_the_database_say() {
    let db = TestDb::new().await;
    let serializable = format!(
        "alter database \"{0}\" set default_transaction_isolation = 'serializable';
         alter role current_user in database \"{0}\" set default_transaction_isolation = 'serializable'",
        db.name
    );
    db.pool
        .execute(sqlx::raw_sql(AssertSqlSafe(serializable)))
        .await
        .unwrap();
    let mut plain = PgConnection::connect(db.url.expose_secret()).await.unwrap();
    assert_eq!(isolation(&mut plain).await, "serializable");
    let pool = connect(&SecretString::clone(&db.url), &DbSettings::default())
        .await
        .unwrap();
    let mut ours = pool.acquire().await.unwrap();
    assert_eq!(isolation(&mut ours).await, "read committed");
}

async fn isolation(db: &mut PgConnection) -> String {
    sqlx::query_scalar("select current_setting('transaction_isolation')")
        .fetch_one(db)
        .await
        .unwrap()
}
