//! What may go wrong with a server of our own, in words for the operator.

use std::io;
use std::path::{Path, PathBuf};

use crate::db::DbError;

/// An error of the embedded server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// No PostgreSQL installation was found, or none of the major version that the data needs.
    #[error("no PostgreSQL {} was found (looked in {})", wanted.map_or_else(|| "14 or newer".to_owned(), |major| major.to_string()), list(searched))]
    NoInstallation {
        /// The major version of the existing data, if there is any.
        wanted: Option<u32>,
        /// The folders that were looked at.
        searched: Vec<PathBuf>,
    },
    /// The folder that the operator named does not hold `initdb`, `pg_ctl` and `postgres` of a fitting version.
    #[error("{} does not hold a usable PostgreSQL: {reason}", dir.display())]
    BadBinDir {
        /// The named folder.
        dir: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Neither `XDG_DATA_HOME` nor `HOME` is set, so there is no place for the data.
    #[error("neither XDG_DATA_HOME nor HOME is set, so there is no place for the database")]
    NoHome,
    /// We are root, Postgres refuses root, and there is no other user to run it as.
    #[error("PostgreSQL does not run as root, and there is no user \"postgres\" to run it as")]
    NoServerUser,
    /// The data belong to root, as whom Postgres does not run.
    #[error("{} belongs to root, and PostgreSQL does not run as root", path.display())]
    OwnedByRoot {
        /// The data directory.
        path: PathBuf,
    },
    /// The data belong to somebody else, and we are not root.
    #[error("{} belongs to another user (uid {uid})", path.display())]
    NotOwner {
        /// The data directory.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// The user that the server runs as cannot enter a folder on the way to its data or to its programs.
    #[error("user {user}, as whom the server runs, cannot enter {}", folder.display())]
    CannotEnter {
        /// The first folder, from the root, that it cannot enter.
        folder: PathBuf,
        /// Name of the user.
        user: String,
    },
    /// The folder is a Postgres data directory itself, or holds one that pgcrawl did not make.
    #[error("{} holds a PostgreSQL database that pgcrawl did not make: {reason}", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// How we know.
        reason: String,
    },
    /// No folder for the socket has a path short enough, or the only one is somebody else's.
    #[error("no place for the server's socket: {reason}")]
    SocketFolder {
        /// Which folder, and what is wrong with it.
        reason: String,
    },
    /// A file operation failed.
    #[error("{doing} {} failed", path.display())]
    Io {
        /// What we did, e.g. `creating`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file system of the data is full, or too full to begin.
    #[error("the disk of {} is full ({} left)", path.display(), bytesize::ByteSize(*available_bytes))]
    DiskFull {
        /// The data directory.
        path: PathBuf,
        /// What an ordinary user may still write.
        available_bytes: u64,
    },
    /// A program of the installation could not be run.
    #[error("running {} failed", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// `initdb`, or setting up the roles after it, failed. Nothing is left of the attempt.
    #[error("creating the database in {} failed: {said}", path.display())]
    Create {
        /// The data directory.
        path: PathBuf,
        /// The end of what the program said.
        said: String,
    },
    /// The server did not come up.
    #[error("the database server did not start: {said}")]
    Start {
        /// The end of its log.
        said: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The port that the operator asked for is taken.
    #[error("port {port} is taken by another program")]
    PortBusy {
        /// The port.
        port: u16,
    },
    /// A server answers at our socket, but it is not the one of our data directory.
    #[error("another server answers at {}: its {what} is {found}, not {expected}", socket.display())]
    ForeignServer {
        /// The socket's folder.
        socket: PathBuf,
        /// What was compared, e.g. `data_directory`.
        what: &'static str,
        /// What ours would say.
        expected: String,
        /// What it says.
        found: String,
    },
    /// The running server of our data directory does not take our password.
    #[error("the server of {} does not take the password in {}", path.display(), pgpass.display())]
    PasswordRefused {
        /// The data directory.
        path: PathBuf,
        /// The password file.
        pgpass: PathBuf,
    },
    /// The server runs without fsync: a crash of the machine would ruin the database.
    #[error("the server of {} runs with fsync off", path.display())]
    FsyncOff {
        /// The data directory.
        path: PathBuf,
    },
    /// The server did not stop.
    #[error("the database server did not stop: {said}")]
    Stop {
        /// What `pg_ctl` said.
        said: String,
    },
    /// Other pgcrawl processes use the server, so it is not stopped.
    #[error("other pgcrawl processes use the server of {}", path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// A crawl's name has other characters than letters, digits, `-` and `_`, or not between 1 and 40 of them.
    #[error("{name:?} cannot be a crawl's name")]
    Name {
        /// The name as given.
        name: String,
    },
    /// The crawl's database has open connections, so it is not dropped.
    #[error("the crawl {name:?} is in use")]
    CrawlInUse {
        /// The crawl.
        name: String,
    },
    /// The server answered with an error.
    #[error(transparent)]
    Database(#[from] DbError),
}

impl EmbeddedError {
    /// What the operator can do about it, where we know that.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoInstallation { wanted, .. } => install_hint(*wanted),
            Self::BadBinDir { .. } => "name the folder that holds initdb, pg_ctl and postgres, or leave it out".to_owned(),
            Self::NoHome => "give --data-dir DIR, or set HOME".to_owned(),
            Self::NoServerUser => "create one (useradd --system postgres), run pgcrawl as an ordinary user, give a --data-dir that an ordinary user owns, or set DATABASE_URL".to_owned(),
            Self::OwnedByRoot { path } => format!("chown -R postgres {}, or give another --data-dir", path.display()),
            Self::NotOwner { .. } => "run pgcrawl as that user, or give another --data-dir".to_owned(),
            Self::CannotEnter { folder, .. } => format!("give a --data-dir elsewhere (under /var/lib, say), or chmod o+x {}", folder.display()),
            Self::NotOurs { .. } => "give a folder of its own with --data-dir, or set DATABASE_URL to use that server".to_owned(),
            Self::SocketFolder { .. } => "give a --data-dir with a shorter path".to_owned(),
            Self::DiskFull { .. } => "free some space, or give a --data-dir on another disk; nothing is lost".to_owned(),
            Self::Start { log, .. } => format!("the whole log is {}", log.display()),
            Self::PortBusy { .. } => "leave the port out, and a free one is taken".to_owned(),
            Self::PasswordRefused { pgpass, .. } => format!("if you changed the role's password, write it into {}", pgpass.display()),
            Self::FsyncOff { .. } => "alter system reset fsync, and take it out of postgresql.conf".to_owned(),
            Self::InUse { .. } => "wait for them, or use --force".to_owned(),
            Self::Name { .. } => "1 to 40 letters, digits, - and _".to_owned(),
            Self::CrawlInUse { .. } => "stop what uses it first".to_owned(),
            Self::Database(error) => return error.hint().map(str::to_owned),
            _ => return None,
        })
    }

    /// For `map_err`: names the deed and the file; a full disk becomes [`EmbeddedError::DiskFull`].
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::disk_full(&path),
            _ => Self::Io {
                doing,
                path,
                source,
            },
        }
    }

    /// The disk of `path` is full; says how full.
    pub(crate) fn disk_full(path: &Path) -> Self {
        Self::DiskFull {
            path: path.to_owned(),
            available_bytes: super::home::available_bytes(path).unwrap_or(0),
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "PATH and the usual folders".to_owned();
    }
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// The command that installs a server on this system, and the other two ways out.
fn install_hint(wanted: Option<u32>) -> String {
    let major = wanted.map(|major| major.to_string()).unwrap_or_default();
    let dash = if major.is_empty() {
        String::new()
    } else {
        format!("-{major}")
    };
    let has = |program: &str| {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).exists()))
    };
    let command = if has("apt-get") {
        format!("apt-get install postgresql{dash}")
    } else if has("dnf") {
        "dnf install postgresql-server".to_owned()
    } else if has("apk") {
        format!("apk add postgresql{major}")
    } else if has("zypper") {
        format!("zypper install postgresql{major}-server")
    } else if has("pacman") {
        "pacman -S postgresql".to_owned()
    } else if has("brew") {
        let at = if major.is_empty() {
            String::new()
        } else {
            format!("@{major}")
        };
        format!("brew install postgresql{at}")
    } else {
        "see https://www.postgresql.org/download/".to_owned()
    };
    format!(
        "install it ({command}), point to it (--pg-bin DIR or PGCRAWL_PG_BIN), or use a running server (DATABASE_URL=postgres://…)"
    )
}
