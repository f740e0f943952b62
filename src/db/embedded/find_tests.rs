use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{EmbeddedError, Search, parse_version};

/// Lays out an installation whose `postgres` says it is of `version`.
fn install(root: &Path, bin: &str, version: &str) -> PathBuf {
    let dir = root.join(bin);
    fs::create_dir_all(&dir).unwrap();
    for program in ["initdb", "pg_ctl", "postgres"] {
        script(
            &dir.join(program),
            &format!("echo 'postgres (PostgreSQL) {version}'"),
        );
    }
    dir
}

fn script(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn search(root: &Path, path: &[&str]) -> Search {
    let path = std::env::join_paths(path.iter().map(|dir| root.join(dir))).unwrap();
    Search {
        bin_dir: None,
        path: Some(path),
        root: root.to_owned(),
    }
}

#[test]
fn the_newest_of_a_packagers_versions_is_taken_by_number() {
    let root = tempfile::tempdir().unwrap();
    install(root.path(), "usr/lib/postgresql/9/bin", "9.6.24");
    install(root.path(), "usr/lib/postgresql/15/bin", "15.18");
    let newest = install(root.path(), "usr/lib/postgresql/100/bin", "100.1");
    let found = search(root.path(), &[]).find(None).unwrap();
    assert_eq!((found.bin, found.major), (newest, 100));
}

#[test]
fn existing_data_dictate_the_major_version() {
    let root = tempfile::tempdir().unwrap();
    install(root.path(), "usr/pgsql-17/bin", "17.2");
    let older = install(root.path(), "usr/pgsql-15/bin", "15.9");
    assert_eq!(search(root.path(), &[]).find(Some(15)).unwrap().bin, older);
    let error = search(root.path(), &[]).find(Some(16)).unwrap_err();
    assert!(error.to_string().contains("no PostgreSQL 16"), "{error}");
    assert!(
        error.to_string().contains("usr/pgsql-17/bin"),
        "it names what it found instead: {error}"
    );
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("PGCRAWL_PG_BIN") && hint.contains("DATABASE_URL"),
        "{hint}"
    );
}

#[test]
fn path_comes_before_pg_config_and_that_before_the_usual_folders() {
    let root = tempfile::tempdir().unwrap();
    install(root.path(), "usr/lib/postgresql/17/bin", "17.2");
    let configured = install(root.path(), "srv/pg/bin", "16.1");
    script(
        &root.path().join("sbin/pg_config"),
        &format!("echo '{}'", configured.display()),
    );
    let in_path = install(root.path(), "mine", "15.1");
    assert_eq!(
        search(root.path(), &["sbin"]).find(None).unwrap().bin,
        configured
    );
    assert_eq!(
        search(root.path(), &["sbin", "mine"])
            .find(None)
            .unwrap()
            .bin,
        in_path
    );
}

#[test]
fn an_incomplete_or_too_old_installation_is_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let client_only = install(root.path(), "client", "18.0");
    fs::remove_file(client_only.join("initdb")).unwrap();
    install(root.path(), "old", "13.20");
    let good = install(root.path(), "usr/libexec/postgresql16", "16.1");
    assert_eq!(
        search(root.path(), &["client", "old"])
            .find(None)
            .unwrap()
            .bin,
        good
    );
}

#[test]
fn a_named_folder_is_the_only_one_looked_at_and_its_fault_is_told() {
    let root = tempfile::tempdir().unwrap();
    install(root.path(), "usr/lib/postgresql/17/bin", "17.2");
    let named = install(root.path(), "named", "15.3");
    let mut search = search(root.path(), &[]);
    search.bin_dir = Some(named.clone());
    assert_eq!(search.find(None).unwrap().bin, named);
    assert!(
        search
            .find(Some(17))
            .unwrap_err()
            .to_string()
            .contains("the data are of 17")
    );
    fs::remove_file(named.join("pg_ctl")).unwrap();
    let error = search.find(None).unwrap_err();
    assert!(matches!(error, EmbeddedError::BadBinDir { .. }));
    assert!(error.to_string().contains("pg_ctl"), "{error}");
}

#[test]
fn versions_are_read_from_what_the_servers_say() {
    assert_eq!(
        parse_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
        Some(15)
    );
    assert_eq!(parse_version("postgres (PostgreSQL) 19beta1\n"), Some(19));
    assert_eq!(parse_version("postgres (PostgreSQL) 18devel\n"), Some(18));
    assert_eq!(parse_version("mysqld 8.0\n"), None);
}
