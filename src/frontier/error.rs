//! What may go wrong between a process and the frontier.

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

/// Trouble with the frontier.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierError {
    /// The database could not be reached, or not be used, for longer than the patience.
    #[error("the database was lost: {what} did not succeed for {}", humantime::format_duration(Duration::from_secs(after.as_secs())))]
    Lost {
        /// The statement that was tried last.
        what: &'static str,
        /// How long it was tried.
        after: Duration,
        /// What the last try met.
        #[source]
        source: sqlx::Error,
    },
    /// The server has no room left on its disk.
    #[error("the database's disk is full: {what} could not be written")]
    DiskFull {
        /// The statement that met it.
        what: &'static str,
        /// What the server said.
        #[source]
        source: sqlx::Error,
    },
    /// The database refused a statement for a reason that does not pass.
    #[error("the database refused {what}")]
    Statement {
        /// The statement.
        what: &'static str,
        /// What the server said.
        #[source]
        source: sqlx::Error,
    },
    /// The crawl's settings changed while something was done under the old ones.
    #[error("the crawl's settings have changed meanwhile; nothing is lost, start again")]
    Resettled,
    /// A crawl with other rules lives in this database.
    #[error("this crawl has {what} {stored}, and {wanted} was asked for")]
    Differs {
        /// The setting.
        what: &'static str,
        /// As the database has it.
        stored: String,
        /// As it was asked for.
        wanted: String,
    },
}

impl FrontierError {
    /// Whether the data of the statement were at fault (class 22 or 23, or a value the driver could not encode): then a batch is
    /// repeated in pieces, so that one visit does not take its neighbours along.
    pub fn is_data(&self) -> bool {
        let FrontierError::Statement { source, .. } = self else {
            return false;
        };
        match source {
            sqlx::Error::Database(error) => error.code().is_some_and(|code| {
                code.starts_with("22") || code.starts_with("23") || code.starts_with("54")
            }),
            sqlx::Error::Encode(_) => true,
            _ => false,
        }
    }
}

/// Whether the trouble is of the kind that passes by itself, so that the statement is worth repeating.
///
/// Class 08 connection, 40 rollback (deadlock, serialisation), 53 resources (53100 disk full included: room may be made), 55P03 lock not
/// available, 57 operator intervention (restart, cancel, statement timeout), 58 system; 25006 read-only (a failover, or a disk that is
/// protected from filling up), 25P03 a transaction through a pooler that idled because this process was stopped. And all that a fresh
/// connection mends.
pub(super) fn passes(error: &sqlx::Error) -> bool {
    if let sqlx::Error::Database(database) = error {
        return database.code().is_some_and(|code| {
            matches!(code.get(..2), Some("08" | "40" | "53" | "57" | "58"))
                || matches!(&*code, "55P03" | "25006" | "25P03")
        }) || is_stale_plan(&**database);
    }
    is_lost(error) || matches!(error, sqlx::Error::PoolTimedOut)
}

/// Whether the connection is gone, or in a state that nobody knows: the statement may have been committed, or may be yet.
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            code.starts_with("08") || code.starts_with("57P") || code == "25P03"
        }),
        sqlx::Error::Io(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::Tls(_) => true,
        _ => false,
    }
}

/// Whether no other statement may be sent on the connection: it is lost, or what was prepared on it is no longer true.
pub(super) fn spoils(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => {
            // A session may have been read-only from its start on.
            is_lost(error)
                || is_stale_plan(&**database)
                || database.code().as_deref() == Some("25006")
        }
        _ => is_lost(error),
    }
}

/// Whether the server and the driver disagree about what was prepared on the connection: the schema was upgraded meanwhile (`cached plan
/// must not change result type`, told by the routine that raises it, since messages are translated), or somebody in between lost the
/// prepared statements (26000, 42P05).
fn is_stale_plan(error: &dyn DatabaseError) -> bool {
    match error.code().as_deref() {
        Some("26000" | "42P05") => true,
        Some("0A000") => error
            .try_downcast_ref::<PgDatabaseError>()
            .is_some_and(|error| error.routine() == Some("RevalidateCachedQuery")),
        _ => false,
    }
}

/// Whether the server said that its disk is full.
pub(super) fn is_disk_full(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some("53100"))
}
