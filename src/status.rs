//! How a crawl stands, read from its views. They only read, and never count a whole table.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;

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
pub async fn status(pool: &PgPool) -> Result<Status, sqlx::Error> {
    // Ids of hosts have few gaps, and counting a million of them each second would cost more than knowing it is worth.
    let row = sqlx::query!(
        r#"select tasks as "tasks!", new as "new!", claimed as "claimed!", done as "done!", failed as "failed!", excluded as "excluded!",
                  (select coalesce(max(id), 0)::bigint from hosts) as "hosts!",
                  pages_per_second::float8 as "pages_per_second!", in_flight as "in_flight!", workers as "workers!",
                  first_activity_at, last_activity_at
           from progress"#
    )
    .fetch_one(pool)
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
