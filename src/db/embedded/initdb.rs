//! Makes the server's folder: `initdb`, then the roles, then one rename that makes it valid.

use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Output, Stdio};

use secrecy::ExposeSecret;

use super::config;
use super::error::EmbeddedError;
use super::find::Installation;
use super::home::{Home, available_bytes};
use super::secrets::{READER, SUPERUSER, Secrets, WRITER, write_private};
use super::user::ServerUser;

/// What a new server needs before the first page: 40 MB of catalogs, 16 MB of WAL, and some air.
const LEAST_SPACE_BYTES: u64 = 100 << 20;

/// Creates the server's folder and the passwords. Blocks for about a second.
///
/// A process that dies in the middle leaves an unfinished folder behind, which the next one removes.
pub(crate) fn create(
    home: &Home,
    user: &ServerUser,
    installation: &Installation,
) -> Result<(), EmbeddedError> {
    let unfinished = home.unfinished();
    remove(&unfinished)?;
    if available_bytes(home.dir()).is_some_and(|free| free < LEAST_SPACE_BYTES) {
        return Err(EmbeddedError::disk_full(home.dir()));
    }
    tracing::info!(data_dir = %home.dir().display(), postgres = installation.major, "creating the database");
    DirBuilder::new()
        .mode(0o700)
        .create(&unfinished)
        .map_err(EmbeddedError::io("creating", &unfinished))?;
    user.give(&unfinished)?;
    let made = fill(home, user, installation);
    if made.is_err() {
        // Best effort: what is left is removed by the next attempt, and the error at hand is the one to tell.
        let _ = remove(&unfinished);
        let _ = fs::remove_file(home.pgpass());
    }
    made
}

fn fill(home: &Home, user: &ServerUser, installation: &Installation) -> Result<(), EmbeddedError> {
    let unfinished = home.unfinished();
    let secrets = Secrets::generate();
    let password_file = home.dir().join("initdb.password");
    write_private(&password_file, secrets.superuser.expose_secret(), user)?;
    let initdb = installation.program("initdb");
    let output = user
        .command(&initdb)
        .arg("-D")
        .arg(&unfinished)
        .args([
            "--encoding=UTF8",
            "--locale=C",
            "--auth=scram-sha-256",
            "--no-instructions",
            "--username",
            SUPERUSER,
        ])
        .arg("--pwfile")
        .arg(&password_file)
        .output();
    let removed = fs::remove_file(&password_file);
    let output = output.map_err(|error| not_run(user, &initdb, error))?;
    removed.map_err(EmbeddedError::io("removing", &password_file))?;
    succeeded(home, &output)?;
    make_roles(home, user, installation, &secrets)?;
    config::include_ours(&unfinished)?;
    secrets.write(&home.pgpass(), user)?;
    fs::rename(&unfinished, home.pgdata()).map_err(EmbeddedError::io("renaming", &unfinished))
}

/// Creates the roles in single-user mode: no server has to be started, and nobody can connect before it is done.
fn make_roles(
    home: &Home,
    user: &ServerUser,
    installation: &Installation,
    secrets: &Secrets,
) -> Result<(), EmbeddedError> {
    let postgres = installation.program("postgres");
    let mut child = user
        .command(&postgres)
        .args([
            "--single",
            "-j",
            "-c",
            "exit_on_error=on",
            "-c",
            "log_min_error_statement=panic",
            "-c",
            "log_checkpoints=off",
            "-D",
        ])
        .arg(home.unfinished())
        // Databases are copies of this one, so what it grants holds in each of them.
        .arg("template1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_run(user, &postgres, error))?;
    if let Some(mut input) = child.stdin.take() {
        // An error here means that the server has already ended, and its own words say more.
        let _ = input.write_all(role_statements(secrets).as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|source| EmbeddedError::Spawn {
            program: postgres,
            source,
        })?;
    succeeded(home, &output)
}

/// One chunk, so one transaction: with `-j` it ends at a semicolon followed by an empty line.
fn role_statements(secrets: &Secrets) -> String {
    let (writer, reader) = (
        secrets.writer.expose_secret(),
        secrets.reader.expose_secret(),
    );
    format!(
        "create role {WRITER} login createdb password '{writer}';
create role {READER} login password '{reader}';
alter role {READER} set default_transaction_read_only = on;
grant pg_monitor to {WRITER};
grant pg_monitor, pg_read_all_data to {READER};
grant {READER} to {WRITER};
revoke create on schema public from public;
grant create, usage on schema public to {WRITER};
revoke all on database postgres from public;
grant connect on database postgres to {WRITER}, {READER};

"
    )
}

/// A program that failed, by its exit or by its words: a server of some version may end with 0 after an error.
fn succeeded(home: &Home, output: &Output) -> Result<(), EmbeddedError> {
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let complained = ["ERROR:", "FATAL:", "PANIC:"]
        .iter()
        .any(|word| said.contains(word));
    if output.status.success() && !complained {
        return Ok(());
    }
    if said.contains("No space left on device") {
        return Err(EmbeddedError::disk_full(home.dir()));
    }
    Err(EmbeddedError::Create {
        path: home.dir().to_owned(),
        said: tail(&said),
    })
}

/// A program that the server's user cannot even reach is told apart from one that does not work.
pub(crate) fn not_run(user: &ServerUser, program: &Path, source: std::io::Error) -> EmbeddedError {
    if source.kind() == std::io::ErrorKind::PermissionDenied
        && let Some(folder) = program.parent()
        && let Err(error) = user.check_can_enter(folder)
    {
        return error;
    }
    EmbeddedError::Spawn {
        program: program.to_owned(),
        source,
    }
}

/// The last lines of what a program said, as one line.
pub(crate) fn tail(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(4)..].join(" / ")
}

fn remove(folder: &Path) -> Result<(), EmbeddedError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EmbeddedError::io("removing", folder)(error))
        }
        _ => Ok(()),
    }
}
