//! Whole processes: what kills them, how they leave, and with which code.

use std::{collections::HashMap, time::Duration};

use rustix::process::Signal;
use tokio::io::AsyncBufReadExt as _;

use crate::support::{
    crawl::{broken_invariants, number},
    db::TestDb,
    program::{ended, pgcrawl, run, signal},
    site::{RawListener, Site, SiteBuilder, Then},
    wire::Wire,
};

/// Pages that all link to all, each of them a little slow.
fn web(pages: usize, each: Duration) -> SiteBuilder {
    let all: String = (0..pages)
        .map(|n| format!("<a href=/{n}>{n}</a>"))
        .collect();
    (0..pages).fold(Site::builder().page("/", all.clone()), |site, n| {
        site.delay(&format!("/{n}"), each, format!("<title>{n}</title>{all}"))
    })
}

/// F13 of the field cases, with a kill that nothing can catch.
#[tokio::test]
async fn a_crawl_that_was_killed_goes_on_at_once_and_loses_and_doubles_nothing() {
    let site = web(120, Duration::from_millis(15)).start().await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    let arguments = ["crawl", &seed, "--delay", "0s", "--per-host", "4"];
    let mut child = pgcrawl(&db, &arguments).spawn().unwrap();
    site.wait_for(|log| log.len() > 40).await;
    child.kill().await.unwrap();
    let asked_before = site.requests().len();

    let output = run(&db, &arguments).await;
    let (code, said) = ended(&output);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("earlier processes of this machine are gone"),
        "{said}"
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 200"
        )
        .await,
        121
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
    let mut times: HashMap<String, usize> = HashMap::new();
    for target in site.targets() {
        *times.entry(target).or_default() += 1;
    }
    assert_eq!(times.remove("/robots.txt"), Some(1));
    // Asked for twice is only what was asked for and not yet in the database when the process was killed.
    let twice = times.values().filter(|n| **n == 2).count();
    assert!(times.values().all(|n| *n <= 2), "{times:?}");
    let lost = number(
        &db.pool,
        "select count(*) from tasks where claim_version = 2",
    )
    .await;
    assert!(
        twice as i64 <= lost && twice < asked_before,
        "{twice} twice, {lost} claimed twice"
    );
}

#[tokio::test]
async fn the_first_sigterm_drains_and_the_code_says_so() {
    let site = web(60, Duration::from_millis(100)).start().await;
    let db = TestDb::new().await;
    let child = pgcrawl(
        &db,
        &["crawl", &site.url("/"), "--delay", "0s", "--per-host", "4"],
    )
    .spawn()
    .unwrap();
    site.wait_for(|log| log.len() > 6).await;
    signal(&child, Signal::TERM);
    let (code, said) = ended(&child.wait_with_output().await.unwrap());
    assert_eq!(code, 5, "{said}");
    let done = number(&db.pool, "select count(*) from pages").await;
    assert_eq!(done, site.requests().len() as i64 - 1, "{said}");
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'claimed'"
        )
        .await,
        0
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_second_signal_leaves_at_once_and_leaves_nothing_to_repair() {
    let site = web(20, Duration::from_secs(120)).start().await;
    let db = TestDb::new().await;
    let mut child = pgcrawl(
        &db,
        &["crawl", &site.url("/"), "--delay", "0s", "--per-host", "4"],
    )
    .spawn()
    .unwrap();
    site.wait_for(|log| log.len() > 4).await;
    signal(&child, Signal::INT);
    // Two at once are one to the system: the second comes when the first was understood.
    let mut lines = tokio::io::BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("finishing what is in flight") {
            break;
        }
    }
    signal(&child, Signal::INT);
    let output = child.wait_with_output().await.unwrap();
    let (code, said) = ended(&output);
    assert_eq!(code, 5, "{said}");
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'new' and attempts = 0"
        )
        .await,
        20
    );
}

#[tokio::test]
async fn a_crawl_whose_seeds_all_fail_has_a_code_of_its_own() {
    let site = Site::builder().start().await;
    let db = TestDb::new().await;
    let (code, said) = ended(&run(&db, &["crawl", &site.url("/gone"), "--delay", "0s"]).await);
    assert_eq!(code, 6, "{said}");
}

#[tokio::test]
async fn a_crawl_that_robots_forbids_has_a_code_of_its_own() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /\n")
        .start()
        .await;
    let db = TestDb::new().await;
    let (code, said) = ended(&run(&db, &["crawl", &site.url("/"), "--delay", "0s"]).await);
    assert_eq!(code, 7, "{said}");
}

#[tokio::test]
async fn a_limit_has_a_code_of_its_own_and_the_words_say_how_to_go_on() {
    let site = web(20, Duration::from_millis(1)).start().await;
    let db = TestDb::new().await;
    let arguments = ["crawl", &site.url("/"), "--delay", "0s", "--max-pages", "5"];
    let (code, said) = ended(&run(&db, &arguments).await);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("goes on"), "{said}");
    let (code, said) = ended(&run(&db, &["crawl", "--delay", "0s"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(site.requests().len(), 22);
}

#[tokio::test]
async fn a_crawl_with_hosts_given_up_has_a_code_of_its_own() {
    let dead = RawListener::start(|_| (Vec::new(), Then::Reset)).await;
    let site = Site::builder().page("/", "").start().await;
    let db = TestDb::new().await;
    let (seed, bad) = (site.url("/"), dead.url("/"));
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        config.path(),
        "[retry]\nrobots_wait = \"100ms\"\nrobots_tries = 2\n",
    )
    .unwrap();
    let config = config.path().to_str().unwrap();
    let arguments = ["crawl", &seed, &bad, "--delay", "0s", "--config", config];
    let (code, said) = ended(&run(&db, &arguments).await);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("given up: http://127.0.0.1"), "{said}");
}

#[tokio::test]
async fn with_nothing_open_it_fetches_nothing_and_says_what_would_change_that() {
    let site = Site::builder().page("/", "").start().await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    run(&db, &["crawl", &seed, "--delay", "0s"]).await;
    let before = site.requests().len();
    let (code, said) = ended(&run(&db, &["crawl", &seed, "--delay", "0s"]).await);
    assert_eq!(code, 0, "{said}");
    for word in ["nothing is open", "--refresh", "--crawl OTHER"] {
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(site.requests().len(), before);
    let (code, said) = ended(&run(&db, &["crawl", "--refresh", "--delay", "0s"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(site.count("/"), 2);
}

#[tokio::test]
async fn a_bad_seed_is_named_by_its_line_and_the_rest_is_crawled() {
    let site = Site::builder().page("/a", "").page("/b", "").start().await;
    let db = TestDb::new().await;
    let seeds = tempfile::NamedTempFile::new().unwrap();
    let text = format!(
        "\u{feff}# seeds\r\n{}\r\n\r\nhttp://[bad\r\n{}\r\n",
        site.url("/a"),
        site.url("/b")
    );
    std::fs::write(seeds.path(), text).unwrap();
    let name = seeds.path().to_str().unwrap();
    let (code, said) = ended(&run(&db, &["crawl", name, "--delay", "0s"]).await);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(&format!("{name}:4:")), "{said}");
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 200"
        )
        .await,
        2
    );
}

#[tokio::test]
async fn an_empty_seed_file_is_an_error() {
    let db = TestDb::new().await;
    let seeds = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(seeds.path(), "# nothing\n").unwrap();
    let (code, said) = ended(&run(&db, &["crawl", seeds.path().to_str().unwrap()]).await);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("no seed in"), "{said}");
}

#[tokio::test]
async fn a_crawl_of_several_sites_without_a_contact_is_refused_before_any_request() {
    let db = TestDb::new().await;
    let arguments = ["crawl", "http://one.example/", "http://two.example/"];
    let (code, said) = ended(&run(&db, &arguments).await);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("--contact"), "{said}");
    assert_eq!(number(&db.pool, "select sum(claimed) from hosts").await, 0);
}

#[tokio::test]
async fn eight_processes_on_an_empty_database_all_come_up_and_share_the_work() {
    let site = web(80, Duration::from_millis(20)).start().await;
    let url = crate::support::db::bare_database("UTF8").await;
    let seed = site.url("/");
    let mut children = Vec::new();
    for _ in 0..8 {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_pgcrawl"));
        command
            .args([
                "crawl",
                &seed,
                "--delay",
                "0s",
                "--per-host",
                "2",
                "--database-url",
            ])
            .arg(secrecy::ExposeSecret::expose_secret(&url))
            .current_dir(std::env::temp_dir())
            .stdin(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .kill_on_drop(true);
        children.push(command.spawn().unwrap());
    }
    for child in children {
        let (code, said) = ended(&child.wait_with_output().await.unwrap());
        assert_eq!(code, 0, "{said}");
    }
    let mut targets = site.targets();
    targets.sort_unstable();
    let asked = targets.len();
    targets.dedup();
    assert_eq!(asked, targets.len());
    assert_eq!(asked, 82);
}

#[tokio::test]
async fn connections_that_are_cut_again_and_again_lose_and_double_nothing() {
    let site = web(150, Duration::from_millis(10)).start().await;
    let db = TestDb::new().await;
    let wire = Wire::to(&db).await;
    let (seed, url) = (site.url("/"), wire.url());
    let arguments = [
        "crawl",
        &seed,
        "--delay",
        "0s",
        "--per-host",
        "4",
        "--database-url",
        &url,
    ];
    // A claim whose answer is lost comes back when its lease is over: a short one, then.
    let child = pgcrawl(&db, &arguments)
        .env("PGCRAWL_FETCH_CONNECT_TIMEOUT", "1s")
        .env("PGCRAWL_FETCH_IDLE_TIMEOUT", "2s")
        .env("PGCRAWL_FETCH_TOTAL_TIMEOUT", "2s")
        .env("PGCRAWL_SHUTDOWN_GRACE", "2s")
        .env("PGCRAWL_FRONTIER_LEASE", "6s")
        .env("PGCRAWL_FRONTIER_HOLD", "1s")
        .env("PGCRAWL_FRONTIER_RECYCLE_EVERY", "500ms")
        .spawn()
        .unwrap();
    for asked in [20, 50, 80, 110, 140] {
        site.wait_for(|log| log.len() > asked).await;
        wire.cut();
    }
    let (code, said) = ended(&child.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 200"
        )
        .await,
        151
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_database_that_stays_away_ends_the_crawl_with_a_code_of_its_own() {
    let site = web(150, Duration::from_millis(10)).start().await;
    let db = TestDb::new().await;
    let wire = Wire::to(&db).await;
    let (seed, url) = (site.url("/"), wire.url());
    let arguments = [
        "crawl",
        &seed,
        "--delay",
        "0s",
        "--per-host",
        "4",
        "--database-url",
        &url,
    ];
    let child = pgcrawl(&db, &arguments)
        .env("PGCRAWL_DATABASE_PATIENCE", "300ms")
        .spawn()
        .unwrap();
    site.wait_for(|log| log.len() > 20).await;
    wire.kill();
    let (code, said) = ended(&child.wait_with_output().await.unwrap());
    assert_eq!(code, 8, "{said}");
    assert!(said.contains("nothing is lost"), "{said}");
    // And so it is: with the database back, the next start does the rest.
    let (code, said) = ended(&run(&db, &["crawl", "--delay", "0s", "--per-host", "4"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 200"
        )
        .await,
        151
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}
