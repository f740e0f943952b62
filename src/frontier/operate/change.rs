//! Changes of tasks, in batches.

use std::{collections::HashSet, ops::ControlFlow};

use super::{
    Condition, Operator, Result,
    walk::{Seen, Walk},
};
use crate::frontier::tries::{once, run};

/// Rows that one statement changes at most: finishes that touch them wait for it.
const BATCH: usize = 10_000;

/// The reason of tasks that an operator excluded is `operator`; the condition stands in `detail`, so much of it.
const DETAIL_CHARS: usize = 500;

/// What is to be done to tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Failed tasks become new, as if they had never been tried, and their hosts are reopened.
    Retry,
    /// Done, failed and excluded tasks become new: they are visited again. Their hosts are reopened.
    Requeue,
    /// New and claimed tasks, and failed ones that wait for a retry, become excluded, reason `operator`. A visit of a claimed one that is under
    /// way is refused at its finish.
    Exclude,
    /// What is new, claimed, or will be tried or visited again gets this priority: lower first, within its host.
    Reprioritise(i16),
}

/// What a change came to, or would come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tasks that were changed; in a dry run, those that would be.
    pub tasks: u64,
    /// Hosts of those tasks.
    pub hosts: u64,
    /// Hosts among them that were given up, or rested after failures, and are open again. 0 in a dry run.
    pub reopened: u64,
    /// The id of the last task that was looked at.
    pub looked_to: i64,
    /// Whether it came to its end.
    pub ended: Ended,
}

/// How far a change came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop before it was through. The same order again does the rest.
    #[default]
    CutOff,
    /// All tasks were looked at.
    Whole,
}

impl Change {
    /// Which tasks it could be about, as SQL over the columns of `tasks`.
    pub(super) fn concerns(self) -> String {
        match self {
            Change::Retry => "status = 'failed'".to_owned(),
            Change::Requeue => "status in ('done', 'failed', 'excluded')".to_owned(),
            Change::Exclude => {
                "status in ('new', 'claimed') or status = 'failed' and available_at is not null"
                    .to_owned()
            }
            Change::Reprioritise(priority) => format!(
                "priority <> {priority} and (status in ('new', 'claimed') or available_at is not null)"
            ),
        }
    }

    fn reopens_hosts(self) -> bool {
        matches!(self, Change::Retry | Change::Requeue)
    }
}

/// A change that is under way.
struct Course<'a> {
    operator: &'a Operator,
    change: Change,
    which: &'a Condition,
    between: &'a mut (dyn FnMut(&Tally) -> ControlFlow<()> + Send),
    tally: Tally,
    hosts: HashSet<i32>,
    reopened: HashSet<i32>,
}

impl Operator {
    /// Counts what [`Operator::change`] would change now, and changes nothing. `between` as there.
    ///
    /// # Errors
    /// A condition that fails on some value or takes too long, or a database that will not do.
    pub async fn count(
        &self,
        change: Change,
        which: &Condition,
        between: &mut (dyn FnMut(&Tally) -> ControlFlow<()> + Send),
    ) -> Result<Tally> {
        let mut course = Course::new(self, change, which, between);
        let mut walk = Walk::new(self, change, which);
        while let Some((last, seen)) = walk.next().await? {
            course.tally.tasks += seen.len() as u64;
            course.hosts.extend(seen.iter().map(|seen| seen.host));
            if course.looked(last).is_break() {
                return Ok(course.tally);
            }
        }
        Ok(course.whole())
    }

    /// Changes all tasks of which the condition is true. `between` hears how far it is after each statement, and may stop it there: what was
    /// changed is changed, the rest is as it was.
    ///
    /// # Errors
    /// A condition that fails on some value or takes too long, or a database that will not do. What was changed before stays.
    pub async fn change(
        &self,
        change: Change,
        which: &Condition,
        between: &mut (dyn FnMut(&Tally) -> ControlFlow<()> + Send),
    ) -> Result<Tally> {
        let mut course = Course::new(self, change, which, between);
        let mut walk = Walk::new(self, change, which);
        // 16 bytes a task.
        let mut all: Vec<Seen> = Vec::new();
        let gathers = change.reopens_hosts() && !which.is_every();
        while let Some((last, seen)) = walk.next().await? {
            if gathers {
                all.extend(seen);
            } else if course.apply(&seen).await?.is_break() {
                return Ok(course.tally);
            }
            if course.looked(last).is_break() {
                return Ok(course.tally);
            }
        }
        // Host by host: cut off, few of them are reopened with some of their tasks left.
        all.sort_unstable_by_key(|seen| (seen.host, seen.task));
        if course.apply(&all).await?.is_break() {
            return Ok(course.tally);
        }
        Ok(course.whole())
    }
}

impl<'a> Course<'a> {
    fn new(
        operator: &'a Operator,
        change: Change,
        which: &'a Condition,
        between: &'a mut (dyn FnMut(&Tally) -> ControlFlow<()> + Send),
    ) -> Course<'a> {
        Course {
            operator,
            change,
            which,
            between,
            tally: Tally::default(),
            hosts: HashSet::new(),
            reopened: HashSet::new(),
        }
    }

    fn looked(&mut self, last: i64) -> ControlFlow<()> {
        self.tally.looked_to = last;
        self.tally.hosts = self.hosts.len() as u64;
        self.tally.reopened = self.reopened.len() as u64;
        (self.between)(&self.tally)
    }

    fn whole(mut self) -> Tally {
        let _ = self.looked(self.tally.looked_to);
        Tally {
            ended: Ended::Whole,
            ..self.tally
        }
    }

    async fn apply(&mut self, seen: &[Seen]) -> Result<ControlFlow<()>> {
        for batch in seen.chunks(BATCH) {
            let changed = match self.change {
                Change::Retry => self.reopen(batch, false).await?,
                Change::Requeue => self.reopen(batch, true).await?,
                Change::Exclude => self.exclude(batch).await?,
                Change::Reprioritise(priority) => self.reprioritise(batch, priority).await?,
            };
            self.tally.tasks += changed.len() as u64;
            self.hosts.extend(changed);
            if self.looked(self.tally.looked_to).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Makes tasks new that still stand where they were looked at, and reopens their hosts. Answers a host a task.
    async fn reopen(&mut self, batch: &[Seen], whatever_their_end: bool) -> Result<Vec<i32>> {
        let tasks = ids(batch);
        let versions: Vec<i32> = batch.iter().map(|seen| seen.claim_version).collect();
        let (tasks, versions) = (&tasks, &versions);
        let rows = run!(&self.operator.frontier, "reopen_tasks", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/reopen_tasks.sql",
                tasks,
                versions,
                whatever_their_end
            )
            .fetch_all(db)
            .await
        })?;
        let reopened = rows.iter().filter(|row| row.reopened);
        self.reopened.extend(reopened.map(|row| row.host_id));
        Ok(rows.into_iter().map(|row| row.host_id).collect())
    }

    async fn exclude(&self, batch: &[Seen]) -> Result<Vec<i32>> {
        let tasks = ids(batch);
        let detail: String = self.which.as_str().chars().take(DETAIL_CHARS).collect();
        let (tasks, detail) = (&tasks, &detail);
        Ok(run!(
            &self.operator.frontier,
            "exclude_tasks",
            async |db| {
                sqlx::query_file_scalar!(
                    "src/frontier/sql/exclude_tasks.sql",
                    tasks,
                    detail,
                    "operator"
                )
                .fetch_all(db)
                .await
            }
        )?)
    }

    async fn reprioritise(&self, batch: &[Seen], priority: i16) -> Result<Vec<i32>> {
        let tasks = ids(batch);
        let tasks = &tasks;
        Ok(run!(
            &self.operator.frontier,
            "reprioritise_tasks",
            async |db| {
                sqlx::query_file_scalar!("src/frontier/sql/reprioritise_tasks.sql", tasks, priority)
                    .fetch_all(db)
                    .await
            }
        )?)
    }
}

fn ids(batch: &[Seen]) -> Vec<i64> {
    batch.iter().map(|seen| seen.task).collect()
}
