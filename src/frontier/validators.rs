//! What the last visits of claimed tasks left for a conditional request.

use super::{
    Frontier, Result, TaskId,
    tries::{once, run},
};

/// Validators of a stored answer, as its headers had them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredValidators {
    /// The task.
    pub task: TaskId,
    /// What gave the answer; `None`: the task's own URL.
    pub final_url: Option<String>,
    /// `ETag`
    pub etag: Option<String>,
    /// `Last-Modified`
    pub last_modified: Option<String>,
}

impl Frontier {
    /// What is stored of tasks whose pages are whole and were read as they would be read now: each under the fingerprint that is given with
    /// it (`pages.reading`), and with a body, if the crawl keeps bodies. Ask for tasks that were claimed before only: the others have none.
    pub async fn validators_of(
        &self,
        tasks: &[(TaskId, i32)],
        keep_bodies: bool,
    ) -> Result<Vec<StoredValidators>> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let (ids, readings): (Vec<i64>, Vec<i32>) = tasks
            .iter()
            .map(|(task, reading)| (task.0, *reading))
            .unzip();
        let (ids, readings) = (&ids, &readings);
        let rows = run!(self, "validators", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/validators.sql",
                ids,
                readings,
                keep_bodies
            )
            .fetch_all(db)
            .await
        })?;
        Ok(rows
            .into_iter()
            .map(|row| StoredValidators {
                task: TaskId(row.task_id),
                final_url: row.final_url,
                etag: row.etag,
                last_modified: row.last_modified,
            })
            .collect())
    }
}
