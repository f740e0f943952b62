//! Brings a database to this program's schema.

use sqlx::PgPool;
use sqlx::migrate::{MigrateError, Migrator};

use super::connect::patient_connection;
use super::error::DbError;

static MIGRATOR: Migrator = sqlx::migrate!("./migrations");

/// Applies the migrations that the database lacks.
///
/// Any number of processes may do so at once: the migrator takes an advisory lock, and the others wait for it however
/// long it takes. It runs on a connection of its own, since the pool's give up on locks after seconds.
///
/// # Errors
/// [`DbError::Newer`] for a database of a newer pgcrawl, [`DbError::Migrate`] for anything else.
pub async fn migrate(pool: &PgPool) -> Result<(), DbError> {
    let mut connection = patient_connection(pool).await?;
    // Not `run`, whose future is not `Send` over a borrowed connection.
    let outcome = MIGRATOR.run_direct(None, &mut connection, false).await;
    // Closing gives up the advisory lock in any case, also after an error that skipped the unlocking.
    let closed = sqlx::Connection::close(connection).await;
    match outcome {
        Ok(()) => closed.map_err(|source| DbError::Query {
            doing: "closing the migrating connection",
            source,
        }),
        Err(MigrateError::VersionMissing(version)) => Err(DbError::Newer { version }),
        Err(error) => Err(DbError::Migrate(error)),
    }
}
