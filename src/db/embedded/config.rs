//! The server's settings for a crawl, in a file of our own that is written anew at each start.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::error::EmbeddedError;
use super::find::Installation;
use super::secrets::write_private;
use super::user::ServerUser;

/// Our file in the server's folder; `postgresql.conf` includes it last.
const FILE: &str = "pgcrawl.conf";

/// `/dev/shm` holds the shared memory of parallel queries by default. Containers give it 64 MB, which a parallel hash
/// join overruns; below this size that memory is kept in files of the data directory instead.
const ENOUGH_DEV_SHM_BYTES: u64 = 1 << 30;

/// What differs from start to start.
#[derive(Debug)]
pub(crate) struct Variable<'a> {
    pub(crate) port: u16,
    pub(crate) socket_folder: &'a Path,
    pub(crate) max_connections: u32,
}

/// Makes a new server's `postgresql.conf` include our file, after everything else in it.
pub(crate) fn include_ours(pgdata: &Path) -> Result<(), EmbeddedError> {
    let path = pgdata.join("postgresql.conf");
    let mut file = OpenOptions::new()
        .append(true)
        .open(&path)
        .map_err(EmbeddedError::io("opening", &path))?;
    writeln!(file, "\n# pgcrawl writes this file at each start; `alter system` overrides it.\ninclude_if_exists = '{FILE}'")
        .map_err(EmbeddedError::io("writing", &path))
}

/// Writes our file.
pub(crate) fn write(
    pgdata: &Path,
    user: &ServerUser,
    installation: &Installation,
    variable: &Variable<'_>,
) -> Result<(), EmbeddedError> {
    let has_lz4 = has_lz4(pgdata, user, installation);
    let text = render(variable, memory_bytes(), dev_shm_bytes(), has_lz4);
    write_private(&pgdata.join(FILE), &text, user)
}

/// The port of the last start: it is tried first, so that an address somebody noted stays good.
pub(crate) fn last_port(pgdata: &Path) -> Option<u16> {
    let text = fs::read_to_string(pgdata.join(FILE)).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("port = ")?.trim().parse().ok())
}

/// Asks the server's program whether it was built with lz4, by a setting that it would refuse.
/// In 14 the WAL's compression is a mere switch, so that version says no; pglz then serves both.
fn has_lz4(pgdata: &Path, user: &ServerUser, installation: &Installation) -> bool {
    user.command(&installation.program("postgres"))
        .arg("-D")
        .arg(pgdata)
        .args([
            "-c",
            "wal_compression=lz4",
            "-c",
            "default_toast_compression=lz4",
            "-C",
            "wal_compression",
        ])
        .output()
        .is_ok_and(|output| output.status.success())
}

fn render(variable: &Variable<'_>, memory_bytes: u64, dev_shm_bytes: u64, has_lz4: bool) -> String {
    let socket_folder = variable
        .socket_folder
        .display()
        .to_string()
        .replace('\'', "''");
    let compression = if has_lz4 {
        "wal_compression = lz4\ndefault_toast_compression = lz4"
    } else {
        "wal_compression = on"
    };
    let dynamic = if dev_shm_bytes >= ENOUGH_DEV_SHM_BYTES {
        "posix"
    } else {
        "mmap"
    };
    format!(
        "# Written by pgcrawl at each start; changes here are lost, use `alter system`.

# Only this machine: the socket's folder is private, and TCP listens on loopback.
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{socket_folder}'
unix_socket_permissions = 0700
max_connections = {max_connections}

# A crash of the machine loses the last commits at most, never the database. Asserted at each start.
fsync = on
full_page_writes = on

# The crawl's working set is small: the hot ends of a few indexes.
shared_buffers = {shared_buffers}MB
shared_memory_type = mmap
dynamic_shared_memory_type = {dynamic}
maintenance_work_mem = {maintenance}MB
work_mem = 16MB
huge_pages = try

# A crawl writes all the time: checkpoints by time, not by size.
max_wal_size = 2GB
min_wal_size = 128MB
checkpoint_timeout = 10min
checkpoint_completion_target = 0.9
{compression}

# Tasks and hosts change with each visit.
autovacuum = on
autovacuum_naptime = 15s
autovacuum_vacuum_cost_limit = 1000
track_io_timing = on

# Short statements only.
jit = off
random_page_cost = 1.1

# One file, kept short by pgcrawl; the clients report their own errors.
log_destination = 'stderr'
logging_collector = off
log_line_prefix = '%m [%p] %q%a@%d '
log_checkpoints = off
log_lock_waits = on
log_autovacuum_min_duration = 60s
",
        port = variable.port,
        max_connections = variable.max_connections,
        shared_buffers = shared_buffers_mb(memory_bytes),
        maintenance = ((memory_bytes / 32) >> 20).clamp(32, 256),
    )
}

/// An eighth of the memory: the crawl itself and the page cache want the rest. At most 2 GiB, beyond which it gains nothing.
fn shared_buffers_mb(memory_bytes: u64) -> u64 {
    ((memory_bytes / 8) >> 20).clamp(32, 2048)
}

/// The memory that we may use, in bytes: the machine's, or the container's if that is less.
fn memory_bytes() -> u64 {
    let limits = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let container = limits
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    machine_memory_bytes().min(container.unwrap_or(u64::MAX))
}

#[cfg(target_os = "linux")]
fn machine_memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit))
}

/// Elsewhere there is no portable question; a small machine is assumed.
#[cfg(not(target_os = "linux"))]
fn machine_memory_bytes() -> u64 {
    4 << 30
}

fn dev_shm_bytes() -> u64 {
    rustix::fs::statvfs("/dev/shm").map_or(u64::MAX, |fs| fs.f_blocks * fs.f_frsize)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Variable, render, shared_buffers_mb};

    fn rendered(folder: &str, dev_shm: u64, lz4: bool) -> String {
        let variable = Variable {
            port: 5555,
            socket_folder: Path::new(folder),
            max_connections: 100,
        };
        render(&variable, 8 << 30, dev_shm, lz4)
    }

    #[test]
    fn a_small_dev_shm_is_not_used() {
        assert!(rendered("/run", 64 << 20, true).contains("dynamic_shared_memory_type = mmap\n"));
        assert!(rendered("/run", 12 << 30, true).contains("dynamic_shared_memory_type = posix\n"));
    }

    #[test]
    fn lz4_is_asked_for_only_where_the_server_has_it() {
        assert!(rendered("/run", 0, true).contains("wal_compression = lz4"));
        assert!(!rendered("/run", 0, false).contains("lz4"));
    }

    #[test]
    fn a_quote_in_the_path_does_not_end_the_string() {
        assert!(rendered("/it's", 0, true).contains("unix_socket_directories = '/it''s'\n"));
    }

    #[test]
    fn shared_buffers_are_an_eighth_of_the_memory_within_bounds() {
        assert_eq!(shared_buffers_mb(8 << 30), 1024);
        assert_eq!(shared_buffers_mb(64 << 20), 32);
        assert_eq!(shared_buffers_mb(1 << 40), 2048);
    }
}
