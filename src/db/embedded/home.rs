//! The data directory: what lies where in it, and to whom it belongs.
//!
//! ```text
//! <data_dir>/
//!   postgres/      the server's own folder (PGDATA)
//!   postgres.new/  one that is being made; renamed when it is complete, removed if somebody finds it
//!   pgpass         the passwords, 0600, in libpq's format
//!   run/           the socket, 0700; elsewhere if this path is too long for one
//!   server.log     what the server says
//!   start.lock use.lock   see the module `lock`
//!   keep           present while the server is to outlive its users
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::error::EmbeddedError;
use super::user::ServerUser;

/// Longest path of a Unix socket in bytes: `sun_path` less its NUL (Linux 108, macOS and the BSDs 104).
const LONGEST_SOCKET: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The longest file name of the socket itself.
const SOCKET_NAME: &str = ".s.PGSQL.65535";

/// Paths in a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    dir: PathBuf,
}

impl Home {
    /// The data directory to use: the one given, else `/var/lib/pgcrawl` for root, else the user's XDG data folder.
    pub(crate) fn new(data_dir: Option<&Path>) -> Result<Self, EmbeddedError> {
        let dir = match data_dir {
            Some(dir) => std::path::absolute(dir).map_err(EmbeddedError::io("finding", dir))?,
            None if rustix::process::geteuid().is_root() => PathBuf::from("/var/lib/pgcrawl"),
            None => xdg_data_home(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
                .ok_or(EmbeddedError::NoHome)?
                .join("pgcrawl"),
        };
        Ok(Self { dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn pgdata(&self) -> PathBuf {
        self.dir.join("postgres")
    }

    pub(crate) fn unfinished(&self) -> PathBuf {
        self.dir.join("postgres.new")
    }

    pub(crate) fn pgpass(&self) -> PathBuf {
        self.dir.join("pgpass")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    pub(crate) fn start_lock(&self) -> PathBuf {
        self.dir.join("start.lock")
    }

    pub(crate) fn use_lock(&self) -> PathBuf {
        self.dir.join("use.lock")
    }

    pub(crate) fn keep_mark(&self) -> PathBuf {
        self.dir.join("keep")
    }

    /// Major version of the existing data; `None` if there are none yet.
    pub(crate) fn major(&self) -> Result<Option<u32>, EmbeddedError> {
        let path = self.pgdata().join("PG_VERSION");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let major = text.trim().parse().map_err(|_| EmbeddedError::NotOurs {
                    path: self.pgdata(),
                    reason: format!("its PG_VERSION says {:?}", text.trim()),
                })?;
                Ok(Some(major))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EmbeddedError::io("reading", &path)(error)),
        }
    }

    /// Creates the folder if it is missing, and checks that the server's user can get there.
    pub(crate) fn create(&self, user: &ServerUser) -> Result<(), EmbeddedError> {
        if self.dir.join("PG_VERSION").exists() {
            let reason = "it has a PG_VERSION of its own".to_owned();
            return Err(EmbeddedError::NotOurs {
                path: self.dir.clone(),
                reason,
            });
        }
        // 0755 in spite of a stricter umask: the server is another user, and what is private lies deeper.
        let missing: Vec<&Path> = self
            .dir
            .ancestors()
            .take_while(|dir| !dir.exists())
            .collect();
        for dir in missing.into_iter().rev() {
            match fs::create_dir(dir) {
                Ok(()) => set_mode(dir, 0o755)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(EmbeddedError::io("creating", dir)(error)),
            }
        }
        user.check_can_enter(&self.dir)
    }

    /// The folder of the socket, created if missing and the server user's alone: `run` in the data directory,
    /// or one under `/tmp` when that path is too long for a socket.
    pub(crate) fn socket_folder(&self, user: &ServerUser) -> Result<PathBuf, EmbeddedError> {
        let folder = socket_folder_of(&self.dir, user.uid());
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => user.give(&folder)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(EmbeddedError::io("creating", &folder)(error)),
        }
        // Anybody may make a folder under /tmp, so look whose it is, without following a link.
        let found =
            fs::symlink_metadata(&folder).map_err(EmbeddedError::io("looking at", &folder))?;
        if !found.is_dir() || found.uid() != user.uid() {
            let reason = format!("{} is not a folder of uid {}", folder.display(), user.uid());
            return Err(EmbeddedError::SocketFolder { reason });
        }
        if found.mode() & 0o077 != 0 {
            set_mode(&folder, 0o700)?;
        }
        Ok(folder)
    }
}

/// Sets the permission bits of a path.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), EmbeddedError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(EmbeddedError::io("setting the permissions of", path))
}

/// What an ordinary user may still write on the file system of `path`, in bytes.
pub(crate) fn available_bytes(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|path| path.exists())?;
    rustix::fs::statvfs(existing)
        .ok()
        .map(|fs| fs.f_bavail * fs.f_frsize)
}

fn xdg_data_home(
    xdg: Option<std::ffi::OsString>,
    home: Option<std::ffi::OsString>,
) -> Option<PathBuf> {
    // XDG Base Directory Specification: a relative path in it is to be ignored.
    let xdg = xdg.map(PathBuf::from).filter(|dir| dir.is_absolute());
    xdg.or_else(|| {
        home.filter(|home| !home.is_empty())
            .map(|home| PathBuf::from(home).join(".local/share"))
    })
}

fn socket_folder_of(dir: &Path, uid: u32) -> PathBuf {
    let inside = dir.join("run");
    if inside.as_os_str().len() + 1 + SOCKET_NAME.len() <= LONGEST_SOCKET {
        return inside;
    }
    let digest = Sha256::digest(dir.as_os_str().as_encoded_bytes());
    let short: String = digest
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    PathBuf::from(format!("/tmp/pgcrawl-{uid}-{short}"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{SOCKET_NAME, socket_folder_of, xdg_data_home};

    #[test]
    fn the_socket_moves_to_tmp_exactly_when_its_path_would_be_too_long() {
        let fits = 107 - "/run/".len() - SOCKET_NAME.len();
        let dir = PathBuf::from(format!("/{}", "d".repeat(fits - 1)));
        let inside = socket_folder_of(&dir, 7);
        if cfg!(target_os = "linux") {
            assert_eq!(inside, dir.join("run"));
            assert_eq!(inside.join(SOCKET_NAME).as_os_str().len(), 107);
        }
        let longer = PathBuf::from(format!("/{}", "d".repeat(fits)));
        let outside = socket_folder_of(&longer, 7);
        assert!(outside.starts_with("/tmp"), "{}", outside.display());
        assert_ne!(
            outside,
            socket_folder_of(&longer.join("x"), 7),
            "each data directory has its own"
        );
    }

    #[test]
    fn the_data_lie_under_xdg_data_home_else_under_home() {
        assert_eq!(
            xdg_data_home(Some("/x".into()), Some("/h".into())).as_deref(),
            Some(Path::new("/x"))
        );
        assert_eq!(
            xdg_data_home(Some("x".into()), Some("/h".into())).as_deref(),
            Some(Path::new("/h/.local/share"))
        );
        assert_eq!(xdg_data_home(None, Some("".into())), None);
    }
}
