//! Links that were left out, counted by reason: in memory as they are judged, and told every few seconds.

use std::sync::atomic::{AtomicU64, Ordering};

use super::context::Context;
use crate::{
    frontier::{FrontierError, WorkerId},
    scope::Reason,
};

const REASONS: usize = Reason::ALL.len();

/// Counts since this process joined. The links of a page that is visited again count again.
#[derive(Debug, Default)]
pub(super) struct Rejections([AtomicU64; REASONS]);

impl Rejections {
    pub(super) fn count(&self, reason: Reason) {
        self.0[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> [u64; REASONS] {
        std::array::from_fn(|n| self.0[n].load(Ordering::Relaxed))
    }
}

/// What the database has been told. A process that had to register anew begins another row.
#[derive(Debug, Default)]
pub(super) struct Told {
    worker: Option<WorkerId>,
    before: [u64; REASONS],
    last: [u64; REASONS],
}

impl Told {
    /// Tells the totals of this worker, where they have changed: a total may be told twice.
    pub(super) async fn tell(&mut self, cx: &Context) -> Result<(), FrontierError> {
        let (worker, now) = (cx.licence.worker(), cx.rejections.now());
        if self.worker != Some(worker) {
            *self = Told {
                worker: Some(worker),
                before: self.last,
                last: self.last,
            };
        }
        let changed: Vec<(&'static str, u64)> = (0..REASONS)
            .filter(|n| now[*n] != self.last[*n])
            .map(|n| (Reason::ALL[n].as_str(), now[n] - self.before[n]))
            .collect();
        if !changed.is_empty() {
            cx.frontier.report_rejections(worker, &changed).await?;
        }
        self.last = now;
        Ok(())
    }
}
