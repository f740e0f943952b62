//! A process in the frontier: it joins, says that it lives, and leaves.

use std::time::Duration;

use super::{
    Frontier, Result, WorkerId, ms,
    tries::{once, run},
};

/// Who a process is: what others see of it, and what tells a neighbour on the same machine that it is gone.
#[derive(Clone, Debug)]
pub struct Identity {
    /// For people: host name and pid.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Boot and process namespace of the machine.
    pub machine: String,
    /// Host name.
    pub host_name: String,
    /// Process id within that namespace.
    pub pid: i32,
    /// When the process began, as its system tells it.
    pub process_started: String,
}

/// What a process says of its last minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Visits under way.
    pub in_flight: i32,
    /// Visits that ended in the last minute.
    pub visits_last_minute: i32,
    /// Median time of a claim in the last minute, ms.
    pub claim_p50_ms: Option<f32>,
    /// 99th percentile of it, ms.
    pub claim_p99_ms: Option<f32>,
}

/// A worker of the same machine that has not said that it stopped.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its id.
    pub id: WorkerId,
    /// Its process.
    pub pid: i32,
    /// When that process began.
    pub process_started: String,
}

/// A server that is only busy answers a heartbeat by then.
const SOONEST_GIVEN_UP: Duration = Duration::from_secs(5);

impl Frontier {
    /// Joins the crawl. An id is never used again.
    pub async fn join(&self, me: &Identity) -> Result<WorkerId> {
        run!(self, "worker_start", async |db, again| {
            sqlx::query_file!(
                "src/frontier/sql/worker_start.sql",
                me.name,
                me.version,
                me.machine,
                me.host_name,
                me.pid,
                me.process_started,
                ms(self.settings().dead_after),
                ms(self.settings().lease),
                again
            )
            .fetch_one(db)
            .await
            .map(|row| WorkerId(row.worker_id))
        })
    }

    /// Renews the heartbeat. False: this worker was declared dead; what it had claimed is no longer its own.
    ///
    /// One try: the caller decides when to try again, since the licence to fetch runs from before the statement that succeeded.
    pub async fn beat(&self, worker: WorkerId) -> std::result::Result<bool, sqlx::Error> {
        // Where it gets no answer, another must come in time, on another connection.
        let in_time = (self.settings().dead_after / 6).max(SOONEST_GIVEN_UP);
        let limit = self.limit().min(in_time);
        once!(self, limit, async |db| {
            let row = sqlx::query_file!("src/frontier/sql/worker_beat.sql", worker.0)
                .fetch_optional(db)
                .await?;
            Ok(row.is_some())
        })
    }

    /// Leaves the crawl. What is still claimed by it is recycled at once.
    ///
    /// One try: a process that cannot say that it leaves is missed soon enough, and need not wait to say so.
    pub async fn leave(&self, worker: WorkerId) -> std::result::Result<(), sqlx::Error> {
        once!(self, async |db| {
            sqlx::query_file!("src/frontier/sql/worker_stop.sql", worker.0)
                .execute(db)
                .await
                .map(|_| ())
        })
    }

    /// Says how the last minute was. Nothing depends on it.
    pub async fn report(&self, worker: WorkerId, report: Report) -> Result {
        run!(self, "worker_report", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/worker_report.sql",
                worker.0,
                report.in_flight,
                report.visits_last_minute,
                report.claim_p50_ms,
                report.claim_p99_ms
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }

    /// Workers of the same machine that have not stopped, this one left out.
    pub async fn neighbours(&self, machine: &str, me: WorkerId) -> Result<Vec<Neighbour>> {
        run!(self, "neighbours", async |db| {
            let rows = sqlx::query_file!("src/frontier/sql/neighbours.sql", machine, me.0)
                .fetch_all(db)
                .await?;
            Ok(rows
                .into_iter()
                .map(|row| Neighbour {
                    id: WorkerId(row.id),
                    pid: row.pid,
                    process_started: row.process_started,
                })
                .collect())
        })
    }

    /// Declares workers dead whose process is gone. Final, as by the heartbeat.
    pub async fn bury(&self, gone: &[WorkerId]) -> Result {
        let ids: Vec<i32> = gone.iter().map(|worker| worker.0).collect();
        let ids = &ids;
        run!(self, "bury_gone", async |db| {
            sqlx::query_file!("src/frontier/sql/bury_gone.sql", ids)
                .fetch_all(db)
                .await
                .map(|_| ())
        })
    }
}
