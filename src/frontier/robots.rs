//! robots.txt in the database: fetched by whoever holds the host, obeyed by all.

use std::time::Duration;

use super::{
    Frontier, HostId, Result, ms,
    tries::{once, run},
};
use crate::robots::MAX_CRAWL_DELAY;

/// A robots.txt answer that settles what may be fetched, to be stored for all machines.
#[derive(Clone, Debug)]
pub struct StoredRobots {
    /// Status of the last hop; `None` where the crawl settled it without an answer.
    pub http_status: Option<u16>,
    /// Redirects that were followed.
    pub hops: u8,
    /// Its Crawl-delay, as it asks. What is kept of it is [`MAX_CRAWL_DELAY`] at most.
    pub crawl_delay: Option<Duration>,
    /// Class of an error that still allows to go on.
    pub error: Option<&'static str>,
    /// What was asked for last.
    pub final_url: Option<String>,
    /// What its Sitemap lines name.
    pub sitemaps: Vec<String>,
    /// The file, at most 512 KiB; `None`: everything is allowed.
    pub body: Option<Vec<u8>>,
    /// How long it counts.
    pub ttl: Duration,
}

/// A robots.txt as the database has it.
#[derive(Debug)]
pub struct RobotsRow {
    /// Its host.
    pub host: HostId,
    /// `scheme://host[:port]`
    pub authority: String,
    /// How long it still counts.
    pub left: Duration,
    /// The file; `None`: everything is allowed.
    pub body: Option<Vec<u8>>,
}

impl Frontier {
    /// Stores a robots.txt answer. Answers the delay of the host from now on; `None` where the host is held no more, so that nothing
    /// further may be fetched for the claim: a delay appeared while others may be fetching without a hold, and their leases end first.
    pub async fn store_robots(
        &self,
        host: HostId,
        robots: &StoredRobots,
    ) -> Result<Option<Duration>> {
        let settings = self.settings();
        let delay = run!(self, "store_robots", async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/store_robots.sql",
                host.0,
                robots
                    .http_status
                    .and_then(|status| i16::try_from(status).ok()),
                i16::from(robots.hops),
                robots
                    .crawl_delay
                    .map(|delay| ms(delay.min(MAX_CRAWL_DELAY))),
                robots.error,
                robots.final_url,
                &robots.sitemaps,
                robots.body,
                i64::from(ms(robots.ttl)),
                ms(settings.delay),
                robots.crawl_delay.map(ms)
            )
            .fetch_one(db)
            .await
        })?;
        Ok(delay.map(|ms| Duration::from_millis(u64::from(ms.unsigned_abs()))))
    }

    /// Notes that robots.txt could not be had: the host waits, and after `tries` waits in a row it is given up. Answers whether it is now.
    pub async fn robots_failed(
        &self,
        host: HostId,
        wait: Duration,
        tries: u16,
        http_status: Option<u16>,
        error: Option<&str>,
        note: &str,
    ) -> Result<bool> {
        let given_up = run!(self, "robots_failed", async |db, again| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/robots_failed.sql",
                host.0,
                i64::from(ms(wait)),
                i32::from(tries),
                http_status.and_then(|status| i16::try_from(status).ok()),
                error,
                note,
                again
            )
            .fetch_optional(db)
            .await
        })?
        .unwrap_or(false);
        if given_up {
            self.wake_waiting(host).await?;
        }
        Ok(given_up)
    }

    /// What is known of these hosts' robots.txt, where it still counts.
    pub async fn robots_of(&self, hosts: &[HostId]) -> Result<Vec<RobotsRow>> {
        if hosts.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<i32> = hosts.iter().map(|host| host.0).collect();
        let ids = &ids;
        let rows = run!(self, "robots_of", async |db| {
            sqlx::query_file!("src/frontier/sql/robots_of.sql", ids)
                .fetch_all(db)
                .await
        })?;
        Ok(rows
            .into_iter()
            .map(|row| RobotsRow {
                host: HostId(row.host_id),
                authority: row.authority,
                left: Duration::from_millis(row.left_ms.unsigned_abs()),
                body: row.body,
            })
            .collect())
    }
}
