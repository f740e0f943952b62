//! Many processes in one crawl: what they agree on, how they come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::response::IntoResponse as _;
use pgcrawl::db::DbSettings;
use pgcrawl::frontier::{Ears, Frontier, FrontierSettings};
use rustix::process::Signal;
use serde_json::Value;
use tokio::io::AsyncBufReadExt as _;
use tokio::process::Child;
use tokio::sync::Notify;

use crate::support::{
    crawl::{broken_invariants, column, number},
    db::{TestDb, bare_database},
    program::{ended, pgcrawl, run, signal},
    site::{Recorded, Site, SiteBuilder},
};

/// Pages that all link to all, each of them a little slow.
fn web(pages: usize, each: Duration) -> SiteBuilder {
    let all: String = (0..pages)
        .map(|n| format!("<a href=/{n}>{n}</a>"))
        .collect();
    (0..pages).fold(Site::builder().page("/", all.clone()), |site, n| {
        // Each says something of its own: a shape of pages that are alike would be parked.
        site.delay(&format!("/{n}"), each, format!("<title>{n}</title>{all}"))
    })
}

/// Reads a process's standard error until a line says something.
async fn says(child: &mut Child, word: &str) -> String {
    let mut lines = tokio::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        said.push_str(&line);
        said.push('\n');
        if line.contains(word) {
            // Whoever reads no more must not make the process fail to write.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return said;
        }
    }
    panic!("it never said {word:?}: {said}");
}

/// Until a count is reached.
async fn until(db: &TestDb, sql: &str, count: i64) {
    let long = tokio::time::Instant::now() + Duration::from_secs(60);
    while number(&db.pool, sql).await < count {
        assert!(tokio::time::Instant::now() < long, "{sql}");
    }
}

async fn stop(mut child: Child) -> i32 {
    signal(&child, Signal::TERM);
    child.wait().await.unwrap().code().unwrap()
}

#[tokio::test]
async fn a_process_joins_without_any_setting_and_takes_the_crawls() {
    // Eight seconds for one alone: on a busy machine a process takes some of them to come up.
    let site = web(400, Duration::from_millis(20)).start().await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    let arguments = [
        "crawl",
        &seed,
        "--delay",
        "0s",
        "--user-agent",
        "joined/1.0",
    ];
    let first = pgcrawl(&db, &arguments).spawn().unwrap();
    site.wait_for(|log| log.len() > 3).await;
    let (code, said) = ended(&run(&db, &["work", "--until-empty"]).await);
    assert_eq!(code, 0, "{said}");
    let (code, said) = ended(&first.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    let requests = site.requests();
    assert_eq!(requests.len(), 402);
    assert!(
        requests
            .iter()
            .all(|request| request.header("user-agent") == "joined/1.0")
    );
    let workers = "select count(*) from worker_counts where done > 0";
    assert_eq!(number(&db.pool, workers).await, 2);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_worker_stays_when_all_is_done_and_takes_what_comes_later() {
    let site = Site::builder()
        .page("/", "")
        .page("/later", "")
        .start()
        .await;
    let db = TestDb::new().await;
    run(&db, &["crawl", &site.url("/"), "--delay", "0s"]).await;
    let worker = pgcrawl(&db, &["work"]).spawn().unwrap();
    let (code, said) = ended(&run(&db, &["crawl", &site.url("/later"), "--max-pages", "1"]).await);
    assert!(code == 0 || code == 4, "{said}");
    site.wait_for(|log| log.iter().any(|request| request.target == "/later"))
        .await;
    assert_eq!(stop(worker).await, 5);
}

#[tokio::test]
async fn a_worker_waits_for_a_crawl_that_was_not_begun() {
    let site = Site::builder().page("/", "").start().await;
    let db = TestDb::new().await;
    let mut worker = pgcrawl(&db, &["work"]).spawn().unwrap();
    says(&mut worker, "no crawl was begun here yet").await;
    // It ends at a word, too.
    let mut other = pgcrawl(&db, &["work"]).spawn().unwrap();
    says(&mut other, "no crawl was begun here yet").await;
    assert_eq!(stop(other).await, 5);
    let (code, said) = ended(&run(&db, &["crawl", &site.url("/"), "--delay", "0s"]).await);
    assert_eq!(code, 0, "{said}");
    until(
        &db,
        "select count(*) from workers where stopped_at is null",
        1,
    )
    .await;
    assert_eq!(stop(worker).await, 5);
}

#[tokio::test]
async fn another_value_than_the_crawls_is_refused_by_name_with_what_to_type() {
    let site = Site::builder().page("/", "").start().await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    run(&db, &["crawl", &seed, "--delay", "0s"]).await;
    let before = site.requests().len();
    for (command, flag, value, key) in [
        ("work", "--delay", "250ms", "politeness.delay"),
        ("work", "--scope", "site", "crawl.scope"),
        ("crawl", "--max-depth", "3", "crawl.max_depth"),
        ("work", "--contact", "ops@example.org", "identity.contact"),
    ] {
        let (code, said) = ended(&run(&db, &[command, flag, value]).await);
        assert_eq!(code, 1, "{said}");
        let typed = format!("pgcrawl config set {key} {value}");
        assert!(said.contains(flag) && said.contains(&typed), "{said}");
    }
    assert_eq!(site.requests().len(), before);
    // The same value in other words is none.
    let (code, said) = ended(&run(&db, &["work", "--until-empty", "--delay", "0ms"]).await);
    assert_eq!(code, 0, "{said}");
}

#[tokio::test]
async fn a_setting_of_the_crawl_is_changed_by_name_and_judged_before() {
    let site = Site::builder().page("/", "").start().await;
    let db = TestDb::new().await;
    let (code, said) = ended(&run(&db, &["config", "set", "politeness.delay", "2s"]).await);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("no crawl was begun"), "{said}");
    run(&db, &["crawl", &site.url("/"), "--delay", "0s"]).await;
    for (key, value, says) in [
        ("politeness.dealy", "2s", "did you mean politeness.delay"),
        ("politeness.concurrency", "2", "each machine's own"),
        ("frontier.lease", "1s", "twice fetch.total_timeout"),
        ("politeness.delay", "soon", "politeness.delay"),
    ] {
        let (code, said) = ended(&run(&db, &["config", "set", key, value]).await);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(says), "{said}");
    }
    let (code, said) = ended(&run(&db, &["config", "set", "politeness.delay", "2s"]).await);
    assert_eq!(code, 0, "{said}");
    let output = run(&db, &["config", "agreed", "--json"]).await;
    let agreed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(agreed["politeness.delay"], "2s");
    assert_eq!(
        number(&db.pool, "select settings_version from crawl").await,
        1
    );
    // What is printed for people is a file that says the same.
    let output = run(&db, &["config", "agreed"]).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &output.stdout).unwrap();
    let config = file.path().to_str().unwrap();
    let (code, said) = ended(&run(&db, &["work", "--until-empty", "--config", config]).await);
    assert_eq!(code, 0, "{said}");
}

/// From none to some while four processes fetch side by side: from then on two fetches are the delay apart, whoever makes them.
#[tokio::test]
async fn all_running_processes_follow_a_new_delay_and_none_comes_too_early() {
    let delay = Duration::from_millis(400);
    let site = web(2_000, Duration::from_millis(30)).start().await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    let start = |arguments: &[&str]| {
        pgcrawl(&db, arguments)
            .env("PGCRAWL_FETCH_TOTAL_TIMEOUT", "1s")
            .env("PGCRAWL_FRONTIER_LEASE", "3s")
            .env("PGCRAWL_FRONTIER_HOLD", "1s")
            .spawn()
            .unwrap()
    };
    let mut children = vec![start(&["crawl", &seed, "--delay", "0s"])];
    site.wait_for(|log| log.len() > 2).await;
    for _ in 0..3 {
        children.push(start(&["work"]));
    }
    let busy = "select count(*) from worker_counts where done > 0";
    until(&db, busy, 4).await;
    let (code, said) = ended(&run(&db, &["config", "set", "politeness.delay", "400ms"]).await);
    assert_eq!(code, 0, "{said}");
    let changed = site.requests().len();
    // A hold begins when the fetches of the claims of before must be over.
    let mine = "from tasks t join hosts h on h.id = t.host_id and h.held_by = t.claimed_by where t.status = 'claimed'";
    until(&db, &format!("select count(*) {mine}"), 1).await;
    let under_it = column(&db.pool, &format!("select url {mine}")).await;
    let is_under_it = |request: &Recorded| under_it.contains(&site.url(&request.target));
    site.wait_for(|log| {
        let first = log.iter().position(is_under_it);
        first.is_some_and(|first| log.len() > first + 8)
    })
    .await;
    for child in &children {
        signal(child, Signal::TERM);
    }
    for child in children {
        let (code, said) = ended(&child.wait_with_output().await.unwrap());
        assert_eq!(code, 5, "{said}");
        assert!(said.contains("settings changed"), "{said}");
    }
    let requests = site.requests();
    let first = requests.iter().position(is_under_it).unwrap();
    assert!(changed <= first);
    // The first of them after the last of those of before, too.
    let ended = |request: &Recorded| request.ended.unwrap_or(request.started);
    for at in first..requests.len() {
        let last = requests[..at].iter().map(ended).max().unwrap();
        let gap = requests[at].started.saturating_duration_since(last);
        assert!(gap >= delay, "{gap:?} before {}", at - first);
    }
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_running_process_gives_its_stock_back_when_the_crawl_is_paused_and_goes_on_when_it_is_resumed()
 {
    let site = web(40, Duration::from_millis(200)).start().await;
    let db = TestDb::new().await;
    let mut crawl = pgcrawl(&db, &["crawl", &site.url("/"), "--delay", "0s"])
        .spawn()
        .unwrap();
    site.wait_for(|log| log.len() > 3).await;
    let (code, said) = ended(&run(&db, &["pause"]).await);
    assert_eq!(code, 0, "{said}");
    says(&mut crawl, "the crawl is paused").await;
    let before = site.requests().len();
    until(
        &db,
        "select (not exists (select from tasks where status = 'claimed'))::int",
        1,
    )
    .await;
    let asked = site.requests().len();
    // One was under way, and one may have begun while the words were read.
    assert!(asked <= before + 2, "{asked} after {before}");
    // Before the word is sent: it is heard, and the next page asked for, before the process that sent it has ended.
    let resumed = std::time::Instant::now();
    let (code, said) = ended(&run(&db, &["resume"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(crawl.wait().await.unwrap().code(), Some(0));
    let requests = site.requests();
    assert_eq!(requests.len(), 42);
    assert!(
        requests[asked..]
            .iter()
            .all(|request| request.started >= resumed)
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_new_scope_takes_in_what_is_found_from_then_on() {
    let other = Site::builder().page("/", "").page("/x", "").start().await;
    let link = format!("<a href={}>there</a>", other.url("/x"));
    let site = Site::builder().page("/", link).start().await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    run(
        &db,
        &[
            "crawl",
            &seed,
            "--delay",
            "0s",
            "--contact",
            "ops@example.org",
        ],
    )
    .await;
    assert_eq!(other.requests().len(), 0);
    let (code, said) = ended(&run(&db, &["config", "set", "crawl.scope", "any"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        column(&db.pool, "select rule from scope_rules").await,
        ["*"]
    );
    let (code, said) = ended(&run(&db, &["crawl", "--refresh", "--allow-private"]).await);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("fetch.allow_private"), "{said}");
    run(&db, &["config", "set", "fetch.allow_private", "true"]).await;
    let (code, said) = ended(&run(&db, &["crawl", "--refresh"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(other.count("/x"), 1);
}

#[tokio::test]
async fn eight_processes_of_which_one_brings_the_seeds_come_up_on_an_empty_database() {
    let site = web(80, Duration::from_millis(20)).start().await;
    let url = bare_database("UTF8").await;
    let url = secrecy::ExposeSecret::expose_secret(&url).to_owned();
    let seed = site.url("/");
    let mut children = Vec::new();
    for number in 0..8 {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_pgcrawl"));
        match number {
            4 => command.args(["crawl", &seed, "--delay", "0s"]),
            _ => command.args(["work", "--until-empty"]),
        };
        command
            .args(["--database-url", &url])
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
    assert_eq!((asked, targets.len()), (82, 82));
}

#[tokio::test]
async fn who_is_to_end_with_a_crawl_waits_for_its_first_seeds_or_a_word() {
    let site = Site::builder().page("/", "").start().await;
    let db = TestDb::new().await;
    let frontier = Frontier::new(db.pool.clone(), FrontierSettings::default());
    frontier
        .open(pgcrawl::canon::VERSION, &Default::default())
        .await
        .unwrap();
    let waits = "no tasks yet";
    let mut worker = pgcrawl(&db, &["work", "--until-empty"]).spawn().unwrap();
    says(&mut worker, waits).await;
    let mut other = pgcrawl(&db, &["work", "--until-empty"]).spawn().unwrap();
    says(&mut other, waits).await;
    assert_eq!(stop(other).await, 5);
    let (code, said) = ended(&run(&db, &["crawl", &site.url("/"), "--delay", "0s"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(worker.wait().await.unwrap().code(), Some(0));
    // Whoever comes to its end is told what goes on with it.
    let (code, said) = ended(&run(&db, &["work", "--until-empty"]).await);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("`pgcrawl crawl --refresh`"), "{said}");
}

/// F02 of the field cases: of two that fetched the same page, the one whose lease was lost changes nothing.
#[tokio::test]
async fn a_process_that_was_stopped_beyond_its_lease_changes_nothing_when_it_goes_on() {
    let first = Arc::new(Notify::new());
    let held = Arc::clone(&first);
    // The first to ask for it waits until it is told; whoever asks again is answered at once.
    let asked = Arc::new(AtomicUsize::new(0));
    let site = Site::builder()
        .route("/slow", move |_| {
            let (held, asked) = (Arc::clone(&held), Arc::clone(&asked));
            async move {
                if asked.fetch_add(1, Ordering::SeqCst) == 0 {
                    held.notified().await;
                }
                axum::response::Html("<title>slow</title>").into_response()
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let seed = site.url("/slow");
    let short = |arguments: &[&str]| {
        pgcrawl(&db, arguments)
            .env("PGCRAWL_FETCH_TOTAL_TIMEOUT", "3s")
            .env("PGCRAWL_FRONTIER_LEASE", "6s")
            .env("PGCRAWL_FRONTIER_DEAD_AFTER", "4s")
            .env("PGCRAWL_FRONTIER_HEARTBEAT", "500ms")
            .env("PGCRAWL_FRONTIER_HOLD", "1s")
            .env("PGCRAWL_FRONTIER_RECYCLE_EVERY", "200ms")
            .spawn()
            .unwrap()
    };
    let mut stopped = short(&["crawl", &seed, "--delay", "0s"]);
    site.wait_for(|log| log.iter().any(|request| request.target == "/slow"))
        .await;
    signal(&stopped, Signal::STOP);
    let other = short(&["work", "--until-empty"]);
    let (code, said) = ended(&other.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    assert_eq!(site.count("/slow"), 2);
    first.notify_one();
    signal(&stopped, Signal::CONT);
    says(&mut stopped, "declared dead").await;
    assert_eq!(stopped.wait().await.unwrap().code(), Some(0));
    let pages = "select claim_version, (select count(*) from workers w join worker_counts c on c.worker_id = w.id where c.done = 1) as finished from pages";
    assert_eq!(column(&db.pool, pages).await, ["2,1"]);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// F11 of the field cases: without anybody who can hear, and with ears that die all the time.
#[tokio::test]
async fn an_idle_worker_is_woken_and_one_whose_listener_dies_goes_on_by_looking() {
    let site = (0..40)
        .fold(Site::builder(), |site, n| {
            let next = format!("<a href=/{}>on</a>", n + 1);
            site.page(&format!("/{n}"), next)
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let worker = pgcrawl(&db, &["work"]).spawn().unwrap();
    let (code, said) = ended(
        &run(
            &db,
            &[
                "crawl",
                &site.url("/0"),
                "--delay",
                "0s",
                "--max-depth",
                "100",
                "--max-pages",
                "5",
            ],
        )
        .await,
    );
    assert_eq!(code, 4, "{said}");
    let ears = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'pgcrawl wake-ups'";
    until(&db, ears, 1).await;
    let kill = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and application_name = 'pgcrawl wake-ups'";
    for asked in [10, 20, 30] {
        site.wait_for(|log| log.len() > asked).await;
        number(&db.pool, kill).await;
    }
    site.wait_for(|log| log.iter().any(|request| request.target == "/39"))
        .await;
    assert_eq!(stop(worker).await, 5);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_nudge_is_heard_and_a_dead_ear_says_so() {
    let db = TestDb::new().await;
    let frontier = Frontier::new(db.pool.clone(), FrontierSettings::default());
    let ears = Ears::new(
        db.another_pool(&DbSettings {
            max_connections: 1,
            ..DbSettings::default()
        })
        .await,
    );
    let mut ear = ears.open().await.unwrap();
    frontier.nudge().await.unwrap();
    ear.hear().await.unwrap();
    let kill = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and query ilike 'listen%'";
    assert_eq!(number(&db.pool, kill).await, 1);
    assert!(ear.hear().await.is_err());
    drop(ear);
    let mut ear = ears.open().await.unwrap();
    frontier.nudge().await.unwrap();
    ear.hear().await.unwrap();
}

#[tokio::test]
async fn the_processes_of_a_crawl_are_shown_with_what_they_do() {
    let site = web(40, Duration::from_secs(60)).start().await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    let child = pgcrawl(&db, &["crawl", &seed, "--delay", "0s", "--per-host", "4"])
        .spawn()
        .unwrap();
    site.wait_for(|log| log.len() > 4).await;
    let shown = loop {
        let output = run(&db, &["workers", "--json"]).await;
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        if shown[0]["in_flight"] == 4 && shown[0]["done"] == 1 {
            break shown;
        }
    };
    let worker = &shown[0];
    assert_eq!(worker["state"], "alive");
    assert_eq!(worker["version"], env!("CARGO_PKG_VERSION"));
    let pid = child.id().unwrap().to_string();
    assert!(worker["name"].as_str().unwrap().ends_with(&pid), "{worker}");
    let output = run(&db, &["workers"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&pid) && text.contains("alive"), "{text}");
    drop(child);
}
