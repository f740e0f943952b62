//! The database: connect, migrate, run a server of our own.
//!
//! [`connect()`] gives every session the settings that the frontier's protocol depends on and refuses a database that
//! cannot carry it; [`migrate()`] brings its schema up to date; [`embedded`] supervises a private server of a local
//! PostgreSQL installation, for operators who give no URL. What is in the tables is left to `frontier` and `pages`.

mod connect;
#[cfg(unix)]
pub mod embedded;
mod error;
mod migrate;
mod query;
mod session;

pub(crate) use connect::patient_connection;
pub use connect::{DbSettings, close, connect};
pub use error::DbError;
pub use migrate::{migrate, migrate_within};
pub use query::{Access, Form, Part, QueryError, TextColumn, query_text};
pub use session::{Route, Session};
