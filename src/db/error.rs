//! What may go wrong between us and a database, in words for the operator.

use std::borrow::Cow;

/// An error of the database connection or of its migration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// The URL is none that a Postgres connection can be made from.
    #[error("the database URL cannot be read")]
    Url(#[source] sqlx::Error),
    /// No connection came about: nobody listens, the name is unknown, TLS failed, or the time ran out.
    #[error("no connection to the database at {at}")]
    Unreachable {
        /// Host and port, or the socket's folder; never the password.
        at: String,
        /// What the driver said.
        #[source]
        source: sqlx::Error,
    },
    /// The server answered and refused us.
    #[error("the database server at {at} refuses the connection")]
    Refused {
        /// Host and port, or the socket's folder.
        at: String,
        /// SQLSTATE, e.g. `28P01` (wrong password) or `3D000` (no such database).
        code: String,
        /// What the server said.
        #[source]
        source: sqlx::Error,
    },
    /// The server is older than the oldest one we speak to (PostgreSQL 14).
    #[error("the database server is PostgreSQL {found}, and 14 is the oldest that works")]
    TooOld {
        /// Its `server_version`.
        found: String,
    },
    /// The database's encoding is not UTF8.
    #[error("the database's encoding is {found}, not UTF8")]
    NotUtf8 {
        /// Its `server_encoding`, e.g. `SQL_ASCII`.
        found: String,
    },
    /// The server is a standby, or was made read-only.
    #[error("the database is read-only")]
    ReadOnly,
    /// A setting that the frontier's protocol depends on did not arrive, mostly because of a pooler in between.
    #[error("the database session has {name} = {found}, not {wanted}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// What we asked for.
        wanted: &'static str,
        /// What the session has.
        found: String,
    },
    /// The database was written by a newer pgcrawl: it has a migration that this one does not know.
    #[error("the database has migration {version}, which this pgcrawl does not know")]
    Newer {
        /// The unknown migration.
        version: i64,
    },
    /// An upgrade of the schema did not get its locks; the database is as it was before.
    #[error(
        "the schema could not be upgraded within {}: another session holds a lock",
        humantime::format_duration(*waited)
    )]
    Locked {
        /// How long it was tried.
        waited: std::time::Duration,
        /// What the server said last.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
    /// A migration failed; the database is as it was before that migration.
    #[error("migrating the database failed")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// A statement failed.
    #[error("{doing} failed")]
    Query {
        /// What we were about to do.
        doing: &'static str,
        /// What the server or the driver said.
        #[source]
        source: sqlx::Error,
    },
}

impl DbError {
    /// What the operator can do about it, where we know that.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Url(_) => {
                "it looks like postgres://user:password@host:5432/database; special characters in the password are written %40"
            }
            Self::Unreachable { .. } => {
                "is the server running, and does it listen there? without DATABASE_URL pgcrawl runs a server of its own"
            }
            Self::Refused { code, .. } => match code.as_str() {
                "28P01" | "28000" => {
                    "check the user and the password in the URL, and the server's pg_hba.conf"
                }
                "3D000" => {
                    "create it first: create database NAME template template0 encoding 'UTF8'"
                }
                "53300" => {
                    "the server has no free connection: raise its max_connections, or run fewer programs"
                }
                "08P01" => {
                    "a pooler seems to refuse start-up options: set database.direct_url to the server's own address beside it"
                }
                _ => return None,
            },
            Self::TooOld { .. } => {
                "upgrade the server, or let pgcrawl run one of its own (unset DATABASE_URL)"
            }
            Self::NotUtf8 { .. } => {
                "create another one: create database NAME template template0 encoding 'UTF8'"
            }
            Self::ReadOnly => "connect to the primary, or reset default_transaction_read_only",
            Self::Setting { .. } => {
                "a pooler seems to drop start-up options: set database.direct_url to the server's own address beside it"
            }
            Self::Newer { .. } => "use the newer pgcrawl, or another database",
            Self::Locked { .. } => {
                "view blocked tells who holds it; a long transaction, a report or a backup: end it, or start again later"
            }
            Self::Migrate(_) | Self::Query { .. } => return None,
        })
    }

    /// Sorts what a connection attempt said: the server's refusals apart from its silence.
    pub(crate) fn from_connect(at: String, source: sqlx::Error) -> Self {
        match sqlstate(&source) {
            Some(code) => Self::Refused { at, code, source },
            None => match source {
                sqlx::Error::Configuration(_) => Self::Url(source),
                _ => Self::Unreachable { at, source },
            },
        }
    }
}

/// The SQLSTATE of an error that a server sent.
pub(crate) fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Cow::into_owned)
}
