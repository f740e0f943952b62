//! The passwords of the server's roles, in one file that libpq can read too (`PGPASSFILE`).

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rand::RngExt;
use secrecy::{ExposeSecret, SecretString};

use super::error::EmbeddedError;
use super::user::ServerUser;

/// The superuser; it makes the others and is not used after that.
pub(crate) const SUPERUSER: &str = "postgres";
/// The crawl's role: owns the crawls' databases, sees the statistics, and is no superuser.
pub(crate) const WRITER: &str = "pgcrawl";
/// The role of `sql` without `--write`: can read everything, and nothing else.
pub(crate) use crate::db::query::READER;

/// Letters and digits of a password: 32 of 62 are 190 bits, and none needs escaping in a URL or in SQL.
const PASSWORD_LENGTH: usize = 32;

/// The passwords.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    pub(crate) superuser: SecretString,
    pub(crate) writer: SecretString,
    pub(crate) reader: SecretString,
}

impl Secrets {
    /// Makes up new ones.
    pub(crate) fn generate() -> Self {
        let password = || {
            let letters = rand::rng()
                .sample_iter(rand::distr::Alphanumeric)
                .take(PASSWORD_LENGTH);
            SecretString::from(letters.map(char::from).collect::<String>())
        };
        Self {
            superuser: password(),
            writer: password(),
            reader: password(),
        }
    }

    /// Reads them. A line is `host:port:database:user:password`; the first that names a role counts, as in libpq.
    pub(crate) fn read(path: &Path) -> Result<Self, EmbeddedError> {
        let text = fs::read_to_string(path).map_err(EmbeddedError::io("reading", path))?;
        let password = |role: &str| {
            text.lines()
                .find_map(|line| {
                    line.splitn(4, ':')
                        .nth(3)?
                        .strip_prefix(role)?
                        .strip_prefix(':')
                })
                .map(SecretString::from)
                .ok_or_else(|| EmbeddedError::NotOurs {
                    path: path.to_owned(),
                    reason: format!("it has no password of the role {role}"),
                })
        };
        Ok(Self {
            superuser: password(SUPERUSER)?,
            writer: password(WRITER)?,
            reader: password(READER)?,
        })
    }

    /// Writes them to a new file that only its owner can read.
    pub(crate) fn write(&self, path: &Path, user: &ServerUser) -> Result<(), EmbeddedError> {
        let lines: String = [
            (SUPERUSER, &self.superuser),
            (WRITER, &self.writer),
            (READER, &self.reader),
        ]
        .map(|(role, password)| format!("*:*:*:{role}:{}\n", password.expose_secret()))
        .concat();
        write_private(path, &lines, user)
    }
}

/// Replaces a file that only the server's user may read; complete, or not at all.
pub(crate) fn write_private(
    path: &Path,
    text: &str,
    user: &ServerUser,
) -> Result<(), EmbeddedError> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(EmbeddedError::io("removing", &new)(error));
        }
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .map_err(EmbeddedError::io("creating", &new))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(EmbeddedError::io("writing", &new))?;
    user.give(&new)?;
    fs::rename(&new, path).map_err(EmbeddedError::io("renaming", &new))
}
