//! A server of our own: a small supervisor around `initdb` and `pg_ctl` of a local PostgreSQL installation.
//!
//! The one idea: the server belongs to the *data directory*, not to a process. Whoever needs it takes a share
//! ([`Server::start`]); the first starts it, the others adopt it, the last one out stops it. A share is a file lock,
//! which the kernel gives up for a process that is killed. So nothing depends on anybody's tidy end: a server left
//! behind is adopted, a killed one is started again and recovers (by the next start, or at once by whoever keeps a
//! [`Watch`]), a half-made data directory is made anew.
//!
//! Who is adopted must be ours: it answers at the socket in our private folder, takes our password, and names our
//! data directory and the identifier in its control file. A process id proves nothing and is never relied on.
//!
//! Postgres refuses to run as root. For root, which is everybody in a container, the programs run as the owner of
//! the data directory, else as `postgres`. Such a user must be able to enter the folder, so it lies in `/var/lib`.
//!
//! Three roles: a superuser that only makes the others, the crawl's, which owns the databases of the crawls, and one
//! that can only read, for `sql`. One crawl is one database. What is in it is left to [`migrate`](super::migrate()).

use std::path::PathBuf;

mod config;
mod databases;
mod error;
mod find;
mod home;
mod initdb;
mod launch;
mod lock;
mod secrets;
mod server;
mod state;
mod status;
mod user;
mod watch;

pub use databases::Psql;
pub use error::EmbeddedError;
pub use server::Server;
pub use status::{Running, Status, StopMode, status, stop};
pub use watch::Watch;

/// Where the server is, and how it is run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbeddedSettings {
    /// The data directory. Default: `/var/lib/pgcrawl` for root, else `pgcrawl` in the XDG data folder.
    pub data_dir: Option<PathBuf>,
    /// The folder of `initdb`, `pg_ctl` and `postgres`. Default: `PGCRAWL_PG_BIN`, else they are searched for.
    pub bin_dir: Option<PathBuf>,
    /// Leave the server running when its last user leaves. Default no. It lasts until [`stop`].
    pub keep: bool,
    /// The port on loopback of a server that is started. Default: the last one, else any free one.
    pub port: Option<u16>,
    /// Most connections that a started server takes. Default 200.
    pub max_connections: u32,
}

impl Default for EmbeddedSettings {
    fn default() -> Self {
        Self {
            data_dir: None,
            bin_dir: None,
            keep: false,
            port: None,
            max_connections: 200,
        }
    }
}

impl EmbeddedSettings {
    /// The defaults, with a data directory.
    pub fn in_dir(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: Some(data_dir.into()),
            ..Self::default()
        }
    }
}
