//! The rate of the whole crawl, over all machines: one row hands out stretches of time.

use std::time::Duration;

use super::{
    Frontier, Result,
    tries::{once, run},
};

/// A stretch of the crawl's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stretch {
    /// It is this process's, for the requests that it asked for.
    Taken {
        /// Until it begins, from the answer on.
        begins_in: Duration,
    },
    /// All time until then is others'.
    Later {
        /// When it may be worth asking again.
        wait: Duration,
    },
}

impl Frontier {
    /// Takes time for so many requests, `each` apart, unless it would begin later than `ahead` from now.
    ///
    /// Repeated after a lost answer it may leave a stretch unused: the crawl is slower then, never faster.
    pub async fn take_rate(
        &self,
        requests: u32,
        each: Duration,
        ahead: Duration,
    ) -> Result<Stretch> {
        let requests = i32::try_from(requests).unwrap_or(i32::MAX);
        let (each, ahead) = (each.as_secs_f64() * 1e3, ahead.as_secs_f64() * 1e3);
        let row = run!(self, "take_rate", async |db| {
            sqlx::query_file!("src/frontier/sql/take_rate.sql", requests, each, ahead)
                .fetch_one(db)
                .await
        })?;
        let span =
            Duration::try_from_secs_f64((row.begins_in_ms / 1e3).max(0.0)).unwrap_or_default();
        Ok(match row.taken {
            true => Stretch::Taken { begins_in: span },
            false => Stretch::Later { wait: span },
        })
    }
}
