//! What any machine does every few seconds so that nothing stays lost.

use super::{
    Frontier, Result, ms,
    tries::{once, run},
};

/// Rows that one statement of the upkeep takes at most, so that none holds many locks for long.
const BATCH: i32 = 500;

impl Frontier {
    /// Buries workers whose heartbeat stopped, and recycles what they and all lost leases held. Answers how many tasks came back.
    ///
    /// Bury first, then take: the worker's row decides between its burial and a heartbeat on its way.
    pub async fn recycle(&self) -> Result<u64> {
        let settings = self.settings();
        let (lease, cap, spread) = (
            ms(settings.lease),
            i32::from(settings.max_expiries),
            ms(settings.spread),
        );
        let mut back = 0;
        loop {
            let n = run!(self, "recycle_expired", async |db| {
                sqlx::query_file!(
                    "src/frontier/sql/recycle_expired.sql",
                    lease,
                    BATCH,
                    cap,
                    spread
                )
                .fetch_all(db)
                .await
                .map(|rows| rows.len())
            })?;
            back += n as u64;
            if n < BATCH as usize {
                break;
            }
        }
        run!(self, "bury", async |db| {
            sqlx::query_file!("src/frontier/sql/bury.sql")
                .fetch_all(db)
                .await
                .map(|_| ())
        })?;
        Ok(back + self.recycle_dead().await?)
    }

    /// Takes back what stopped workers had claimed and held.
    pub async fn recycle_dead(&self) -> Result<u64> {
        let settings = self.settings();
        let (cap, spread) = (i32::from(settings.max_expiries), ms(settings.spread));
        let mut back = 0;
        loop {
            let n = run!(self, "recycle_dead", async |db| {
                sqlx::query_file!("src/frontier/sql/recycle_dead.sql", BATCH, cap, spread)
                    .fetch_all(db)
                    .await
                    .map(|rows| rows.len())
            })?;
            if n == 0 {
                break;
            }
            back += n as u64;
        }
        run!(self, "free_hosts", async |db| {
            sqlx::query_file!("src/frontier/sql/free_hosts.sql", ms(settings.delay))
                .fetch_all(db)
                .await
                .map(|_| ())
        })?;
        if !settings.ip_delay.is_zero() {
            run!(self, "free_addresses", async |db| {
                sqlx::query_file!("src/frontier/sql/free_addresses.sql", ms(settings.ip_delay))
                    .execute(db)
                    .await
                    .map(|_| ())
            })?;
        }
        run!(self, "clear", async |db| {
            sqlx::query_file!("src/frontier/sql/clear.sql")
                .execute(db)
                .await
                .map(|_| ())
        })?;
        Ok(back)
    }

    /// Makes retries and revisits new that are due. Answers how many.
    pub async fn promote(&self) -> Result<u64> {
        let mut due = 0;
        loop {
            let n = run!(self, "promote", async |db| {
                sqlx::query_file!("src/frontier/sql/promote.sql", BATCH)
                    .fetch_all(db)
                    .await
                    .map(|rows| rows.len())
            })?;
            due += n as u64;
            if n < BATCH as usize {
                return Ok(due);
            }
        }
    }

    /// Folds the noted changes of the counts by status into their row.
    pub async fn fold_counts(&self) -> Result {
        run!(self, "fold_counts", async |db| {
            sqlx::query_file!("src/frontier/sql/fold_counts.sql")
                .execute(db)
                .await
                .map(|_| ())
        })
    }
}
