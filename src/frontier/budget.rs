//! What a crawl has used of its budgets, and what hosts have of theirs.

use std::time::Duration;

use super::{
    Frontier, HostId, Result, TaskId, WorkerId,
    tries::{once, run},
};

/// What a crawl has used, over all machines and since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Visits that are in the database.
    pub visits: u64,
    /// Tasks that are claimed: each may become a visit.
    pub claimed: u64,
    /// Payload bytes as received.
    pub bytes: u64,
    /// Since it began, by the database's clock.
    pub age: Duration,
    /// Processes in it.
    pub workers: u64,
}

/// What a host has used of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostVisits {
    /// The host.
    pub host: HostId,
    /// Its tasks that were visited.
    pub visited: u64,
    /// Its tasks that are claimed: each may become a visit.
    pub claimed: u64,
}

/// Which tasks of a host are not counted among those that used its pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotCounted<'a> {
    /// What this worker has claimed.
    pub worker: Option<WorkerId>,
    /// These.
    pub tasks: &'a [TaskId],
}

impl Frontier {
    /// What the crawl has used. Reads a row a worker, and counts the claimed tasks.
    pub async fn spent(&self) -> Result<Spent> {
        let row = run!(self, "spent", async |db| {
            sqlx::query_file!("src/frontier/sql/spent.sql")
                .fetch_optional(db)
                .await
        })?;
        let count = |n: i64| n.max(0).unsigned_abs();
        Ok(row.map_or_else(Spent::default, |row| Spent {
            visits: count(row.visits),
            claimed: count(row.claimed),
            bytes: count(row.bytes),
            age: Duration::from_millis(count(row.age_ms)),
            workers: count(row.workers),
        }))
    }

    /// Tasks of hosts that were visited or are claimed, but for some, counted up to `most` a host.
    pub async fn host_visits(
        &self,
        hosts: &[HostId],
        most: u64,
        but_for: NotCounted<'_>,
    ) -> Result<Vec<HostVisits>> {
        let (ids, most) = (&ids(hosts), limit(most));
        let worker = but_for.worker.map(|worker| worker.0);
        let tasks: &Vec<i64> = &but_for.tasks.iter().map(|task| task.0).collect();
        let rows = run!(self, "host_visits", async |db| {
            sqlx::query_file!("src/frontier/sql/host_visits.sql", ids, most, worker, tasks)
                .fetch_all(db)
                .await
        })?;
        let count = |n: i64| n.max(0).unsigned_abs();
        let rows = rows.into_iter().map(|row| HostVisits {
            host: HostId(row.host_id),
            visited: count(row.visited),
            claimed: count(row.claimed),
        });
        Ok(rows.collect())
    }

    /// Tasks of hosts, counted up to `most` each.
    pub async fn host_urls(&self, hosts: &[HostId], most: u64) -> Result<Vec<(HostId, u64)>> {
        let (ids, most) = (&ids(hosts), limit(most));
        let rows = run!(self, "host_urls", async |db| {
            sqlx::query_file!("src/frontier/sql/host_urls.sql", ids, most)
                .fetch_all(db)
                .await
        })?;
        let count = |n: i64| n.max(0).unsigned_abs();
        let rows = rows.into_iter();
        Ok(rows
            .map(|row| (HostId(row.host_id), count(row.urls)))
            .collect())
    }

    /// Excludes new tasks of a host, 5,000 at most. Answers how many; until it answers 0 there may be more.
    pub async fn close_host(&self, host: HostId, reason: &str, detail: &str) -> Result<u64> {
        const MOST: i32 = 5_000;
        let closed = run!(self, "close_host", async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/close_host.sql",
                host.0,
                MOST,
                reason,
                detail
            )
            .fetch_one(db)
            .await
        })?;
        Ok(closed.max(0).unsigned_abs())
    }
}

fn ids(hosts: &[HostId]) -> Vec<i32> {
    hosts.iter().map(|host| host.0).collect()
}

fn limit(most: u64) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
