//! What a data directory says about its server, and whether a server is the one of that directory.
//!
//! `postmaster.pid` tells where to knock and what to wait for. Whether the answer comes from *our* server is decided
//! by what it says over a connection, never by the process id.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, test_kill_process, waitpid};
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{Connection, PgConnection};

use super::error::EmbeddedError;
use super::secrets::WRITER;
use crate::db::connect::open;
use crate::db::error::{DbError, sqlstate};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) socket_folder: PathBuf,
    pub(crate) port: u16,
}

impl Endpoint {
    /// Options for a connection through the socket, untouched by libpq's variables.
    pub(crate) fn options(
        &self,
        role: &str,
        password: &SecretString,
        database: &str,
    ) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket_folder)
            .port(self.port)
            .username(role)
            .password(password.expose_secret())
            .database(database)
            .ssl_mode(PgSslMode::Disable)
            .application_name("pgcrawl supervisor")
    }
}

/// What the server says about itself in the eighth line of `postmaster.pid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Starting, recovering, stopping, or not yet written: wait.
    Busy,
    /// It takes connections.
    Ready,
}

/// The part of `postmaster.pid` that we use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: i32,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) phase: Phase,
}

impl PidFile {
    fn path(pgdata: &Path) -> PathBuf {
        pgdata.join("postmaster.pid")
    }

    /// Reads it; `None` if there is none, which a stopped server leaves, or nothing in it yet.
    pub(crate) fn read(pgdata: &Path) -> Result<Option<Self>, EmbeddedError> {
        let path = Self::path(pgdata);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EmbeddedError::io("reading", &path)(error)),
        }
    }

    /// Lines: pid, data directory, start time, port, socket folder, address, shared memory, phase. The last come late.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let pid = lines.first()?.parse().ok()?;
        let port = lines.get(3).and_then(|line| line.parse().ok());
        let folder = lines.get(4).filter(|line| !line.is_empty());
        let endpoint = folder.zip(port).map(|(folder, port)| Endpoint {
            socket_folder: PathBuf::from(*folder),
            port,
        });
        let phase = if lines.get(7) == Some(&"ready") {
            Phase::Ready
        } else {
            Phase::Busy
        };
        Some(Self {
            pid,
            endpoint,
            phase,
        })
    }

    /// Whether its process lives and works in `pgdata`. Tells only whether waiting makes sense.
    pub(crate) fn is_alive(&self, pgdata: &Path) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return false;
        };
        // As process 1 of a container we inherit the server; a dead one stays until somebody asks for it.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        match test_kill_process(pid) {
            Ok(()) | Err(rustix::io::Errno::PERM) => {}
            Err(_) => return false,
        }
        // The number may be somebody else's by now. A server's working directory is its data directory.
        match fs::read_link(format!("/proc/{}/cwd", self.pid)) {
            Ok(cwd) => fs::canonicalize(pgdata).is_ok_and(|pgdata| cwd == pgdata),
            Err(error) => {
                !(error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self/cwd").exists())
            }
        }
    }

    /// Puts our own process id into the file of a dead server whose number lives on as another process.
    ///
    /// A server refuses to start while the process of the file lives, unless that is the one that starts it. It still
    /// checks the shared memory named in the file, so that it cannot start beside orphaned backends.
    pub(crate) fn disown(pgdata: &Path) -> Result<(), EmbeddedError> {
        let path = Self::path(pgdata);
        let Ok(text) = fs::read_to_string(&path) else {
            return Ok(());
        };
        if Self::parse(&text).is_some_and(|file| !file.is_alive(pgdata))
            && let Some((_, rest)) = text.split_once('\n')
        {
            fs::write(&path, format!("{}\n{rest}", std::process::id()))
                .map_err(EmbeddedError::io("writing", &path))?;
        }
        Ok(())
    }
}

/// What knocking at an endpoint brought.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Our server, and it takes connections.
    Ours,
    /// Nobody there.
    Silence,
    /// A server that takes no connections now: it starts, recovers or stops.
    NotNow,
}

/// Knocks, and checks that who answers is the server of `pgdata`, with fsync on.
pub(crate) async fn knock(
    pgdata: &Path,
    pgpass: &Path,
    endpoint: &Endpoint,
    password: &SecretString,
) -> Result<Answer, EmbeddedError> {
    let options = endpoint.options(WRITER, password, "postgres");
    let mut connection = match open(&options, Duration::from_secs(5)).await {
        Ok(connection) => connection,
        Err(error) => {
            return match sqlstate(&error).as_deref() {
                Some("57P03") => Ok(Answer::NotNow),
                Some("28P01" | "28000") => Err(EmbeddedError::PasswordRefused {
                    path: pgdata.to_owned(),
                    pgpass: pgpass.to_owned(),
                }),
                Some(_) => Err(DbError::from_connect(
                    endpoint.socket_folder.display().to_string(),
                    error,
                )
                .into()),
                None => Ok(Answer::Silence),
            };
        }
    };
    let facts = ask(&mut connection).await;
    let _ = connection.close().await;
    let (directory, identifier, fsync) = facts.map_err(|source| DbError::Query {
        doing: "asking the server who it is",
        source,
    })?;
    let foreign = |what, expected: String, found: String| EmbeddedError::ForeignServer {
        socket: endpoint.socket_folder.clone(),
        what,
        expected,
        found,
    };
    let same_folder = fs::canonicalize(pgdata)
        .ok()
        .zip(fs::canonicalize(&directory).ok())
        .is_some_and(|(a, b)| a == b);
    if !same_folder {
        return Err(foreign(
            "data_directory",
            pgdata.display().to_string(),
            directory,
        ));
    }
    let expected = system_identifier(pgdata)?;
    if identifier != expected {
        return Err(foreign("system identifier", expected, identifier));
    }
    if fsync != "on" {
        return Err(EmbeddedError::FsyncOff {
            path: pgdata.to_owned(),
        });
    }
    Ok(Answer::Ours)
}

async fn ask(connection: &mut PgConnection) -> Result<(String, String, String), sqlx::Error> {
    sqlx::query_as(
        "select current_setting('data_directory'), system_identifier::text, current_setting('fsync')
         from pg_control_system()",
    )
    .fetch_one(connection)
    .await
}

/// The number that `initdb` gave this data directory: the first eight bytes of its control file.
fn system_identifier(pgdata: &Path) -> Result<String, EmbeddedError> {
    let identifier = i64::from_ne_bytes(control(pgdata, 0)?);
    Ok(identifier.to_string())
}

/// Whether the last server of this data directory was stopped in order, rather than killed: the state in its control file, a C enumeration
/// behind the identifier and two version numbers (PostgreSQL's `pg_control.h`, the same since 8.3).
pub(crate) fn was_shut_down(pgdata: &Path) -> Result<bool, EmbeddedError> {
    const DB_SHUTDOWNED: i32 = 1;
    const DB_SHUTDOWNED_IN_RECOVERY: i32 = 2;
    let state = i32::from_ne_bytes(control(pgdata, 16)?);
    Ok(matches!(state, DB_SHUTDOWNED | DB_SHUTDOWNED_IN_RECOVERY))
}

/// Bytes of the control file.
fn control<const N: usize>(pgdata: &Path, offset: usize) -> Result<[u8; N], EmbeddedError> {
    let path = pgdata.join("global/pg_control");
    let bytes = fs::read(&path).map_err(EmbeddedError::io("reading", &path))?;
    bytes
        .get(offset..)
        .and_then(|bytes| bytes.first_chunk())
        .copied()
        .ok_or_else(|| EmbeddedError::NotOurs {
            path,
            reason: "its control file is too short".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Endpoint, Phase, PidFile};

    const READY: &str =
        "4711\n/d/postgres\n1796000000\n5433\n/d/run\n127.0.0.1\n   17    0\nready   \n";

    #[test]
    fn a_pid_file_is_read_whole_and_while_it_is_being_written() {
        let endpoint = Some(Endpoint {
            socket_folder: PathBuf::from("/d/run"),
            port: 5433,
        });
        let whole = PidFile::parse(READY).unwrap();
        assert_eq!(
            whole,
            PidFile {
                pid: 4711,
                endpoint,
                phase: Phase::Ready
            }
        );
        let starting = PidFile::parse(&READY.replace("ready   ", "starting")).unwrap();
        assert_eq!(starting.phase, Phase::Busy);
        let young = PidFile::parse("4711\n/d/postgres\n1796000000\n5433\n\n").unwrap();
        assert_eq!((young.endpoint, young.phase), (None, Phase::Busy));
        assert_eq!(PidFile::parse(""), None);
    }

    #[test]
    fn a_living_process_that_works_elsewhere_is_no_server() {
        let me = i32::try_from(std::process::id()).unwrap();
        let file = PidFile {
            pid: me,
            endpoint: None,
            phase: Phase::Ready,
        };
        assert!(!file.is_alive(Path::new("/nonexistent")));
        assert!(file.is_alive(&std::env::current_dir().unwrap()));
    }
}
