//! As whom the server runs: Postgres refuses root, so root hands it to somebody else.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::EmbeddedError;

/// What the programs of the installation inherit of our environment: enough to find their libraries, and no secrets.
const INHERITED: [&str; 5] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "TZ",
];

/// The user that owns the data and runs the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerUser {
    uid: u32,
    gid: u32,
    name: String,
    /// We are root, and become this user for each program.
    switch: bool,
}

impl ServerUser {
    /// Chooses the user for a data directory: ourselves, or for root its owner, else `postgres`.
    ///
    /// `pgdata` is the folder of the server proper inside `data_dir`; neither need exist.
    pub(crate) fn choose(data_dir: &Path, pgdata: &Path) -> Result<Self, EmbeddedError> {
        let me = rustix::process::geteuid();
        let owner = owner(pgdata)?;
        if !me.is_root() {
            if let Some((uid, _)) = owner.filter(|(uid, _)| *uid != me.as_raw()) {
                return Err(EmbeddedError::NotOwner {
                    path: pgdata.to_owned(),
                    uid,
                });
            }
            let (uid, gid) = (me.as_raw(), rustix::process::getegid().as_raw());
            return Ok(Self {
                uid,
                gid,
                name: format!("uid {uid}"),
                switch: false,
            });
        }
        if matches!(owner, Some((0, _))) {
            return Err(EmbeddedError::OwnedByRoot {
                path: pgdata.to_owned(),
            });
        }
        let owner = match owner {
            Some(owner) => Some(owner),
            None => self::owner(data_dir)?.filter(|(uid, _)| *uid != 0),
        };
        match owner {
            Some((uid, folder_gid)) => {
                let known = lookup(&uid.to_string());
                let (name, gid) = known
                    .map_or((format!("uid {uid}"), folder_gid), |(name, _, gid)| {
                        (name, gid)
                    });
                Ok(Self {
                    uid,
                    gid,
                    name,
                    switch: true,
                })
            }
            None => {
                let (name, uid, gid) = ["postgres", "_postgres"]
                    .into_iter()
                    .find_map(lookup)
                    .ok_or(EmbeddedError::NoServerUser)?;
                Ok(Self {
                    uid,
                    gid,
                    name,
                    switch: true,
                })
            }
        }
    }

    /// Its numeric id.
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// A command that runs as this user, in `/` (it may not be able to enter our folder), without our environment.
    ///
    /// The standard library drops root's supplementary groups when it changes the user.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir("/").stdin(Stdio::null());
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        // Its messages are read by us and put into ours.
        command.env("LC_ALL", "C");
        if self.switch {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Makes a file or folder that we created its own.
    pub(crate) fn give(&self, path: &Path) -> Result<(), EmbeddedError> {
        if self.switch {
            chown(path, Some(self.uid), Some(self.gid))
                .map_err(EmbeddedError::io("changing the owner of", path))?;
        }
        Ok(())
    }

    /// Checks that this user can enter `folder`, by trying; else names the first parent that it cannot enter.
    pub(crate) fn check_can_enter(&self, folder: &Path) -> Result<(), EmbeddedError> {
        if !self.switch || self.can_enter(folder)? {
            return Ok(());
        }
        let mut parents: Vec<PathBuf> = folder.ancestors().map(Path::to_owned).collect();
        parents.reverse();
        for parent in parents {
            if !self.can_enter(&parent)? {
                return Err(EmbeddedError::CannotEnter {
                    folder: parent,
                    user: self.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn can_enter(&self, folder: &Path) -> Result<bool, EmbeddedError> {
        // The change of folder happens after the change of user, so this is the system's own answer.
        let shell = Path::new("/bin/sh");
        match self
            .command(shell)
            .args(["-c", ":"])
            .current_dir(folder)
            .status()
        {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            Err(source) => Err(EmbeddedError::Spawn {
                program: shell.to_owned(),
                source,
            }),
        }
    }
}

/// Owner and group of a path, `None` if it does not exist.
fn owner(path: &Path) -> Result<Option<(u32, u32)>, EmbeddedError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some((metadata.uid(), metadata.gid()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EmbeddedError::io("looking at", path)(error)),
    }
}

/// Name, uid and gid of a user, by name or number: from `/etc/passwd`, else from `id`, which also knows directories.
fn lookup(user: &str) -> Option<(String, u32, u32)> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    passwd
        .lines()
        .find_map(|line| passwd_entry(line, user))
        .or_else(|| {
            let ask = |flag: &str| {
                let output = Command::new("id")
                    .args([flag, user])
                    .output()
                    .ok()
                    .filter(|output| output.status.success())?;
                Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            };
            Some((
                ask("-un")?,
                ask("-u")?.parse().ok()?,
                ask("-g")?.parse().ok()?,
            ))
        })
}

fn passwd_entry(line: &str, user: &str) -> Option<(String, u32, u32)> {
    let mut fields = line.split(':');
    let (name, _, uid, gid) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    (name == user || uid == user).then_some(())?;
    Some((name.to_owned(), uid.parse().ok()?, gid.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::passwd_entry;

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let line = "postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash";
        assert_eq!(
            passwd_entry(line, "postgres"),
            Some(("postgres".to_owned(), 101, 104))
        );
        assert_eq!(
            passwd_entry(line, "101"),
            Some(("postgres".to_owned(), 101, 104))
        );
        assert_eq!(passwd_entry(line, "104"), None);
        assert_eq!(passwd_entry("garbage", "garbage"), None);
    }
}
