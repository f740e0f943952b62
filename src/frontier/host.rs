//! Holds and troubles of hosts: release, give back, defer, the breaker.

use std::time::Duration;

use super::{
    Frontier, HostId, Result, TaskId, WorkerId, ms,
    tries::{once, run},
};
use crate::clock::Boottime;

/// The end of a hold.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// The held host.
    pub host: HostId,
    /// The hold's version, as the claim gave it.
    pub hold: i32,
    /// When the last fetch ended. `None`: nothing was fetched in this hold, so the delay counts from now: the age of the fetch before it
    /// is not ours to tell.
    pub last_fetch: Option<Boottime>,
    /// How long that fetch took: a host with a delay rests for no less.
    pub took: Duration,
    /// Whether the host answered at all: that ends its row of failures.
    pub answered: bool,
    /// Whether what was claimed with it is fetched on, without a hold: the host has no delay after all.
    pub goes_on: bool,
}

/// A task that is given back, its fetch not begun.
#[derive(Clone, Copy, Debug)]
pub struct Giving {
    /// The task.
    pub task: TaskId,
    /// The claim's version.
    pub claim_version: i32,
}

/// What a wait means for the pace after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It stays.
    Same,
    /// The host asked for patience: where it has a delay, that doubles, to a minute at most, and wears off again.
    Slower,
}

impl Frontier {
    /// Ends holds. A hold that is no longer this worker's is left alone.
    pub async fn release(&self, worker: WorkerId, holds: &[Release]) -> Result {
        if holds.is_empty() {
            return Ok(());
        }
        let hosts: Vec<i32> = holds.iter().map(|hold| hold.host.0).collect();
        let versions: Vec<i32> = holds.iter().map(|hold| hold.hold).collect();
        let answered: Vec<bool> = holds.iter().map(|hold| hold.answered).collect();
        let took: Vec<i32> = holds.iter().map(|hold| ms(hold.took)).collect();
        let goes_on: Vec<bool> = holds.iter().map(|hold| hold.goes_on).collect();
        let (hosts, versions, answered, took, goes_on) =
            (&hosts, &versions, &answered, &took, &goes_on);
        run!(self, "release", async |db| {
            // Each try anew, and before it is sent: never too long.
            let ago: Vec<i32> = holds
                .iter()
                .map(|hold| hold.last_fetch.map_or(0, |end| ms(end.elapsed())))
                .collect();
            sqlx::query_file!(
                "src/frontier/sql/release.sql",
                worker.0,
                hosts,
                versions,
                &ago,
                answered,
                ms(self.settings().delay),
                took,
                ms(self.settings().lease),
                goes_on
            )
            .fetch_all(db)
            .await
            .map(|_| ())
        })
    }

    /// Gives back tasks whose fetch was not begun; the attempt is not counted.
    pub async fn give_back(&self, worker: WorkerId, tasks: &[Giving]) -> Result {
        if tasks.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = tasks.iter().map(|giving| giving.task.0).collect();
        let versions: Vec<i32> = tasks.iter().map(|giving| giving.claim_version).collect();
        let (ids, versions) = (&ids, &versions);
        run!(self, "give_back", async |db| {
            sqlx::query_file!("src/frontier/sql/give_back.sql", worker.0, ids, versions)
                .fetch_all(db)
                .await
                .map(|_| ())
        })
    }

    /// Ends the row of failures of hosts that answered, where no release says so (delay 0).
    pub async fn answered(&self, hosts: &[HostId]) -> Result {
        let ids: Vec<i32> = hosts.iter().map(|host| host.0).collect();
        let ids = &ids;
        run!(self, "host_answered", async |db| {
            sqlx::query_file!("src/frontier/sql/host_answered.sql", ids)
                .execute(db)
                .await
                .map(|_| ())
        })
    }

    /// Notes a host-level failure. From `limit` in a row on the host is paused, by `pauses` one after the other; a failure after the last
    /// of them gives it up. `first`: the host answered since the last failure that was noted, so this one is the first in a row. Answers whether it is given up now.
    pub async fn host_failed(
        &self,
        host: HostId,
        limit: u16,
        pauses: &[Duration],
        note: &str,
        first: bool,
    ) -> Result<bool> {
        let pauses: Vec<i64> = pauses.iter().map(|pause| i64::from(ms(*pause))).collect();
        let pauses = &pauses;
        let given_up = run!(self, "host_failed", async |db, again| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/host_failed.sql",
                host.0,
                i32::from(limit),
                pauses,
                note,
                first,
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

    /// Nobody claims from the host for this long (Retry-After). A longer wait that is already set stays.
    pub async fn defer(
        &self,
        host: HostId,
        wait: Duration,
        pace: Pace,
        note: Option<&str>,
    ) -> Result {
        run!(self, "defer", async |db, again| {
            sqlx::query_file!(
                "src/frontier/sql/defer.sql",
                host.0,
                i64::from(ms(wait)),
                note,
                pace == Pace::Slower,
                ms(self.settings().delay),
                again
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }

    /// Gives a host a delay of its own, or the crawl's again. From none to some it first waits until all leases without a hold are over.
    pub async fn set_delay(&self, host: HostId, delay: Option<Duration>) -> Result {
        run!(self, "set_delay", async |db| {
            let settings = self.settings();
            sqlx::query_file!(
                "src/frontier/sql/set_delay.sql",
                host.0,
                delay.map(ms),
                ms(settings.delay),
                ms(settings.lease)
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }

    /// Makes the waiting retries of a host new that was given up, so that the next claims fail them.
    pub(super) async fn wake_waiting(&self, host: HostId) -> Result {
        const BATCH: i32 = 1_000;
        loop {
            let woken = run!(self, "retry_given_up", async |db| {
                sqlx::query_file!("src/frontier/sql/retry_given_up.sql", host.0, BATCH)
                    .fetch_all(db)
                    .await
                    .map(|rows| rows.len())
            })?;
            if woken < BATCH as usize {
                return Ok(());
            }
        }
    }
}
