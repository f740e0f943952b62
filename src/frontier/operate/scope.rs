//! Tasks judged anew by rules: a scope that changed, a shape that is parked or not any more.

use uuid::Uuid;

use super::{Operator, Result};
use crate::frontier::{
    HostId, TaskId, TaskKind,
    tries::{once, run},
};

/// Tasks that one statement looks at.
const LOOKED: i32 = 20_000;

/// Rows that one statement changes at most: finishes that touch them wait for it.
const BATCH: usize = 5_000;

/// A task that rules have decided on, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The task.
    pub task: TaskId,
    /// Its host.
    pub host: HostId,
    /// What is fetched for it.
    pub url: String,
    /// Links from a seed.
    pub depth: u16,
    /// Whether rules have a say: not of seeds and sitemaps.
    pub is_judged: bool,
    /// What it is visited for; no sitemap.
    pub kind: TaskKind,
    /// Why it is excluded; none: it is still to be visited.
    pub excluded: Option<String>,
}

/// Why a task is to be excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Against {
    /// The task.
    pub task: TaskId,
    /// A word of a closed set.
    pub reason: &'static str,
    /// More of it.
    pub detail: String,
}

impl Operator {
    /// The next tasks above an id that are still to be visited, or excluded for one of these reasons; of seeds and sitemaps only what a budget
    /// has excluded. With the last id that was looked at, `None` at the end.
    ///
    /// # Errors
    /// A database that will not do.
    pub async fn judged_after(
        &self,
        after: i64,
        reasons: &[&'static str],
    ) -> Result<(Option<i64>, Vec<Judged>)> {
        let reasons: Vec<String> = reasons.iter().map(|word| (*word).to_owned()).collect();
        let reasons = &reasons;
        let row = run!(&self.frontier, "judged_after", async |db| {
            sqlx::query_file!("src/frontier/sql/judged_after.sql", after, LOOKED, reasons)
                .fetch_one(db)
                .await
        })?;
        let columns = row.tasks.into_iter().zip(row.hosts).zip(row.urls);
        let columns = columns.zip(row.depths).zip(row.are_judged);
        let columns = columns.zip(row.assets).zip(row.reasons);
        let tasks = columns.map(
            |((((((task, host), url), depth), is_judged), is_asset), reason)| Judged {
                task: TaskId(task),
                host: HostId(host),
                url,
                depth: depth.unsigned_abs(),
                is_judged,
                kind: match is_asset {
                    true => TaskKind::Asset,
                    false => TaskKind::Page,
                },
                excluded: (!reason.is_empty()).then_some(reason),
            },
        );
        Ok((row.last, tasks.collect()))
    }

    /// Excludes tasks that are still to be visited. Answers how many.
    ///
    /// # Errors
    /// A database that will not do. What was changed before stays.
    pub async fn decide_against(&self, tasks: &[Against]) -> Result<u64> {
        let mut changed = 0;
        for batch in tasks.chunks(BATCH) {
            let ids: Vec<i64> = batch.iter().map(|against| against.task.0).collect();
            let reasons: Vec<String> = batch.iter().map(|one| one.reason.to_owned()).collect();
            let details: Vec<String> = batch.iter().map(|one| one.detail.clone()).collect();
            let (ids, reasons, details) = (&ids, &reasons, &details);
            let rows = run!(&self.frontier, "judge_tasks", async |db| {
                sqlx::query_file_scalar!("src/frontier/sql/judge_tasks.sql", ids, reasons, details)
                    .fetch_all(db)
                    .await
            })?;
            changed += rows.len() as u64;
        }
        Ok(changed)
    }

    /// Makes excluded tasks new, where their reason is one of these. Answers how many.
    ///
    /// # Errors
    /// A database that will not do. What was changed before stays.
    pub async fn bring_back(&self, tasks: &[TaskId], reasons: &[&'static str]) -> Result<u64> {
        let reasons: Vec<String> = reasons.iter().map(|word| (*word).to_owned()).collect();
        let mut changed = 0;
        for batch in tasks.chunks(BATCH) {
            let ids: Vec<i64> = batch.iter().map(|task| task.0).collect();
            let (ids, reasons) = (&ids, &reasons);
            let rows = run!(&self.frontier, "bring_back", async |db| {
                sqlx::query_file_scalar!("src/frontier/sql/bring_back.sql", ids, reasons)
                    .fetch_all(db)
                    .await
            })?;
            changed += rows.len() as u64;
        }
        Ok(changed)
    }

    /// The next tasks of a host after a digest, those that a shape has excluded or those that one may: pages that are still to be visited, and
    /// no seeds. With the last digest that was looked at, `None` at the end.
    ///
    /// # Errors
    /// A database that will not do.
    pub async fn host_tasks_after(
        &self,
        host: HostId,
        after: Uuid,
        excluded_by_shape: ExcludedByShape,
    ) -> Result<(Option<Uuid>, Vec<(TaskId, String)>)> {
        let excluded = excluded_by_shape == ExcludedByShape::Yes;
        let row = run!(&self.frontier, "host_tasks_after", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/host_tasks_after.sql",
                host.0,
                after,
                LOOKED,
                excluded
            )
            .fetch_one(db)
            .await
        })?;
        let tasks = row.tasks.into_iter().map(TaskId).zip(row.urls);
        Ok((row.last, tasks.collect()))
    }

    /// Wants a shape visited whatever its pages bring. Answers its host and the shape; `None` where none of this id is parked, or was.
    ///
    /// # Errors
    /// A database that will not do.
    pub async fn unpark_shape(&self, id: i32) -> Result<Option<(HostId, String)>> {
        let row = run!(&self.frontier, "unpark_shape", async |db| {
            sqlx::query_file!("src/frontier/sql/unpark_shape.sql", id)
                .fetch_optional(db)
                .await
        })?;
        Ok(row.map(|row| (HostId(row.host_id), row.shape)))
    }
}

/// Which tasks of a host are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExcludedByShape {
    /// Those that are excluded, reason `trap_shape`.
    Yes,
    /// Pages that are still to be visited and not claimed, but for seeds.
    No,
}
