//! The frontier's protocol against a real server: single behaviours, races one by one, and whole crawls under disturbance.
//!
//! Nothing here waits for a lease or a delay to pass: moments are moved in the database instead, since its clock alone decides.

mod chaos;
mod claim;
mod costs;
mod counts;
mod crawlers;
mod finish;
mod guards;
mod hosts;
mod links;
mod parking;
mod plans;
mod protocol;
mod recycling;
mod robots;
mod rules;
mod snapshot;
mod unmodified;
mod web;

use std::time::Duration;

use pgcrawl::canon::PageUrl;
use pgcrawl::frontier::{
    Appetite, Claim, ClaimedHost, ClaimedTask, Edge, Finish, Frontier, FrontierSettings, Giving,
    HostId, Identity, NewLink, Outcome, Release, Seed, Target, TaskKind, WorkerId,
};
use pgcrawl::pages::PageRow;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::crawl::{column, number};
use crate::support::db::TestDb;

/// More than any test has.
const ALL: Appetite = Appetite {
    hosts: 1_000,
    tasks: 10_000,
    tasks_per_host: 1_000,
};

/// A database of its own with one process's frontier on it.
struct Ground {
    db: TestDb,
    frontier: Frontier,
}

/// Without a delay and without robots.txt; trouble ends a test soon.
fn settings() -> FrontierSettings {
    FrontierSettings {
        delay: Duration::ZERO,
        obey_robots: false,
        patience: Duration::from_secs(20),
        ..FrontierSettings::default()
    }
}

impl Ground {
    async fn new() -> Ground {
        Ground::with(settings()).await
    }

    async fn with(settings: FrontierSettings) -> Ground {
        let db = TestDb::new().await;
        let frontier = Frontier::new(db.pool.clone(), settings);
        Ground { db, frontier }
    }

    async fn worker(&self, name: &str) -> WorkerId {
        self.frontier.join(&identity(name)).await.unwrap()
    }

    async fn seed(&self, worker: WorkerId, seeds: &[&str]) -> u64 {
        let seeds: Vec<Seed> = seeds.iter().map(|seed| url(seed).into()).collect();
        self.frontier.enqueue_seeds(worker, &seeds).await.unwrap()
    }

    async fn claim(&self, worker: WorkerId) -> Claim {
        self.frontier.claim(worker, ALL).await.unwrap()
    }

    /// The one host that there is to claim.
    async fn claim_host(&self, worker: WorkerId) -> ClaimedHost {
        let mut claim = self.claim(worker).await;
        assert_eq!(claim.hosts.len(), 1, "{claim:?}");
        claim.hosts.remove(0)
    }

    /// The one task that there is to claim.
    async fn claim_task(&self, worker: WorkerId) -> ClaimedTask {
        let mut host = self.claim_host(worker).await;
        assert_eq!(host.tasks.len(), 1, "{host:?}");
        host.tasks.remove(0)
    }

    async fn host(&self, authority: &str) -> HostId {
        let key = url(authority).host().clone();
        self.frontier
            .hosts(std::slice::from_ref(&key))
            .await
            .unwrap()[&key]
    }

    async fn finish(&self, worker: WorkerId, batch: &[Finish]) -> Vec<bool> {
        self.frontier.finish(worker, batch).await.unwrap()
    }

    /// What an operator types, or a test that moves a moment.
    /// Until some statement waits for another.
    async fn somebody_waits(&self) {
        self.waiting(1).await;
    }

    /// Until two statements wait for others.
    async fn two_wait(&self) {
        self.waiting(2).await;
    }

    async fn waiting(&self, sessions: i64) {
        let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        let long = tokio::time::Instant::now() + Duration::from_secs(30);
        while self.number(sql).await < sessions {
            assert!(tokio::time::Instant::now() < long, "nobody waits");
        }
    }

    async fn typed(&self, sql: &str) {
        self.db
            .pool
            .execute(AssertSqlSafe(sql.to_owned()))
            .await
            .expect(sql);
    }

    async fn number(&self, sql: &str) -> i64 {
        number(&self.db.pool, sql).await
    }

    async fn column(&self, sql: &str) -> Vec<String> {
        column(&self.db.pool, sql).await
    }

    /// Milliseconds from now until a moment of the only host; null is long ago.
    async fn host_ms(&self, moment: &str) -> i64 {
        self.number(&format!(
            "select coalesce(extract(epoch from {moment} - now()) * 1000, -1e9) from hosts"
        ))
        .await
    }

    /// Ends all leases.
    async fn leases_end(&self) {
        self.typed(
            "update tasks set claimed_at = claimed_at - interval '1 day' where status = 'claimed'",
        )
        .await;
    }

    /// Lets all waits of tasks and hosts be over.
    async fn waits_end(&self) {
        self.typed("update tasks set available_at = now() where available_at is not null")
            .await;
        self.typed("update hosts set polite_at = now(), deferred_until = null")
            .await;
    }
}

fn identity(name: &str) -> Identity {
    Identity {
        name: name.to_owned(),
        version: "test".to_owned(),
        machine: "a machine".to_owned(),
        host_name: "host".to_owned(),
        pid: 1,
        process_started: "then".to_owned(),
    }
}

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).expect("a URL of a test")
}

/// The page of an answer.
fn page() -> PageRow {
    PageRow {
        http_status: Some(200),
        error: None,
        error_detail: None,
        title: Some("a title".to_owned()),
        wire_bytes: 1_234,
        ..PageRow::without_answer("", "", Duration::from_millis(5), None)
    }
}

/// A visit that had an answer and found nothing.
fn done(task: &ClaimedTask) -> Finish {
    Finish {
        task: task.id,
        claim_version: task.claim_version,
        outcome: Outcome::Done { reason: None },
        page: Some(page()),
        links: Vec::new(),
        edges: Vec::new(),
    }
}

/// A visit that had no answer.
fn failed(task: &ClaimedTask, due: Option<Duration>, charged: bool) -> Finish {
    Finish {
        outcome: Outcome::Failed {
            reason: "timeout".to_owned(),
            detail: None,
            due,
            charged,
        },
        page: Some(PageRow::without_answer(
            "timeout",
            "no answer",
            Duration::from_secs(1),
            None,
        )),
        ..done(task)
    }
}

fn link(host: HostId, to: &str) -> NewLink {
    NewLink {
        host,
        digest: url(to).digest(&pgcrawl::canon::BASE),
        url: to.to_owned(),
        depth: 1,
        hops: 0,
        kind: TaskKind::Page,
        priority: 0,
        label: None,
        excluded: None,
    }
}

/// An edge to what may be a task.
fn edge(host: HostId, to: &str) -> Edge {
    Edge {
        target: Target::Url {
            host,
            digest: url(to).digest(&pgcrawl::canon::BASE),
            url: None,
        },
        kind: "a",
        nofollow: false,
        rel: None,
        anchor: Some("a text".into()),
    }
}

fn giving(task: &ClaimedTask) -> Giving {
    Giving {
        task: task.id,
        claim_version: task.claim_version,
    }
}

/// The release of a host that was held and answered just now.
fn release(host: &ClaimedHost) -> Release {
    Release {
        host: host.id,
        hold: host.hold.expect("it is held"),
        last_fetch: Some(pgcrawl::clock::Boottime::now()),
        took: Duration::ZERO,
        answered: true,
        goes_on: false,
    }
}
