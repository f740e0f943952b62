//! Once more: what was visited becomes new.

use super::{
    Frontier, Result,
    tries::{once, run},
};

/// Rows of one statement: an operator's bulk load stays small, since finishes that link to these rows wait for it.
const BATCH: i32 = 10_000;

impl Frontier {
    /// Makes all done and failed tasks new, their attempts uncounted, and takes back hosts that were given up. Answers how many tasks.
    ///
    /// In batches, each a statement of its own: cut off between two, the rest is refreshed by the next call.
    pub async fn refresh(&self) -> Result<u64> {
        run!(self, "refresh_hosts", async |db| {
            sqlx::query_file!("src/frontier/sql/refresh_hosts.sql")
                .execute(db)
                .await
                .map(|_| ())
        })?;
        let mut after = 0;
        let mut refreshed = 0;
        loop {
            let batch = run!(self, "refresh_tasks", async |db| {
                sqlx::query_file!("src/frontier/sql/refresh_tasks.sql", after, BATCH)
                    .fetch_one(db)
                    .await
            })?;
            refreshed += batch.refreshed.unsigned_abs();
            match batch.last {
                Some(last) => after = last,
                None => return Ok(refreshed),
            }
        }
    }
}
