//! Finds the programs of a PostgreSQL installation. Only `initdb`, `pg_ctl` and `postgres` are relied on.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::EmbeddedError;

const OLDEST_MAJOR: u32 = 14;

/// Where packagers put servers: a parent folder, the beginning of a name in it, and where below that the programs are.
/// A name ends in the major version, or is it; the newest is tried first.
const LAYOUTS: [(&str, &str, &str); 11] = [
    ("usr/lib/postgresql", "", "bin"),          // Debian, Ubuntu
    ("usr", "pgsql-", "bin"),                   // postgresql.org's packages for Red Hat
    ("usr/libexec", "postgresql", ""),          // Alpine
    ("usr/lib", "postgresql", "bin"),           // openSUSE
    ("usr/lib64", "postgresql-", "bin"),        // Gentoo
    ("opt/homebrew/opt", "postgresql@", "bin"), // Homebrew on ARM
    ("usr/local/opt", "postgresql@", "bin"),    // Homebrew on Intel
    ("home/linuxbrew/.linuxbrew/opt", "postgresql@", "bin"), // Homebrew on Linux
    ("Applications/Postgres.app/Contents/Versions", "", "bin"), // Postgres.app
    ("Library/PostgreSQL", "", "bin"),          // EDB's installer
    ("opt/local/lib", "postgresql", "bin"),     // MacPorts
];

/// Folders without a version in their name.
const PLAIN: [&str; 4] = [
    "usr/local/pgsql/bin",
    "usr/bin",
    "usr/local/bin",
    "opt/homebrew/bin",
];

/// An installation: the folder of its programs and its major version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    pub(crate) bin: PathBuf,
    pub(crate) major: u32,
}

impl Installation {
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

/// Where to look. The default is this machine; tests lay out another.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// The operator's own word, from a flag or `PGCRAWL_PG_BIN`: nothing else is then looked at.
    pub(crate) bin_dir: Option<PathBuf>,
    /// The value of `PATH`.
    pub(crate) path: Option<OsString>,
    /// What [`LAYOUTS`] and [`PLAIN`] are relative to.
    pub(crate) root: PathBuf,
}

impl Search {
    /// This machine, with the operator's folder if there is one.
    pub(crate) fn machine(bin_dir: Option<PathBuf>) -> Self {
        let named = || {
            std::env::var_os("PGCRAWL_PG_BIN")
                .filter(|dir| !dir.is_empty())
                .map(PathBuf::from)
        };
        Self {
            bin_dir: bin_dir.or_else(named),
            path: std::env::var_os("PATH"),
            root: PathBuf::from("/"),
        }
    }

    /// The first installation that fits: of the major version `wanted`, which existing data dictate, else 14 or newer.
    ///
    /// Order: the operator's folder, `PATH`, `pg_config --bindir`, the packagers' folders with the newest first.
    pub(crate) fn find(&self, wanted: Option<u32>) -> Result<Installation, EmbeddedError> {
        if let Some(dir) = &self.bin_dir {
            return named(dir, wanted);
        }
        let mut searched = Vec::new();
        for dir in self.candidates() {
            if searched.contains(&dir) {
                continue;
            }
            if let Ok(found) = installation(&dir)
                && fits(found.major, wanted)
            {
                return Ok(found);
            }
            searched.push(dir);
        }
        searched.retain(|dir| dir.join("postgres").exists());
        Err(EmbeddedError::NoInstallation { wanted, searched })
    }

    /// Lazily, so that `pg_config` is not run where `PATH` had the answer.
    fn candidates(&self) -> impl Iterator<Item = PathBuf> {
        let path: Vec<PathBuf> = self
            .path
            .iter()
            .flat_map(std::env::split_paths)
            .filter(|dir| dir.is_absolute())
            .collect();
        let configured = path.clone();
        path.into_iter()
            .chain(std::iter::once_with(move || pg_config_bindir(&configured)).flatten())
            .chain(
                LAYOUTS
                    .into_iter()
                    .flat_map(|layout| versions(&self.root, layout)),
            )
            .chain(PLAIN.into_iter().map(|dir| self.root.join(dir)))
    }
}

fn fits(major: u32, wanted: Option<u32>) -> bool {
    wanted.map_or(major >= OLDEST_MAJOR, |wanted| major == wanted)
}

fn named(dir: &Path, wanted: Option<u32>) -> Result<Installation, EmbeddedError> {
    let bad = |reason| EmbeddedError::BadBinDir {
        dir: dir.to_owned(),
        reason,
    };
    let dir = std::path::absolute(dir).map_err(EmbeddedError::io("finding", dir))?;
    let found = installation(&dir).map_err(bad)?;
    if fits(found.major, wanted) {
        return Ok(found);
    }
    let needed = wanted.map_or_else(
        || "14 or newer is needed".to_owned(),
        |major| format!("the data are of {major}"),
    );
    Err(bad(format!(
        "it is PostgreSQL {}, and {needed}",
        found.major
    )))
}

/// Looks at one folder: the three programs, and which version they are.
fn installation(dir: &Path) -> Result<Installation, String> {
    for program in ["initdb", "pg_ctl", "postgres"] {
        let executable = fs::metadata(dir.join(program))
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
        if !executable {
            return Err(format!("it has no program {program}"));
        }
    }
    let postgres = dir.join("postgres");
    let output = Command::new(&postgres)
        .arg("--version")
        .output()
        .map_err(|error| format!("postgres does not run: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let major = parse_version(&said).ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!(
            "postgres --version says {:?}",
            format!("{said}{complaint}").trim()
        )
    })?;
    Ok(Installation {
        bin: dir.to_owned(),
        major,
    })
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` is 15; `19beta1` and `18devel` count as what they become.
fn parse_version(said: &str) -> Option<u32> {
    let version = said.split_once("(PostgreSQL) ")?.1;
    let digits = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    version[..digits].parse().ok()
}

/// The folders of one layout, newest version first.
fn versions(root: &Path, (parent, prefix, below): (&str, &str, &str)) -> Vec<PathBuf> {
    let parent = root.join(parent);
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(&parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, entry.path().join(below)))
        })
        .collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, dir)| dir).collect()
}

fn pg_config_bindir(path: &[PathBuf]) -> Option<PathBuf> {
    let program = path
        .iter()
        .map(|dir| dir.join("pg_config"))
        .find(|program| program.is_file())?;
    let output = Command::new(program)
        .arg("--bindir")
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let dir = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    dir.is_absolute().then_some(dir)
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
