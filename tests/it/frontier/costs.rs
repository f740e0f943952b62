//! What a claim and a finish write and touch: bytes of WAL and buffers, compared with what they did (`crate::costs`).
//!
//! On a server of its own, where nobody else writes: so the whole of it counts, triggers, indexes and commit records too. Without
//! autovacuum, and without page images, which depend on when the last checkpoint was. What is left depends on the statements, the
//! tables and the server's version alone.

use std::io::Write as _;
use std::time::Duration;

use pgcrawl::db::embedded::{EmbeddedSettings, Server};
use pgcrawl::db::{DbSettings, connect, migrate};
use pgcrawl::frontier::{Appetite, ClaimedTask, Finish, Frontier, Seed, WorkerId};
use secrecy::ExposeSecret as _;
use sqlx::{Connection as _, PgConnection};

use super::{done, identity, link, settings, url};
use crate::costs::{Figure, check};
use crate::support::db::scratch_dir;

const HOSTS: usize = 100;
const CLAIMS: u64 = 10;
/// Of a claim: ten of each of ten hosts.
const TASKS: u64 = 100;
const NEW_LINKS: usize = 10;

/// The version that the figures are of.
const MAJOR: u32 = 15;

/// The same version differs by 1.5 % in WAL, and by less in buffers; one more index on tasks is a fifth of the WAL and a tenth of the
/// buffers of a page.
const TOLERANCE_PERCENT: u64 = 5;

/// Of other versions, whose records have other sizes.
const TOLERANCE_OF_OTHERS_PERCENT: u64 = 25;

/// What the server has counted since it began.
#[derive(Clone, Copy)]
struct Counters {
    wal_bytes: i64,
    buffers: i64,
}

/// Two starts of one crawl's server, the second as it is to be measured.
async fn quiet_server() -> Server {
    let settings = EmbeddedSettings::in_dir(scratch_dir("costs"));
    let server = Server::start(&settings).await.unwrap();
    let overrides = server.data_dir().join("postgres/postgresql.auto.conf");
    assert!(server.leave().await.unwrap(), "it was ours alone");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(overrides)
        .unwrap();
    writeln!(file, "autovacuum = off\nfull_page_writes = off").unwrap();
    Server::start(&settings).await.unwrap()
}

/// Reads the counters when nobody else is connected any more: a session tells what it touched when it ends, at the latest.
async fn counters(server: &Server) -> Counters {
    let url = server.url("costs");
    let mut db = PgConnection::connect(url.expose_secret()).await.unwrap();
    let others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    let long = tokio::time::Instant::now() + Duration::from_secs(30);
    while sqlx::query_scalar::<_, i64>(others)
        .fetch_one(&mut db)
        .await
        .unwrap()
        > 0
    {
        assert!(tokio::time::Instant::now() < long, "somebody stays");
    }
    let sql = "select (pg_current_wal_insert_lsn() - '0/0')::bigint,
                      sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0)
                          + coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0) + coalesce(tidx_blks_read, 0) + coalesce(tidx_blks_hit, 0))::bigint
               from pg_statio_user_tables";
    let (wal_bytes, buffers) = sqlx::query_as(sql).fetch_one(&mut db).await.unwrap();
    db.close().await.unwrap();
    Counters { wal_bytes, buffers }
}

/// Connects as a crawl does.
async fn frontier(server: &Server) -> (Frontier, sqlx::PgPool) {
    let pool = connect(&server.url("costs"), &DbSettings::default())
        .await
        .unwrap();
    (Frontier::new(pool.clone(), settings()), pool)
}

/// A worker, and more tasks than it will claim: twenty of each host.
async fn fill(server: &Server) -> WorkerId {
    let (frontier, pool) = frontier(server).await;
    migrate(&pool).await.unwrap();
    let worker = frontier.join(&identity("a")).await.unwrap();
    for n in 0..20 {
        let seeds: Vec<Seed> = (0..HOSTS)
            .map(|host| url(&format!("http://h{host}.example/{n}")).into())
            .collect();
        frontier.enqueue_seeds(worker, &seeds).await.unwrap();
    }
    pool.close().await;
    worker
}

async fn claim_all(server: &Server, worker: WorkerId) -> Vec<Vec<ClaimedTask>> {
    let (frontier, pool) = frontier(server).await;
    let appetite = Appetite {
        hosts: 10,
        tasks: TASKS as u32,
        tasks_per_host: 10,
    };
    let mut claims = Vec::new();
    for _ in 0..CLAIMS {
        let claim = frontier.claim(worker, appetite).await.unwrap();
        let tasks: Vec<_> = claim
            .hosts
            .into_iter()
            .flat_map(|host| host.tasks)
            .collect();
        assert_eq!(tasks.len() as u64, TASKS);
        claims.push(tasks);
    }
    pool.close().await;
    claims
}

async fn finish_all(server: &Server, worker: WorkerId, claims: &[Vec<ClaimedTask>]) {
    let (frontier, pool) = frontier(server).await;
    let keys: Vec<_> = (0..HOSTS)
        .map(|host| url(&format!("http://h{host}.example/")).host().clone())
        .collect();
    let ids = frontier.hosts(&keys).await.unwrap();
    let visit = |task: &ClaimedTask| {
        let mut finish = done(task);
        finish.links = (0..NEW_LINKS)
            .map(|n| {
                let host = (task.id.0 as usize + n) % HOSTS;
                link(
                    ids[&keys[host]],
                    &format!("http://h{host}.example/new/{}/{n}", task.id.0),
                )
            })
            .collect();
        finish
    };
    for tasks in claims {
        let batch: Vec<Finish> = tasks.iter().map(visit).collect();
        let accepted = frontier.finish(worker, &batch).await.unwrap();
        assert!(accepted.into_iter().all(|accepted| accepted));
    }
    pool.close().await;
}

#[tokio::test]
async fn a_claim_and_a_page_write_and_touch_as_much_as_they_did() {
    let server = quiet_server().await;
    server.create_database("costs").await.unwrap();
    let worker = fill(&server).await;
    let began = counters(&server).await;
    let claims = claim_all(&server, worker).await;
    let claimed = counters(&server).await;
    finish_all(&server, worker, &claims).await;
    let finished = counters(&server).await;
    let tolerance_percent = match server.major() {
        MAJOR => TOLERANCE_PERCENT,
        _ => TOLERANCE_OF_OTHERS_PERCENT,
    };
    server.leave().await.unwrap();

    let figure = |name, from: i64, to: i64, times| Figure {
        name,
        got: u64::try_from(to - from).expect("counters grow") / times,
        tolerance_percent,
    };
    let pages = CLAIMS * TASKS;
    check(
        "postgres",
        &[
            figure(
                "wal_bytes_a_claim",
                began.wal_bytes,
                claimed.wal_bytes,
                CLAIMS,
            ),
            figure("buffers_a_claim", began.buffers, claimed.buffers, CLAIMS),
            figure(
                "wal_bytes_a_page",
                claimed.wal_bytes,
                finished.wal_bytes,
                pages,
            ),
            figure("buffers_a_page", claimed.buffers, finished.buffers, pages),
        ],
    );
}
