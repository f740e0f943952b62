//! The walk over all tasks, so many at a time.

use sqlx::AssertSqlSafe;

use super::{Change, Condition, OperateError, Operator, Result};
use crate::frontier::{
    FrontierError,
    tries::{Tries, once},
};

/// Tasks that one statement looks at. Read by id, a task costs some microseconds with its host and page in memory, and a few milliseconds where
/// each comes from a slow disk.
const MOST: i32 = 50_000;

/// Where the server's limit ended a statement, the next one looks at fewer; below this the condition itself is too slow.
const FEWEST: i32 = 100;

/// A task that the change is about, as it was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) host: i32,
    pub(super) claim_version: i32,
    pub(super) task: i64,
}

/// A walk over all tasks by id.
pub(super) struct Walk<'a> {
    operator: &'a Operator,
    which: &'a Condition,
    sql: String,
    after: i64,
    most: i32,
}

/// What one step answers: the last id it looked at (none at the end), then tasks, versions and hosts of what it found.
type Found = (Option<i64>, Vec<i64>, Vec<i32>, Vec<i32>);

impl<'a> Walk<'a> {
    pub(super) fn new(operator: &'a Operator, change: Change, which: &'a Condition) -> Walk<'a> {
        // The view is a subquery that no plan can dissolve: by a condition on its host a plan would read all of that host, each step anew.
        let sql = format!(
            "with looked as materialized (
                 select id, status, available_at, priority
                 from tasks
                 where id > $1
                 order by id
                 limit $2
             )
             select (select max(id) from looked),
                    coalesce(array_agg(task_id order by task_id), '{{}}'),
                    coalesce(array_agg(claim_version order by task_id), '{{}}'),
                    coalesce(array_agg(host_id order by task_id), '{{}}')
             from (select * from visits where task_id = any (array(select id from looked where {})) offset 0) visits
             where ({}\n)",
            change.concerns(),
            which.as_str()
        );
        Walk {
            operator,
            which,
            sql,
            after: 0,
            most: MOST,
        }
    }

    /// Looks at the next tasks: how far it came, and what it found. `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<(i64, Vec<Seen>)>> {
        let (last, tasks, versions, hosts) = self.look().await?;
        let Some(last) = last else {
            return Ok(None);
        };
        self.after = last;
        let seen = tasks.into_iter().zip(versions).zip(hosts);
        let seen = seen.map(|((task, claim_version), host)| Seen {
            host,
            claim_version,
            task,
        });
        Ok(Some((last, seen.collect())))
    }

    async fn look(&mut self) -> Result<Found> {
        let frontier = &self.operator.frontier;
        let mut tries = Tries::new("the look at tasks");
        loop {
            let looked = once!(frontier, async |db| {
                sqlx::query_as::<_, Found>(AssertSqlSafe(self.sql.clone()))
                    .bind(self.after)
                    .bind(self.most)
                    .fetch_one(db)
                    .await
            });
            let error = match looked {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            if is_timeout(&error) {
                if self.most <= FEWEST {
                    return Err(OperateError::Slow {
                        condition: self.which.as_str().to_owned(),
                        tasks: self.most,
                    });
                }
                self.most = (self.most / 4).max(FEWEST);
                continue;
            }
            if let Err(end) = tries.failed(error, frontier).await {
                return Err(self.explained(end));
            }
        }
    }

    /// A value that the condition cannot bear is the condition's fault: all else in the statement is ours.
    fn explained(&self, error: FrontierError) -> OperateError {
        OperateError::of_condition(self.which.as_str(), usize::MAX, error)
    }
}

/// Whether the server's own limit ended the statement.
fn is_timeout(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|said| said.code().as_deref() == Some("57014"))
}
