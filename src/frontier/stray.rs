//! A claim whose answer was lost with its connection: what it took is given back at once, and not only when its lease ends.
//!
//! A worker claims one at a time, and each answer tells the database's moment of its claim. So what stands claimed by the worker after the
//! last such moment is from a claim that was never answered, and nobody fetches for it. Should the database's clock have been set back
//! meanwhile, or should the lost statement still be on its way, it is not found here and comes back with its lease.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{
    Frontier, Result, WorkerId,
    tries::{once, run},
};

/// The latest answered claim of each worker that this process was, in microseconds of the database's clock since 1970.
#[derive(Debug, Default)]
pub(super) struct Answered(Mutex<HashMap<WorkerId, i64>>);

impl Answered {
    /// Notes an answered claim. The latest moment counts: a clock that was set back must not make an earlier answered claim look lost.
    pub(super) fn note(&self, worker: WorkerId, at_us: i64) {
        let mut answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = answered.entry(worker).or_insert(at_us);
        *latest = at_us.max(*latest);
    }

    fn latest(&self, worker: WorkerId) -> Option<i64> {
        let answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answered.get(&worker).copied()
    }
}

impl Frontier {
    /// Gives back what the worker has claimed and does not know of, and releases the hosts that it holds for that.
    pub(super) async fn give_back_stray(&self, worker: WorkerId) -> Result {
        let known = self.answered.latest(worker);
        let tasks = run!(self, "stray", async |db| {
            sqlx::query_file!("src/frontier/sql/stray.sql", worker.0, known)
                .fetch_all(db)
                .await
                .map(|rows| rows.len())
        })?;
        if tasks > 0 {
            tracing::info!(
                tasks,
                "the answer of a claim was lost; gave back what it took"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Answered, WorkerId};

    #[test]
    fn a_clock_that_was_set_back_makes_no_answered_claim_a_lost_one() {
        let answered = Answered::default();
        assert_eq!(answered.latest(WorkerId(1)), None);
        for at in [5, 9, 7] {
            answered.note(WorkerId(1), at);
        }
        assert_eq!(answered.latest(WorkerId(1)), Some(9));
        assert_eq!(answered.latest(WorkerId(2)), None);
    }
}
