//! The raw queue of sections a, b and f: one table, as a tutorial has it.

use std::collections::HashSet;

use super::session::Session;
use super::{Lab, Result};

/// Makes the table anew, with so many new jobs and the partial index.
pub(super) async fn make(session: &mut Session, jobs: u64) -> Result {
    session
        .run(format!(
            "drop table if exists lab_jobs;
             create table lab_jobs (
                 id         bigint primary key,
                 status     text not null default 'new',
                 priority   int not null default 0,
                 host_id    int not null default 1,
                 claimed_by int
             );
             create index lab_jobs_new on lab_jobs (id) where status = 'new';
             insert into lab_jobs (id) select generate_series(1, {jobs});
             analyze lab_jobs"
        ))
        .await
}

/// Drops it.
pub(super) async fn drop(session: &mut Session) -> Result {
    session.run("drop table lab_jobs").await
}

/// So many sessions, all connected.
pub(super) async fn sessions(lab: &Lab, number: usize) -> Result<Vec<Session>> {
    let mut sessions = Vec::with_capacity(number);
    for _ in 0..number {
        sessions.push(lab.session().await?);
    }
    Ok(sessions)
}

/// Who took which jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    /// The ids each worker took, duplicates and all.
    pub(super) by_worker: Vec<Vec<i64>>,
}

impl Taken {
    /// Jobs handed out.
    pub(super) fn claims(&self) -> u64 {
        self.by_worker.iter().map(|ids| ids.len() as u64).sum()
    }

    /// Jobs handed out again that somebody had been given before.
    pub(super) fn duplicates(&self) -> u64 {
        let distinct: HashSet<i64> = self.by_worker.iter().flatten().copied().collect();
        self.claims() - distinct.len() as u64
    }

    /// The split, worker by worker; for many workers the least and the most.
    pub(super) fn split(&self) -> String {
        let counts: Vec<usize> = self.by_worker.iter().map(Vec::len).collect();
        if counts.len() <= 4 {
            let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
            return counts.join(" / ");
        }
        let least = counts.iter().min().copied().unwrap_or_default();
        let most = counts.iter().max().copied().unwrap_or_default();
        format!("{least} to {most}")
    }

    /// How far the split is from even: the most over the mean, 1 where all took the same.
    pub(super) fn unevenness(&self) -> f64 {
        let most = self
            .by_worker
            .iter()
            .map(Vec::len)
            .max()
            .unwrap_or_default();
        let mean = self.claims() as f64 / self.by_worker.len().max(1) as f64;
        most as f64 / mean.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_workers_took_counts_twice_and_once_as_a_duplicate() {
        let taken = Taken {
            by_worker: vec![vec![1, 2, 3], vec![3], vec![], vec![4, 5]],
        };
        assert_eq!((taken.claims(), taken.duplicates()), (6, 1));
        assert_eq!(taken.split(), "3 / 1 / 0 / 2");
        assert!((taken.unevenness() - 2.0).abs() < 1e-9);
    }
}
