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
    file: File,
}

impl Drop for Lock {
    /// By a word, and not only by closing the file: a program that this process is starting has a copy of it until it runs, and would
    /// hold the lock for that long.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
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
        Ok(Self { file })
    }

    /// Takes the lock for ourselves alone, or says that somebody has it.
    pub(crate) fn try_exclusive(
        path: &Path,
        user: &ServerUser,
    ) -> Result<Option<Self>, EmbeddedError> {
        let file = open(path, user)?;
        Ok(
            try_lock(&file, path, FlockOperation::NonBlockingLockExclusive)?
                .then_some(Self { file }),
        )
    }

    /// Shares the lock. Only ever contended under `start.lock`, so it does not wait long.
    pub(crate) async fn shared(path: &Path, user: &ServerUser) -> Result<Self, EmbeddedError> {
        let file = open(path, user)?;
        while !try_lock(&file, path, FlockOperation::NonBlockingLockShared)? {
            tokio::time::sleep(POLL).await;
        }
        Ok(Self { file })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_that_is_given_up_is_free_though_a_child_has_a_copy_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("use.lock");
        let user = ServerUser::choose(folder.path(), &folder.path().join("data")).unwrap();
        let shared = Lock::shared(&path, &user).await.unwrap();
        // What fork makes of every open file.
        let copy = shared.file.try_clone().unwrap();
        assert!(Lock::try_exclusive(&path, &user).unwrap().is_none());
        drop(shared);
        assert!(Lock::try_exclusive(&path, &user).unwrap().is_some());
        drop(copy);
    }
}
