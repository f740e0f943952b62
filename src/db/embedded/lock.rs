//! Advisory file locks between the pgcrawl processes of one data directory.
//!
//! Two files: `start.lock` is held exclusively while somebody starts, adopts or stops the server; `use.lock` is held
//! shared by everybody who uses it, so that whoever can take it exclusively was the last. The kernel gives both up
//! when a process dies, by whatever means.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::EmbeddedError;
use super::user::ServerUser;

/// How often a taken lock is asked for again. flock itself would block a thread that nobody can cancel.
const POLL: Duration = Duration::from_millis(20);

/// A held lock; dropping it gives it up.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Closing it gives up the lock.
    _file: File,
}

impl Lock {
    /// Takes the lock for ourselves alone, waiting as long as it takes; says so after a second.
    pub(crate) async fn exclusive(path: &Path, user: &ServerUser) -> Result<Self, EmbeddedError> {
        let file = open(path, user)?;
        let mut polls = 0_u32;
        while !try_lock(&file, path, FlockOperation::NonBlockingLockExclusive)? {
            tokio::time::sleep(POLL).await;
            polls += 1;
            if polls == 50 {
                tracing::info!(lock = %path.display(), "waiting for another pgcrawl that starts or stops the database server");
            }
        }
        Ok(Self { _file: file })
    }

    /// Takes the lock for ourselves alone, or says that somebody has it.
    pub(crate) fn try_exclusive(
        path: &Path,
        user: &ServerUser,
    ) -> Result<Option<Self>, EmbeddedError> {
        let file = open(path, user)?;
        Ok(
            try_lock(&file, path, FlockOperation::NonBlockingLockExclusive)?
                .then_some(Self { _file: file }),
        )
    }

    /// Shares the lock. Only ever contended under `start.lock`, so it does not wait long.
    pub(crate) async fn shared(path: &Path, user: &ServerUser) -> Result<Self, EmbeddedError> {
        let file = open(path, user)?;
        while !try_lock(&file, path, FlockOperation::NonBlockingLockShared)? {
            tokio::time::sleep(POLL).await;
        }
        Ok(Self { _file: file })
    }
}

fn open(path: &Path, user: &ServerUser) -> Result<File, EmbeddedError> {
    let failed = || EmbeddedError::io("opening", path);
    match OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(file) => user.give(path).map(|()| file),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            OpenOptions::new().read(true).open(path).map_err(failed())
        }
        Err(error) => Err(failed()(error)),
    }
}

fn try_lock(file: &File, path: &Path, operation: FlockOperation) -> Result<bool, EmbeddedError> {
    loop {
        match flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(EmbeddedError::io("locking", path)(error.into())),
        }
    }
}
