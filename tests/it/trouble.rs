//! The database in trouble: what a statement, a process and a whole crawl make of it.

mod cuts;
mod disk;
mod embedded;
mod pooler;
mod server;
mod silence;
mod stray;
mod upgrade;

use std::time::Duration;

use pgcrawl::canon::PageUrl;
use pgcrawl::db::{DbSettings, connect};
use pgcrawl::frontier::{
    Appetite, Frontier, FrontierSettings, HostId, Identity, NewLink, Seed, TaskKind, WorkerId,
};

use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::db::TestDb;
use crate::support::site::{Site, SiteBuilder};
use crate::support::wire::Wire;

/// More than any test has.
const ALL: Appetite = Appetite {
    hosts: 100,
    tasks: 1_000,
    tasks_per_host: 100,
};

/// With a delay, so that hosts are held, and without robots.txt; trouble ends a test soon.
fn settings() -> FrontierSettings {
    FrontierSettings {
        delay: Duration::from_secs(5),
        hold: Duration::from_secs(60),
        obey_robots: false,
        patience: Duration::from_secs(20),
        ..FrontierSettings::default()
    }
}

/// A database with a frontier on it that is reached by a wire.
struct Stage {
    db: TestDb,
    wire: Wire,
    frontier: Frontier,
}

impl Stage {
    async fn new() -> Stage {
        Stage::with(&DbSettings::default()).await
    }

    async fn with(connections: &DbSettings) -> Stage {
        let db = TestDb::new().await;
        // No test here is about a crash of the server, and there are many commits.
        let hasty = format!(
            "alter database \"{}\" set synchronous_commit = off",
            db.name
        );
        db.pool.execute(AssertSqlSafe(hasty)).await.unwrap();
        let wire = Wire::to(&db).await;
        let pool = connect(&wire.url().into(), connections).await.unwrap();
        let settings = FrontierSettings {
            statement_timeout: connections.statement_timeout,
            ..settings()
        };
        Stage {
            frontier: Frontier::new(pool, settings),
            db,
            wire,
        }
    }

    async fn worker(&self, pid: i32) -> WorkerId {
        self.frontier.join(&identity(pid)).await.unwrap()
    }

    async fn seed(&self, worker: WorkerId, seeds: &[&str]) {
        let seeds: Vec<Seed> = seeds
            .iter()
            .map(|seed| PageUrl::parse(seed).unwrap().into())
            .collect();
        self.frontier.enqueue_seeds(worker, &seeds).await.unwrap();
    }
}

fn identity(pid: i32) -> Identity {
    Identity {
        name: format!("machine:{pid}"),
        version: "test".to_owned(),
        machine: "a machine".to_owned(),
        host_name: "host".to_owned(),
        pid,
        process_started: "then".to_owned(),
    }
}

fn link(host: HostId, to: &str) -> NewLink {
    NewLink {
        host,
        digest: PageUrl::parse(to).unwrap().digest(&pgcrawl::canon::BASE),
        url: to.to_owned(),
        depth: 1,
        hops: 0,
        kind: TaskKind::Page,
        priority: 0,
        label: None,
        excluded: None,
    }
}

/// Pages that all link to all, each of them a little slow.
fn web(pages: usize, each: Duration) -> SiteBuilder {
    let all: String = (0..pages)
        .map(|n| format!("<a href=/{n}>{n}</a>"))
        .collect();
    (0..pages).fold(Site::builder().page("/", all.clone()), |site, n| {
        site.delay(&format!("/{n}"), each, format!("<title>{n}</title>{all}"))
    })
}
