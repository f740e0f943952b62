//! What goes wrong, and what is said about it.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use pgcrawl::db::embedded::{EmbeddedError, EmbeddedSettings, Server, status};

use super::{connection, is_root, start, until};
use crate::support::db::scratch_dir;

async fn start_error(dir: &Path) -> EmbeddedError {
    match Server::start(&EmbeddedSettings::in_dir(dir)).await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_stale_pid_file_with_the_number_of_another_living_process_does_not_stop_the_start() {
    let dir = scratch_dir("stale");
    let server = start(&dir).await;
    let pid_file = dir.join("postgres/postmaster.pid");
    let text = fs::read_to_string(&pid_file).unwrap();
    server.leave().await.unwrap();

    // As the server's own user: for another user's process Postgres knows by itself that the file is stale.
    let owner = fs::metadata(dir.join("postgres")).unwrap();
    let mut command = Command::new("/bin/sleep");
    command.arg("3600").current_dir("/");
    if is_root() {
        command.uid(owner.uid()).gid(owner.gid());
    }
    let mut sleeper = command.spawn().unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    fs::write(&pid_file, format!("{}\n{rest}", sleeper.id())).unwrap();
    std::os::unix::fs::chown(&pid_file, Some(owner.uid()), Some(owner.gid())).unwrap();
    fs::set_permissions(&pid_file, fs::Permissions::from_mode(0o600)).unwrap();

    let server = start(&dir).await;
    server.leave().await.unwrap();
    assert!(
        sleeper.try_wait().unwrap().is_none(),
        "the other process was left alone"
    );
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[tokio::test]
async fn a_busy_port_is_passed_over_or_named_when_it_was_asked_for() {
    let dir = scratch_dir("port");
    let server = start(&dir).await;
    let port = server.port();
    server.leave().await.unwrap();
    let occupier = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();

    let mut settings = EmbeddedSettings::in_dir(&dir);
    settings.port = Some(port);
    let refused = Server::start(&settings).await.unwrap_err();
    assert!(
        matches!(refused, EmbeddedError::PortBusy { port: named } if named == port),
        "{refused}"
    );

    let server = start(&dir).await;
    let other = server.port();
    assert_ne!(other, port);
    server.leave().await.unwrap();
    drop(occupier);
    let server = start(&dir).await;
    assert_eq!(
        server.port(),
        other,
        "an address that somebody noted stays good"
    );
    server.leave().await.unwrap();
}

#[tokio::test]
async fn a_server_of_another_data_directory_is_not_adopted() {
    let (ours, theirs) = (scratch_dir("ours"), scratch_dir("theirs"));
    start(&ours).await.leave().await.unwrap();
    let other = start(&theirs).await;
    let pid_file = ours.join("postgres/postmaster.pid");
    fs::copy(theirs.join("postgres/postmaster.pid"), &pid_file).unwrap();

    let refused = start_error(&ours).await;
    assert!(
        matches!(refused, EmbeddedError::PasswordRefused { .. }),
        "{refused}"
    );
    fs::copy(theirs.join("pgpass"), ours.join("pgpass")).unwrap();
    let refused = start_error(&ours).await;
    let EmbeddedError::ForeignServer { what, found, .. } = &refused else {
        panic!("{refused}")
    };
    assert_eq!(*what, "data_directory");
    assert_eq!(Path::new(found), theirs.join("postgres"));

    fs::remove_file(pid_file).unwrap();
    other.leave().await.unwrap();
}

#[tokio::test]
async fn a_running_server_whose_password_was_changed_is_told_and_left_alone() {
    let dir = scratch_dir("password");
    let server = start(&dir).await;
    server.create_database("main").await.unwrap();
    let mut writer = connection(&server.url("main")).await;
    sqlx::raw_sql("alter role pgcrawl password 'another'")
        .execute(&mut writer)
        .await
        .unwrap();
    let refused = start_error(&dir).await;
    assert!(
        matches!(refused, EmbeddedError::PasswordRefused { .. }),
        "{refused}"
    );
    assert!(refused.hint().unwrap().contains("pgpass"));
    let one: i32 = sqlx::query_scalar("select 1")
        .fetch_one(&mut writer)
        .await
        .unwrap();
    assert_eq!(one, 1, "it still runs");
    drop(writer);
    server.leave().await.unwrap();
}

#[tokio::test]
async fn a_server_without_fsync_is_refused_and_does_not_go_on_running() {
    let dir = scratch_dir("fsync");
    start(&dir).await.leave().await.unwrap();
    let auto = dir.join("postgres/postgresql.auto.conf");
    let before = fs::read(&auto).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(&auto)
        .unwrap()
        .write_all(b"\nfsync = off\n")
        .unwrap();
    let refused = start_error(&dir).await;
    assert!(
        matches!(refused, EmbeddedError::FsyncOff { .. }),
        "{refused}"
    );
    let pid_file = dir.join("postgres/postmaster.pid");
    until("the server ends", || !pid_file.exists()).await;
    fs::write(&auto, before).unwrap();
    start(&dir).await.leave().await.unwrap();
}

#[tokio::test]
async fn a_setting_that_the_server_refuses_is_told_in_its_own_words() {
    let dir = scratch_dir("setting");
    start(&dir).await.leave().await.unwrap();
    let auto = dir.join("postgres/postgresql.auto.conf");
    fs::OpenOptions::new()
        .append(true)
        .open(&auto)
        .unwrap()
        .write_all(b"\nwork_mem = 'much'\n")
        .unwrap();
    let refused = start_error(&dir).await;
    assert!(matches!(refused, EmbeddedError::Start { .. }), "{refused}");
    assert!(refused.to_string().contains("work_mem"), "{refused}");
}

/// Programs of a server that ends as soon as it is up: `pg_ctl start` succeeds, and what is left is what `leaves` leaves.
fn short_lived(dir: &Path, leaves: &str) -> std::path::PathBuf {
    let bin = dir.join("bin");
    let version = fs::read_to_string(dir.join("postgres/PG_VERSION")).unwrap();
    // pg_ctl start -s -w -t SECONDS -D DATA -l LOG
    let script = format!(
        r#"mkdir -p "$0" && cd "$0" || exit 1
echo '#!/bin/sh
echo "postgres (PostgreSQL) {}"' > postgres
echo '#!/bin/sh
echo "LOG:  the server fell over" >> "$9"
{leaves}' > pg_ctl
cp postgres initdb
chmod 755 postgres pg_ctl initdb"#,
        version.trim()
    );
    // By a process of its own: a file that another thread's child still has open for writing cannot be run.
    let written = Command::new("sh").arg("-c").arg(script).arg(&bin).status();
    assert!(written.unwrap().success());
    bin
}

#[tokio::test]
async fn a_server_that_ends_before_anybody_knocked_is_told_and_the_next_start_goes_on() {
    let dir = scratch_dir("short");
    let server = start(&dir).await;
    let pid_file = dir.join("postgres/postmaster.pid");
    let stale = fs::read_to_string(&pid_file).unwrap();
    assert!(stale.contains("ready"), "{stale}");
    server.leave().await.unwrap();
    let remains = dir.join("postgres/remains");
    fs::write(&remains, stale).unwrap();
    fs::set_permissions(&remains, fs::Permissions::from_mode(0o644)).unwrap();

    for leaves in ["exit 0", r#"cat "$7/remains" > "$7/postmaster.pid""#] {
        let mut settings = EmbeddedSettings::in_dir(&dir);
        settings.bin_dir = Some(short_lived(&dir, leaves));
        let refused = tokio::time::timeout(super::NEVER, Server::start(&settings))
            .await
            .expect("the start ends")
            .unwrap_err();
        assert!(matches!(refused, EmbeddedError::Start { .. }), "{refused}");
        assert!(refused.to_string().contains("fell over"), "{refused}");
    }
    start(&dir).await.leave().await.unwrap();
}

#[tokio::test]
async fn a_half_made_database_is_made_anew() {
    let dir = scratch_dir("half");
    fs::create_dir(dir.join("postgres.new")).unwrap();
    fs::write(dir.join("postgres.new/PG_VERSION"), "15\n").unwrap();
    start(&dir).await.leave().await.unwrap();
    assert!(!dir.join("postgres.new").exists());
}

#[tokio::test]
async fn somebody_elses_data_directory_is_not_touched() {
    let dir = scratch_dir("foreign");
    fs::write(dir.join("PG_VERSION"), "15\n").unwrap();
    let refused = start_error(&dir).await;
    assert!(
        matches!(refused, EmbeddedError::NotOurs { .. }),
        "{refused}"
    );
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_does_not_stop_the_start() {
    let dir = scratch_dir("long").join("d".repeat(120));
    let server = start(&dir).await;
    let socket = status(&EmbeddedSettings::in_dir(&dir))
        .await
        .unwrap()
        .running
        .unwrap()
        .socket_folder;
    assert!(!socket.starts_with(&dir), "{}", socket.display());
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o700);
    server.leave().await.unwrap();
    fs::remove_dir(socket).unwrap();
}

/// A file system of so many megabytes, unmounted at the end.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn mount(megabytes: u32) -> Option<Self> {
        let dir = scratch_dir("disk").join("mount");
        fs::create_dir(&dir).unwrap();
        let size = format!("size={megabytes}m,mode=0755");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&dir)
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(dir));
        }
        eprintln!("SKIPPED: this user cannot mount a tmpfs, so no full disk is tried");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_disk_too_small_to_begin_is_told_and_nothing_is_left_on_it() {
    let Some(disk) = SmallDisk::mount(60) else {
        return;
    };
    let refused = start_error(&disk.0).await;
    assert!(
        matches!(refused, EmbeddedError::DiskFull { .. }),
        "{refused}"
    );
    assert!(!disk.0.join("postgres").exists() && !disk.0.join("postgres.new").exists());
}

#[tokio::test]
async fn a_disk_that_has_become_full_is_told_and_nothing_is_lost() {
    let Some(disk) = SmallDisk::mount(200) else {
        return;
    };
    start(&disk.0).await.leave().await.unwrap();
    let filler = disk.0.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 1 << 16]).is_ok() {}
    while file.write_all(&[0; 16]).is_ok() {}
    let refused = start_error(&disk.0).await;
    assert!(
        matches!(refused, EmbeddedError::DiskFull { .. }),
        "{refused}"
    );
    drop(file);
    fs::remove_file(filler).unwrap();
    start(&disk.0).await.leave().await.unwrap();
}
