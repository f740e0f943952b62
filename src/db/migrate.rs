//! Brings a database to this program's schema, also under a crawl that is running.
//!
//! A migration that wants a lock stands in a queue, and all who come after it stand behind it: waiting long for a lock that somebody holds
//! long would stop the crawl. So each lock is waited for shortly; then the migration is rolled back whole, the crawl goes on, and it is tried
//! again.

use std::time::Duration;

use rand::RngExt as _;
use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, PgPool};
use tokio::time::Instant;

use super::connect::patient_connection;
use super::error::{DbError, sqlstate};

/// Locking is ours, see [`migrate_within`].
static MIGRATOR: Migrator = Migrator {
    locking: false,
    ..sqlx::migrate!("./migrations")
};

/// How long a migration waits for a lock. Below the lock timeout of the crawl's statements (5 s), which stand behind it meanwhile.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause after a lock that was not had, for the statements that stood behind: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// How long locks are waited for where nobody says so.
const PATIENCE: Duration = Duration::from_secs(300);

/// Applies the migrations that the database lacks, with five minutes of patience. See [`migrate_within`].
///
/// # Errors
/// As there.
pub async fn migrate(pool: &PgPool) -> Result<(), DbError> {
    migrate_within(pool, PATIENCE).await
}

/// Applies the migrations that the database lacks; `pool` must be one of sessions.
///
/// Any number of processes may do so at once: the first takes an advisory lock, and the others wait for it however long it takes. It runs on
/// a connection of its own. Locks on tables are waited for two seconds at a time, and for `patience` in all.
///
/// # Errors
/// [`DbError::Newer`] for a database of a newer pgcrawl, [`DbError::Locked`] when somebody keeps a lock, [`DbError::Migrate`] for anything else.
pub async fn migrate_within(pool: &PgPool, patience: Duration) -> Result<(), DbError> {
    let mut connection = patient_connection(pool).await?;
    let outcome = locked(&mut connection, patience).await;
    // Closing gives up the advisory lock in any case.
    let closed = sqlx::Connection::close(connection).await;
    match outcome {
        Ok(()) => closed.map_err(|source| DbError::Query {
            doing: "closing the migrating connection",
            source,
        }),
        Err(MigrateError::VersionMissing(version)) => Err(DbError::Newer { version }),
        Err(error) if is_in_the_way(&error) => Err(DbError::Locked {
            waited: patience,
            source: error,
        }),
        Err(error) => Err(DbError::Migrate(error)),
    }
}

async fn locked(connection: &mut PgConnection, patience: Duration) -> Result<(), MigrateError> {
    // The migrator's own lock, so that earlier versions of this program wait as well. No time limit is on it.
    connection.lock().await?;
    let limit = format!("set lock_timeout = '{}ms'", LOCK_TIMEOUT.as_millis());
    connection.execute(AssertSqlSafe(limit)).await?;
    let began = Instant::now();
    let mut pause = PAUSES.0;
    loop {
        // Not `run`, whose future is not `Send` over a borrowed connection.
        match MIGRATOR.run_direct(None, connection, false).await {
            Err(error) if is_in_the_way(&error) && began.elapsed() < patience => {
                tracing::warn!(
                    %error,
                    "an upgrade of the schema waits for a lock that another session holds; the crawl goes on meanwhile (see view blocked)"
                );
            }
            ended => return ended,
        }
        let jitter = rand::rng().random_range(0.5..1.5);
        tokio::time::sleep(pause.mul_f64(jitter)).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Whether somebody else's lock ended it: nothing of the migration is left, and it may be tried again. 55P03 lock timeout, 40P01 deadlock.
fn is_in_the_way(error: &MigrateError) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    matches!(sqlstate(error).as_deref(), Some("55P03" | "40P01"))
}
