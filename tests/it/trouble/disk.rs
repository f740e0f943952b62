//! A disk that is really full.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pgcrawl::db::embedded::{EmbeddedSettings, Server};
use pgcrawl::db::{DbSettings, connect};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use crate::support::crawl::{broken_invariants, number};
use crate::support::db::scratch_dir;
use crate::support::site::Site;

const PAGES: usize = 120;

/// A small file system of its own, unmounted in the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where mounting is not permitted.
    #[expect(clippy::print_stderr, reason = "who runs the tests hears of it")]
    fn mount() -> Option<SmallDisk> {
        let dir = scratch_dir("disk").join("small");
        std::fs::create_dir(&dir).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=160m,mode=0755", "none"])
            .arg(&dir)
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(SmallDisk(dir));
        }
        eprintln!("skipped: no file system can be mounted here");
        None
    }

    /// Takes all the room that is left.
    fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        let mut file = File::create(&filler).unwrap();
        for size in [1 << 20, 1 << 10, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Text that does not compress.
fn noise(seed: usize) -> String {
    (0..1_000)
        .map(|n| format!("{:x?}", Sha256::digest(format!("{seed}/{n}"))))
        .collect()
}

async fn site() -> Site {
    let links: String = (0..PAGES)
        .map(|n| format!("<a href=/{n}>{n}</a>"))
        .collect();
    let site = Site::builder().page("/", links);
    (0..PAGES)
        .fold(site, |site, n| {
            site.delay(&format!("/{n}"), Duration::from_millis(20), noise(n))
        })
        .start()
        .await
}

async fn stored(dir: &Path, said: &str) {
    let server = Server::start(&EmbeddedSettings::in_dir(dir)).await.unwrap();
    let pool = connect(&server.url("main"), &DbSettings::default())
        .await
        .unwrap();
    let pages = "select count(*) from pages where http_status = 200";
    assert_eq!(number(&pool, pages).await, PAGES as i64 + 1, "{said}");
    assert_eq!(broken_invariants(&pool).await, Vec::<String>::new());
    pool.close().await;
    server.leave().await.unwrap();
}

#[tokio::test]
#[ignore = "mounts a file system"]
async fn a_crawl_waits_for_room_on_its_disk_and_goes_on() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let site = site().await;
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_pgcrawl"))
        .args(["crawl", &site.url("/"), "--delay", "0s", "--data-dir"])
        .arg(&disk.0)
        .env_remove("DATABASE_URL")
        .env("NO_COLOR", "1")
        .env("PGCRAWL_CRAWL_STORE_BODIES", "true")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    site.wait_for(|log| log.len() > 20).await;
    let filler = disk.fill();
    let mut words = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("disk is full") {
        assert_ne!(words.read_line(&mut said).await.unwrap(), 0, "{said}");
    }
    std::fs::remove_file(filler).unwrap();
    words.read_to_string(&mut said).await.unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0), "{said}");
    stored(&disk.0, &said).await;
    assert_eq!(site.requests().len(), PAGES + 2);
}
