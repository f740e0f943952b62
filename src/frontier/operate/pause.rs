//! The pause of a whole crawl: a row, so that it outlives whoever runs.

use chrono::{DateTime, Utc};

use super::{OperateError, Operator, Result};
use crate::frontier::tries::{once, run};

/// How a crawl stood before it was paused or resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// It went on.
    No,
    /// It was paused, since then.
    Since(DateTime<Utc>),
}

impl Operator {
    /// Whether the crawl is paused.
    ///
    /// # Errors
    /// [`OperateError::NoCrawl`], or a database that will not do.
    pub async fn paused(&self) -> Result<Paused> {
        let row = run!(&self.frontier, "paused", async |db| {
            sqlx::query_scalar!("select paused_at from crawl")
                .fetch_optional(db)
                .await
        })?;
        Ok(state(row.ok_or(OperateError::NoCrawl)?))
    }

    /// Pauses the crawl: from the commit on nobody claims anything. What is claimed already is visited still. Answers how it stood before.
    ///
    /// # Errors
    /// [`OperateError::NoCrawl`], or a database that will not do.
    pub async fn pause(&self) -> Result<Paused> {
        self.set_pause(true).await
    }

    /// Resumes the crawl. Answers how it stood before.
    ///
    /// # Errors
    /// [`OperateError::NoCrawl`], or a database that will not do.
    pub async fn resume(&self) -> Result<Paused> {
        self.set_pause(false).await
    }

    async fn set_pause(&self, paused: bool) -> Result<Paused> {
        let row = run!(&self.frontier, "pause", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/pause.sql", paused)
                .fetch_optional(db)
                .await
        })?;
        Ok(state(row.ok_or(OperateError::NoCrawl)?))
    }
}

fn state(paused_at: Option<DateTime<Utc>>) -> Paused {
    paused_at.map_or(Paused::No, Paused::Since)
}
