//! Entries of block lists: put here by whoever has the file, kept to by all.
//!
//! An entry counts as long as one list has it. What changes gets a number, in the order of the commits; one that is gone stays as a row, so
//! that all hear of it.

use super::{
    Frontier, HostId, Result, TaskId,
    tries::{once, run},
};

/// A change of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockChange {
    /// Grows with each change; see [`Frontier::blocks_after`].
    pub change: i64,
    /// The list that it is of.
    pub list: i32,
    /// As `scope::block` reads it.
    pub entry: String,
    /// Whether this list has it.
    pub is_listed: bool,
    /// Whether some list has it.
    pub counts: bool,
}

impl Frontier {
    /// The number of a list, made where it is not there yet.
    pub async fn block_list(&self, name: &str) -> Result<i32> {
        run!(self, "block_list", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/block_list.sql", name)
                .fetch_one(db)
                .await
        })
    }

    /// Adds entries to a list, each with the number of its line; those it has already change nothing but that.
    pub async fn block(&self, list: i32, entries: &[String], lines: &[i32]) -> Result<()> {
        run!(self, "block", async |db| {
            sqlx::query_file!("src/frontier/sql/block.sql", list, entries, lines)
                .execute(db)
                .await
                .map(|_| ())
        })
    }

    /// Takes entries from a list.
    pub async fn unblock(&self, list: i32, entries: &[String]) -> Result<()> {
        run!(self, "unblock", async |db| {
            sqlx::query_file!("src/frontier/sql/unblock.sql", list, entries)
                .execute(db)
                .await
                .map(|_| ())
        })
    }

    /// Changes of entries above this number, in order, at most 10,000: ask again from the last until there are none.
    pub async fn blocks_after(&self, change: i64) -> Result<Vec<BlockChange>> {
        run!(self, "blocks_after", async |db| {
            sqlx::query_file_as!(BlockChange, "src/frontier/sql/blocks_after.sql", change)
                .fetch_all(db)
                .await
        })
    }

    /// The hosts above this id, in order, at most 5,000: id, host key, and whether there are new tasks.
    pub async fn hosts_with_new(&self, after: HostId) -> Result<Vec<(HostId, String, bool)>> {
        let rows = run!(self, "hosts_with_new", async |db| {
            sqlx::query_file!("src/frontier/sql/hosts_with_new.sql", after.0)
                .fetch_all(db)
                .await
        })?;
        let rows = rows.into_iter();
        Ok(rows
            .map(|row| (HostId(row.id), row.authority, row.has_new))
            .collect())
    }

    /// New tasks of a host behind this one, in their order, at most 5,000: priority, id and URL.
    pub async fn new_tasks_of(
        &self,
        host: HostId,
        after: (i16, TaskId),
    ) -> Result<Vec<(i16, TaskId, String)>> {
        let (priority, id) = (after.0, after.1.0);
        let rows = run!(self, "new_tasks_of", async |db| {
            sqlx::query_file!("src/frontier/sql/new_tasks_of.sql", host.0, priority, id)
                .fetch_all(db)
                .await
        })?;
        Ok(rows
            .into_iter()
            .map(|row| (row.priority, TaskId(row.id), row.url))
            .collect())
    }

    /// Decides against open tasks, for a reason. Answers how many.
    pub async fn exclude(&self, tasks: &[TaskId], reason: &str, detail: &str) -> Result<u64> {
        let ids: Vec<i64> = tasks.iter().map(|task| task.0).collect();
        let ids = &ids;
        let hosts = run!(self, "exclude_tasks", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/exclude_tasks.sql", ids, detail, reason)
                .fetch_all(db)
                .await
        })?;
        Ok(hosts.len() as u64)
    }
}
