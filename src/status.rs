//! How a crawl stands, read from its views. They only read, and never count a whole table.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgExecutor;

/// The row of view `progress`, and the number of hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// All tasks.
    pub tasks: i64,
    /// To be visited.
    pub new: i64,
    /// Being visited.
    pub claimed: i64,
    /// Answered.
    pub done: i64,
    /// Without a usable answer; some of them wait for another try.
    pub failed: i64,
    /// Decided against.
    pub excluded: i64,
    /// Hosts of all tasks.
    pub hosts: i64,
    /// Of all processes, over the last minute.
    pub pages_per_second: f64,
    /// Visits under way, of all processes.
    pub in_flight: i64,
    /// Processes that said something in the last minute.
    pub workers: i64,
    /// When the first process joined.
    pub first_activity_at: Option<DateTime<Utc>>,
    /// When the last page was fetched, or the last process joined.
    pub last_activity_at: Option<DateTime<Utc>>,
}

/// Reads how a crawl stands.
///
/// # Errors
///
/// The database fails, or holds no crawl of this version.
pub async fn status(db: impl PgExecutor<'_>) -> Result<Status, sqlx::Error> {
    // Ids of hosts have few gaps, and counting a million of them each second would cost more than knowing it is worth.
    let row = sqlx::query!(
        r#"select tasks as "tasks!", new as "new!", claimed as "claimed!", done as "done!", failed as "failed!", excluded as "excluded!",
                  (select coalesce(max(id), 0)::bigint from hosts) as "hosts!",
                  pages_per_second::float8 as "pages_per_second!", in_flight as "in_flight!", workers as "workers!",
                  first_activity_at, last_activity_at
           from progress"#
    )
    .fetch_one(db)
    .await?;
    Ok(Status {
        tasks: row.tasks,
        new: row.new,
        claimed: row.claimed,
        done: row.done,
        failed: row.failed,
        excluded: row.excluded,
        hosts: row.hosts,
        pages_per_second: row.pages_per_second,
        in_flight: row.in_flight,
        workers: row.workers,
        first_activity_at: row.first_activity_at,
        last_activity_at: row.last_activity_at,
    })
}

/// A row of view `worker_progress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Worker {
    /// One process and start.
    pub worker_id: i32,
    /// Host name and pid.
    pub name: String,
    /// The machine's host name.
    pub host_name: String,
    /// Of the program.
    pub version: String,
    /// `alive`, `silent` (no heartbeat for longer than it may) or `stopped`.
    pub state: String,
    /// When it joined.
    pub started_at: DateTime<Utc>,
    /// Its last sign of life.
    pub heartbeat: DateTime<Utc>,
    /// When it left, or was declared dead.
    pub stopped_at: Option<DateTime<Utc>>,
    /// Visits under way.
    pub in_flight: i32,
    /// Over the last minute.
    pub pages_per_second: f64,
    /// Visits with an answer.
    pub done: i64,
    /// Visits without.
    pub failed: i64,
    /// Visits that are to be tried again.
    pub retried: i64,
    /// Visits whose lease was lost.
    pub refused: i64,
    /// Received.
    pub bytes: i64,
}

/// The processes of a crawl, the youngest first, at most 1,000; with `all` those that left, too.
///
/// # Errors
///
/// The database fails.
pub async fn workers(pool: &sqlx::PgPool, all: bool) -> Result<Vec<Worker>, sqlx::Error> {
    sqlx::query_as!(
        Worker,
        r#"select worker_id as "worker_id!", name as "name!", host_name as "host_name!", version as "version!", state as "state!",
                  started_at as "started_at!", heartbeat as "heartbeat!", stopped_at, coalesce(in_flight, 0) as "in_flight!",
                  coalesce(pages_per_second, 0)::float8 as "pages_per_second!", coalesce(done, 0) as "done!", coalesce(failed, 0) as "failed!",
                  coalesce(retried, 0) as "retried!", coalesce(refused, 0) as "refused!", coalesce(bytes, 0) as "bytes!"
           from worker_progress
           where $1 or stopped_at is null
           order by worker_id desc
           limit 1000"#,
        all
    )
    .fetch_all(pool)
    .await
}

/// A row of view `trap_shapes`: a shape of URLs that is parked, or was until an operator unparked it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrapShape {
    /// Its number.
    pub shape_id: i32,
    /// Its host's row.
    pub host_id: i32,
    /// Its host.
    pub authority: String,
    /// Path and names of parameters, with what varies blanked.
    pub shape: String,
    /// Pages that were folded in.
    pub pages: i32,
    /// Of the last pages so many were looked at.
    pub looked_at: i32,
    /// And so many of these are different.
    pub different: i32,
    /// And so many share the three most frequent digests.
    pub most_frequent: i32,
    /// Since when its URLs are left out.
    pub parked_at: Option<DateTime<Utc>>,
    /// Since when an operator wants it visited.
    pub kept_at: Option<DateTime<Utc>>,
    /// A URL of it.
    pub example: String,
}

/// The shapes that are or were parked, at most 10,000.
///
/// # Errors
///
/// The database fails.
pub async fn trap_shapes(pool: &sqlx::PgPool) -> Result<Vec<TrapShape>, sqlx::Error> {
    sqlx::query_as!(
        TrapShape,
        r#"select t.shape_id as "shape_id!", s.host_id as "host_id!", t.authority as "authority!", t.shape as "shape!", t.pages as "pages!",
                  t.looked_at as "looked_at!", t.different as "different!", t.most_frequent as "most_frequent!", t.parked_at, t.kept_at,
                  t.example as "example!"
           from trap_shapes t
           join url_shapes s on s.id = t.shape_id
           order by t.shape_id
           limit 10000"#
    )
    .fetch_all(pool)
    .await
}

/// Links that were left out, by reason, over all processes; the most frequent first.
///
/// # Errors
///
/// The database fails.
pub async fn rejections(pool: &sqlx::PgPool) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let rows = sqlx::query!(r#"select reason as "reason!", links as "links!" from rejections"#)
        .fetch_all(pool)
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.reason, row.links))
        .collect())
}
