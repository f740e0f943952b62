//! What may go wrong in the laboratory.

use crate::db::DbError;
use crate::frontier::FrontierError;

/// Trouble with a run. The figures of a run that met some are not to be had: half a comparison is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A statement that should have worked did not.
    #[error("the laboratory's statement failed: {doing}")]
    Statement {
        /// What it was for.
        doing: &'static str,
        /// What the server or the driver said.
        #[source]
        source: sqlx::Error,
    },
    /// The scratch database cannot be connected to, or its schema not be made.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A statement of the frontier failed.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// Something that must come about, did not in time: a session that waits for a lock, a claim that finds tasks.
    #[error("{what} did not come about within {} s", within.as_secs())]
    Overdue {
        /// What was waited for.
        what: &'static str,
        /// For how long.
        within: std::time::Duration,
    },
    /// A worker of the laboratory panicked.
    #[error("a worker of the laboratory panicked")]
    Panicked(#[source] tokio::task::JoinError),
    /// The role may not make a schema in the database.
    #[error("no scratch schema can be made in this database")]
    NoSchema(#[source] sqlx::Error),
    /// The URL cannot take the name of the scratch schema.
    #[error("the database URL cannot be read")]
    Url(#[source] url::ParseError),
}

impl LabError {
    /// What the operator can do about it, where we know that.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            LabError::Db(error) => error.hint(),
            LabError::NoSchema(_) => Some(
                "the role needs the right to create on the database: grant create on database NAME to ROLE; or unset DATABASE_URL",
            ),
            LabError::Statement { source, .. }
                if crate::lab::session::sqlstate(source).as_deref() == Some("53300") =>
            {
                Some(
                    "the run opens up to 40 connections: raise the server's max_connections, or stop other programs",
                )
            }
            _ => None,
        }
    }
}

/// Names what a statement was for.
pub(super) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, LabError>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T, LabError> {
        self.map_err(|source| LabError::Statement { doing, source })
    }
}
