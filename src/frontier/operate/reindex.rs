//! Indexes that have grown with what was in them once are built anew beside the running crawl.
//!
//! A queue's indexes grow with all that went through them while a snapshot was held, and vacuum gives whole pages back only. `reindex index
//! concurrently` locks out no claim and no finish, but it waits for each transaction that is older than itself, and leaves a half-built index
//! behind where it is cut off.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tokio_util::sync::CancellationToken;

use super::{OperateError, Operator, Result};
use crate::{
    db::patient_connection,
    frontier::tries::{once, run},
};

/// What claims, recycling and retries walk through.
const HOT: [&str; 6] = [
    "hosts_ready",
    "hosts_held",
    "tasks_new",
    "tasks_claimed",
    "tasks_due",
    "tasks_failed",
];

/// How often one index is tried: a deadlock with a vacuum of the same table ends one of the two.
const TRIES: u32 = 3;

/// Which indexes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// Those that the crawl walks through all the time.
    Hot,
    /// All of the crawl's tables.
    All,
}

/// Whether old transactions are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// However long they take.
    Wait,
    /// Not if one is older than this.
    Refuse(Duration),
}

/// An index and its size on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSize {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// An index that was built anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Its name.
    pub name: String,
    /// Its size before.
    pub before_bytes: u64,
    /// Its size now.
    pub after_bytes: u64,
}

/// A transaction that a concurrent reindex would wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldTransaction {
    /// Its session; `None`: it is a prepared one.
    pub pid: Option<i32>,
    /// `application_name`, or the prepared transaction's id.
    pub name: String,
    /// How long ago it began.
    pub age: Duration,
}

impl Operator {
    /// The indexes and their sizes, by name.
    ///
    /// # Errors
    /// A database that will not do.
    pub async fn indexes(&self, which: Indexes) -> Result<Vec<IndexSize>> {
        let hot = HOT.map(str::to_owned);
        let only: Option<&[String]> = match which {
            Indexes::Hot => Some(&hot),
            Indexes::All => None,
        };
        let rows = run!(&self.frontier, "index_sizes", async |db| {
            sqlx::query_file!("src/frontier/sql/index_sizes.sql", only)
                .fetch_all(db)
                .await
        })?;
        let sizes = rows.into_iter().map(|row| IndexSize {
            name: row.name,
            bytes: row.bytes.unsigned_abs(),
        });
        Ok(sizes.collect())
    }

    /// The oldest transaction of this database that a reindex would wait for, if one is older than this.
    ///
    /// # Errors
    /// A database that will not do.
    pub async fn older_than(&self, age: Duration) -> Result<Option<OldTransaction>> {
        let ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let row = run!(&self.frontier, "old_transactions", async |db| {
            sqlx::query_file!("src/frontier/sql/old_transactions.sql", ms)
                .fetch_optional(db)
                .await
        })?;
        Ok(row.map(|row| OldTransaction {
            pid: row.pid,
            name: row.name,
            age: Duration::from_millis(row.age_ms.unsigned_abs()),
        }))
    }

    /// Builds indexes anew, one after the other, after it has removed what an interrupted reindex left behind. The crawl may run. `each` hears of
    /// each one that is finished. Told to stop, it ends the one that is under way and answers those that are finished.
    ///
    /// # Errors
    /// [`OperateError::Occupied`] where another reindex is under way, [`OperateError::OldTransaction`] if that is not to be waited for, or a
    /// database that will not do. What is finished stays.
    pub async fn reindex(
        &self,
        which: Indexes,
        patience: Patience,
        stop: &CancellationToken,
        each: &mut (dyn FnMut(&Rebuilt) + Send),
    ) -> Result<Vec<Rebuilt>> {
        let indexes = self.indexes(which).await?;
        let mut db = patient_connection(self.frontier.pool()).await?;
        let mut rebuilt = Vec::with_capacity(indexes.len());
        self.make_way(patience).await?;
        self.clear(&mut db, stop).await?;
        for index in indexes {
            if stop.is_cancelled() {
                break;
            }
            self.make_way(patience).await?;
            let name = &index.name;
            if !self
                .patiently(
                    &mut db,
                    &format!("reindex index concurrently {}", quoted(name)),
                    stop,
                )
                .await?
            {
                self.clear(&mut db, &CancellationToken::new()).await?;
                break;
            }
            let after = run!(&self.frontier, "index_size", async |db| {
                sqlx::query_scalar!(
                    r#"select pg_relation_size(to_regclass(quote_ident($1))) as "bytes?""#,
                    name
                )
                .fetch_one(db)
                .await
            })?;
            let one = Rebuilt {
                before_bytes: index.bytes,
                after_bytes: after.unwrap_or(0).unsigned_abs(),
                name: index.name,
            };
            each(&one);
            rebuilt.push(one);
        }
        let _ = sqlx::Connection::close(db).await;
        Ok(rebuilt)
    }

    /// Nobody else is at it, and nothing old is in the way.
    async fn make_way(&self, patience: Patience) -> Result {
        let other = run!(&self.frontier, "other_reindex", async |db| {
            sqlx::query_scalar!(
                r#"select pid as "pid!" from pg_stat_progress_create_index where datname = current_database() limit 1"#
            )
            .fetch_optional(db)
            .await
        })?;
        if let Some(pid) = other {
            return Err(OperateError::Occupied { pid });
        }
        let Patience::Refuse(age) = patience else {
            return Ok(());
        };
        match self.older_than(age).await? {
            Some(transaction) => Err(OperateError::OldTransaction { transaction }),
            None => Ok(()),
        }
    }

    /// Removes the half-built indexes of a reindex that was cut off: they are kept up to date by each write, and nobody reads them.
    async fn clear(&self, db: &mut PgConnection, stop: &CancellationToken) -> Result {
        let left = run!(&self.frontier, "half_built_indexes", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/half_built_indexes.sql")
                .fetch_all(db)
                .await
        })?;
        for name in left {
            tracing::info!(
                index = name,
                "removing what an interrupted reindex left behind"
            );
            let sql = format!("drop index concurrently if exists {}", quoted(&name));
            if !self.patiently(db, &sql, stop).await? {
                break;
            }
        }
        Ok(())
    }

    /// Runs a statement that may wait for long; told to stop, it has the server end it. Answers whether it came to its end.
    async fn patiently(
        &self,
        db: &mut PgConnection,
        sql: &str,
        stop: &CancellationToken,
    ) -> Result<bool> {
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&mut *db)
            .await
            .map_err(refused)?;
        for attempt in 1.. {
            let run = db.execute(AssertSqlSafe(sql.to_owned()));
            tokio::pin!(run);
            let ended = tokio::select! {
                ended = &mut run => ended,
                () = stop.cancelled() => {
                    run!(&self.frontier, "cancelling", async |db| {
                        sqlx::query_scalar!("select pg_cancel_backend($1)", pid).fetch_one(db).await
                    })?;
                    // Its end is awaited: the connection is used again.
                    run.await
                }
            };
            match ended {
                Ok(_) => return Ok(true),
                Err(_) if stop.is_cancelled() => return Ok(false),
                Err(error) if attempt < TRIES && is_deadlock(&error) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(false)
    }
}

fn is_deadlock(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|said| said.code().as_deref() == Some("40P01"))
}

fn refused(source: sqlx::Error) -> OperateError {
    crate::frontier::FrontierError::Statement {
        what: "reindex",
        source,
    }
    .into()
}

/// A name as an identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
