//! A crawl of a test: one process's worth of it, against a test database and local sites.

#![allow(dead_code, reason = "each test module uses its own part")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pgcrawl::{
    canon::PageUrl,
    crawl::{Crawl, CrawlSettings, Hands, ScopeRules, Stop, Summary},
    fetch::{FetchSettings, Fetcher, PrivateGuard},
    frontier::{Frontier, FrontierSettings, Seed},
    scope::{Rule, Scope, ScopeKind, TrapLimits},
};
use sqlx::{AssertSqlSafe, PgPool, Row as _};

use super::db::TestDb;

/// What a test crawl is made of; change what the test is about.
pub(crate) struct Setup {
    pub(crate) crawl: CrawlSettings,
    pub(crate) frontier: FrontierSettings,
    pub(crate) fetch: FetchSettings,
    pub(crate) scope: ScopeKind,
    pub(crate) traps: TrapLimits,
    pub(crate) rules: Vec<Rule>,
    pub(crate) extra_hops: u16,
}

impl Setup {
    /// Without a delay, and with retries that take no time.
    pub(crate) fn quick() -> Setup {
        let mut crawl = CrawlSettings {
            per_host: 8,
            ..CrawlSettings::default()
        };
        crawl.retry.waits = vec![Duration::from_millis(50); 3];
        crawl.retry.dns_waits = vec![Duration::from_millis(50); 2];
        crawl.retry.breaker_pauses = vec![Duration::from_millis(100); 3];
        crawl.retry.robots_wait = Duration::from_millis(200);
        crawl.visit_budget = Duration::from_secs(10);
        Setup {
            crawl,
            frontier: FrontierSettings {
                delay: Duration::ZERO,
                ..FrontierSettings::default()
            },
            fetch: FetchSettings {
                total_timeout: Duration::from_secs(10),
                ..FetchSettings::default()
            },
            scope: ScopeKind::Host,
            traps: TrapLimits::default(),
            rules: Vec::new(),
            extra_hops: 0,
        }
    }

    /// Joins the crawl of a database.
    pub(crate) async fn join(&self, db: &TestDb) -> Crawl {
        let scope = Scope::new(self.scope, self.traps)
            .with_rules(&self.rules)
            .with_extra_hops(self.extra_hops);
        let rules = ScopeRules::new(scope);
        let guard = {
            let rules = Arc::clone(&rules);
            PrivateGuard::new(move |host| rules.names(host))
        };
        let fetcher = Fetcher::new(self.fetch.clone(), guard).expect("a fetcher of these settings");
        let frontier = Frontier::new(db.pool.clone(), self.frontier.clone());
        frontier
            .open(pgcrawl::canon::VERSION, &BTreeMap::new())
            .await
            .expect("the crawl can be opened");
        Crawl::join(
            self.crawl.clone(),
            Hands {
                frontier: frontier.clone(),
                heart: frontier,
                ears: None,
                fetcher,
                rules,
            },
            Arc::default(),
        )
        .await
        .expect("the crawl can be joined")
    }

    /// Joins, adds seeds, crawls to the end, leaves.
    pub(crate) async fn crawl(&self, db: &TestDb, seeds: &[String]) -> Summary {
        let crawl = self.join(db).await;
        crawl
            .add_seeds(&urls(seeds))
            .await
            .expect("seeds can be added");
        let summary = crawl.run(Stop::default()).await.expect("the crawl runs");
        crawl.leave().await;
        summary
    }
}

/// Seeds as the operator gives them.
pub(crate) fn urls(seeds: &[String]) -> Vec<Seed> {
    seeds
        .iter()
        .map(|seed| PageUrl::seed(seed).expect("a URL").into())
        .collect()
}

/// The first column of a query, as text.
pub(crate) async fn column(pool: &PgPool, sql: &str) -> Vec<String> {
    let wrapped = format!("select (q.*)::text from ({sql}) q");
    let rows = sqlx::query(AssertSqlSafe(wrapped))
        .fetch_all(pool)
        .await
        .expect(sql);
    rows.iter()
        .map(|row| row.get::<String, _>(0).trim_matches(['(', ')']).to_owned())
        .collect()
}

/// The single value of a query, as a number.
pub(crate) async fn number(pool: &PgPool, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("select ({sql})::bigint")))
        .fetch_one(pool)
        .await
        .expect(sql)
}

/// The invariants of a database at rest: each answer names what is wrong.
pub(crate) async fn broken_invariants(pool: &PgPool) -> Vec<String> {
    const CHECKS: [(&str, &str); 8] = [
        (
            "a host asleep with new tasks",
            "select h.authority from hosts h where not has_new and exists (select from tasks t where t.host_id = h.id and t.status = 'new')",
        ),
        (
            "a task done without its page",
            "select t.url from tasks t where status = 'done' and not exists (select from pages p where p.task_id = t.id and p.claim_version = t.claim_version)",
        ),
        (
            "a page of a visit that was never claimed",
            "select t.url from pages p join tasks t on t.id = p.task_id where p.claim_version > t.claim_version",
        ),
        (
            "counts by status that are not those of the tasks",
            "select c::text from (select new, claimed, done, failed, excluded from progress) c where c is distinct from (select row(count(*) filter (where status = 'new'), count(*) filter (where status = 'claimed'), count(*) filter (where status = 'done'), count(*) filter (where status = 'failed'), count(*) filter (where status = 'excluded')) from tasks)",
        ),
        (
            "tasks that no worker counted",
            "select 'sum' where (select coalesce(sum(seeded + discovered), 0) from worker_counts) <> (select count(*) from tasks)",
        ),
        (
            "a worker that left with claims",
            "select t.url from tasks t join workers w on w.id = t.claimed_by where t.status = 'claimed' and w.stopped_at is not null",
        ),
        (
            "a host held by a worker that left",
            "select h.authority from hosts h join workers w on w.id = h.held_by where w.stopped_at is not null and h.polite_at > now() + interval '10 seconds'",
        ),
        (
            "a task whose host is not its URL's",
            "select t.url from tasks t join hosts h on h.id = t.host_id where left(t.url, length(h.authority)) <> h.authority",
        ),
    ];
    let mut broken = Vec::new();
    for (what, sql) in CHECKS {
        for row in column(pool, sql).await {
            broken.push(format!("{what}: {row}"));
        }
    }
    broken
}
