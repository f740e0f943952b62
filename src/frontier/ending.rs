//! Whether a crawl is at its end, and what it looks like there.

use super::{
    Frontier, Result,
    tries::{once, run},
};

/// How a crawl stands when nothing is left to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Hosts that an operator parked while they have new tasks.
    pub parked: Vec<String>,
    /// Hosts that were given up, with the note that says why.
    pub given_up: Vec<(String, String)>,
    /// How many were given up in all; `given_up` holds the first hundred.
    pub given_up_total: u64,
    /// Some page answered with a status below 300.
    pub any_page: bool,
    /// Some task failed. Not looked at where there is a page.
    pub any_failed: bool,
    /// Some task was excluded by robots.txt. Not looked at where there is a page.
    pub any_robots: bool,
}

impl Frontier {
    /// Whether nothing is left to do: no task is new (but of hosts that an operator parked), claimed, or waiting for a retry.
    pub async fn finished(&self) -> Result<bool> {
        run!(self, "finished", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/finished.sql")
                .fetch_one(db)
                .await
        })
    }

    /// Whether there ever was anything to do: a crawl is begun before its first seed is there.
    pub async fn has_tasks(&self) -> Result<bool> {
        run!(self, "has_tasks", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/has_tasks.sql")
                .fetch_one(db)
                .await
        })
    }

    /// What the end of a crawl has to name.
    pub async fn ending(&self) -> Result<Ending> {
        let parked = run!(self, "parked_hosts", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/parked_hosts.sql")
                .fetch_all(db)
                .await
        })?;
        let given_up = run!(self, "given_up_hosts", async |db| {
            sqlx::query_file!("src/frontier/sql/given_up_hosts.sql")
                .fetch_all(db)
                .await
        })?;
        let looks = run!(self, "ending", async |db| {
            sqlx::query_file!("src/frontier/sql/ending.sql")
                .fetch_one(db)
                .await
        })?;
        Ok(Ending {
            parked,
            given_up_total: given_up.first().map_or(0, |row| row.total.unsigned_abs()),
            given_up: given_up
                .into_iter()
                .map(|row| (row.authority, row.note))
                .collect(),
            any_page: looks.any_page,
            any_failed: looks.any_failed,
            any_robots: looks.any_robots,
        })
    }
}
