//! Starts the server of a data directory that has none running.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Child;

use super::config::{self, Variable};
use super::error::EmbeddedError;
use super::find::Installation;
use super::home::{Home, available_bytes};
use super::secrets::Secrets;
use super::server::{Patience, Place, remove_if_there};
use super::state::{Answer, Endpoint, Phase, PidFile, knock};
use super::{EmbeddedSettings, initdb};

/// Another program may take the free port between our look and the server's; this often we look again.
const PORT_ATTEMPTS: u32 = 5;

/// How long the orphans of a killed server may hold on to its shared memory. They leave as soon as they notice.
const ORPHANS_PATIENCE: Duration = Duration::from_secs(60);

/// A log above this is cut at the next start, one that a kept server writes at the next adoption.
const LONGEST_LOG_BYTES: u64 = 16 << 20;

/// Less than this cannot hold a WAL segment, so a failure with so little left has one cause.
const FULL_DISK_BYTES: u64 = 17 << 20;

/// How long `pg_ctl` waits for the server: longer than any recovery, since we wait ourselves.
const PG_CTL_TIMEOUT_S: &str = "1000000";

/// Starts the server and returns once it takes connections and has shown who it is.
pub(crate) async fn launch(
    place: &Place,
    installation: &Installation,
    secrets: &Secrets,
    settings: &EmbeddedSettings,
) -> Result<Endpoint, EmbeddedError> {
    let pgdata = place.home.pgdata();
    let mut waited_for_orphans = Duration::ZERO;
    let mut ports_tried = 0;
    loop {
        let port = choose_port(settings.port, config::last_port(&pgdata), ports_tried)?;
        let socket_folder = place.home.socket_folder(&place.user)?;
        let max_connections = settings.max_connections;
        let variable = Variable {
            port,
            socket_folder: &socket_folder,
            max_connections,
        };
        config::write(&pgdata, &place.user, installation, &variable)?;
        PidFile::disown(&pgdata)?;
        remove_stale_sockets(&socket_folder)?;
        shorten_log(&place.home)?;
        let log_start = open_log(place)?;
        let mut pg_ctl = spawn(place, installation)?;
        let endpoint = Endpoint {
            socket_folder,
            port,
        };
        if wait_until_ready(place, secrets, &endpoint, &mut pg_ctl).await? {
            // The server has left it long ago; it would look again in a tenth of a second, and outlive us as a zombie.
            let _ = pg_ctl.kill().await;
            return Ok(endpoint);
        }
        let said = log_tail(&place.home.log(), log_start);
        if said.contains("Address already in use")
            && settings.port.is_none()
            && ports_tried < PORT_ATTEMPTS
        {
            ports_tried += 1;
        } else if said.contains("Address already in use") {
            return Err(EmbeddedError::PortBusy { port });
        } else if said.contains("shared memory block") && waited_for_orphans < ORPHANS_PATIENCE {
            let pause = Duration::from_millis(200);
            tokio::time::sleep(pause).await;
            waited_for_orphans += pause;
        } else if said.contains("No space left on device") || is_full(place.home.dir()) {
            return Err(EmbeddedError::disk_full(place.home.dir()));
        } else {
            return Err(EmbeddedError::Start {
                said: initdb::tail(&said),
                log: place.home.log(),
            });
        }
    }
}

/// Waits for the server; `false` when it has ended instead: `pg_ctl` says so, or has seen it ready and it is gone since.
async fn wait_until_ready(
    place: &Place,
    secrets: &Secrets,
    endpoint: &Endpoint,
    pg_ctl: &mut Child,
) -> Result<bool, EmbeddedError> {
    let pgdata = place.home.pgdata();
    let mut patience = Patience::new(place.home.log());
    loop {
        let ended = pg_ctl
            .try_wait()
            .map_err(EmbeddedError::io("waiting for pg_ctl in", place.home.dir()))?;
        let file = PidFile::read(&pgdata)?;
        // A stale file says ready, too, but nobody answers at its address then.
        if file.as_ref().is_some_and(|file| file.phase == Phase::Ready)
            && let Answer::Ours =
                knock(&pgdata, &place.home.pgpass(), endpoint, &secrets.writer).await?
        {
            return Ok(true);
        }
        let gone = || !file.is_some_and(|file| file.is_alive(&pgdata));
        if ended.is_some_and(|status| !status.success() || gone()) {
            return Ok(false);
        }
        patience.wait().await;
    }
}

/// `pg_ctl` detaches the server from our terminal and from our process, so that it outlives us.
fn spawn(place: &Place, installation: &Installation) -> Result<Child, EmbeddedError> {
    let program = installation.program("pg_ctl");
    let mut command = place.user.command(&program);
    command
        .args(["start", "-s", "-w", "-t", PG_CTL_TIMEOUT_S, "-D"])
        .arg(place.home.pgdata())
        .arg("-l")
        .arg(place.home.log())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    tokio::process::Command::from(command)
        .spawn()
        .map_err(|source| initdb::not_run(&place.user, &program, source))
}

/// The port asked for, else the last one, else a free one.
fn choose_port(asked: Option<u16>, last: Option<u16>, tried: u32) -> Result<u16, EmbeddedError> {
    let bind = |port: u16| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| listener.local_addr())
    };
    if let Some(port) = asked {
        return bind(port)
            .map(|_| port)
            .map_err(|_| EmbeddedError::PortBusy { port });
    }
    let free = match last.filter(|_| tried == 0).map(bind) {
        Some(Ok(address)) => Ok(address),
        _ => bind(0),
    };
    free.map(|address| address.port())
        .map_err(EmbeddedError::io(
            "looking for a free port on",
            Path::new("127.0.0.1"),
        ))
}

/// Removes what a killed server left in its socket folder, which no other server uses. Like the pid file, the lock
/// beside a socket keeps a server from starting while its number lives on as another process, or as a zombie.
fn remove_stale_sockets(folder: &Path) -> Result<(), EmbeddedError> {
    for entry in fs::read_dir(folder)
        .map_err(EmbeddedError::io("reading", folder))?
        .flatten()
    {
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(b".s.PGSQL.")
        {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

/// Makes sure that the server's user can write the log, and returns where this start's part begins.
fn open_log(place: &Place) -> Result<u64, EmbeddedError> {
    let log = place.home.log();
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(EmbeddedError::io("creating", &log))?;
    place.user.give(&log)?;
    Ok(file
        .metadata()
        .map_err(EmbeddedError::io("looking at", &log))?
        .len())
}

/// Cuts a long log. The server appends, so it may go on writing meanwhile.
pub(crate) fn shorten_log(home: &Home) -> Result<(), EmbeddedError> {
    let log = home.log();
    if fs::metadata(&log).is_ok_and(|file| file.len() > LONGEST_LOG_BYTES) {
        let file = OpenOptions::new()
            .write(true)
            .open(&log)
            .map_err(EmbeddedError::io("opening", &log))?;
        file.set_len(0)
            .map_err(EmbeddedError::io("shortening", &log))?;
    }
    Ok(())
}

/// The end of the log, from `start` on, at most 8 KiB; empty if it cannot be read.
pub(crate) fn log_tail(log: &Path, start: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = fs::File::open(log)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(end.saturating_sub(8 << 10))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}

fn is_full(dir: &Path) -> bool {
    available_bytes(dir).is_some_and(|free| free < FULL_DISK_BYTES)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::{EmbeddedError, choose_port};

    #[test]
    fn a_taken_port_is_refused_when_asked_for_and_passed_over_when_it_was_only_the_last() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(
            matches!(choose_port(Some(port), None, 0), Err(EmbeddedError::PortBusy { port: told }) if told == port)
        );
        assert_ne!(choose_port(None, Some(port), 0).unwrap(), port);
        drop(taken);
        assert_eq!(choose_port(None, Some(port), 0).unwrap(), port);
    }
}
