//! Real processes that are killed, stopped and started again, on a server that restarts and over connections that are cut: nothing is lost or
//! done twice, and each host is asked as gently as by one process in peace.

#![allow(clippy::print_stdout, reason = "how rough it was, for whoever looks")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pgcrawl::db::embedded::{EmbeddedSettings, Server};
use pgcrawl::db::{DbSettings, connect, migrate};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::process::{Child, Command};

use crate::support::{
    crawl::{broken_invariants, column, number},
    db::scratch_dir,
    program::{ended, signal},
    site::{Recorded, Site},
    wire::Wire,
};

const HOSTS: usize = 5;
const PROCESSES: usize = 4;
const DELAY: Duration = Duration::from_millis(100);

/// What it is raised to on the way.
const LATER: &str = "150ms";

/// How long after a blow a fetch may still be dropped because of it: the grace, the dead limit, and some for a slow machine. Whoever is killed
/// drops all at once.
const AFTERMATH: Duration = Duration::from_secs(4);

/// A request that a process had decided on before it was stopped goes out when it goes on, past its deadline: nobody can prevent that. It does so
/// at once.
const RESUMED: Duration = Duration::from_millis(500);

/// What is done to them, and how much there is to crawl.
struct Plan {
    pages: usize,
    rough: Duration,
    restarts: usize,
}

/// What can make a process drop a fetch in the middle: from right before it until its last effect.
struct Blow {
    from: Instant,
    to: Instant,
}

/// The processes of a crawl.
struct Fleet {
    url: String,
    seeds: Vec<String>,
    dir: PathBuf,
    children: Vec<Child>,
    started: usize,
    /// Whether the crawl was given another delay than the one that its first processes bring.
    slowed: bool,
    resumed: Vec<Instant>,
    blows: Vec<Blow>,
    kills: usize,
    stops: usize,
    cuts: usize,
}

impl Fleet {
    fn start(&mut self) {
        self.started += 1;
        let log = std::fs::File::create(self.dir.join(format!("{}.log", self.started))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgcrawl"));
        command
            .arg("crawl")
            .args(&self.seeds)
            .args(["--database-url", &self.url])
            .args(match self.slowed {
                false => &["--delay", "100ms"][..],
                true => &[],
            })
            .envs([
                ("PGCRAWL_FETCH_TOTAL_TIMEOUT", "1s"),
                ("PGCRAWL_FRONTIER_LEASE", "3s"),
                ("PGCRAWL_FRONTIER_HOLD", "500ms"),
                ("PGCRAWL_FRONTIER_HEARTBEAT", "400ms"),
                ("PGCRAWL_FRONTIER_DEAD_AFTER", "2s"),
                ("PGCRAWL_FRONTIER_RECYCLE_EVERY", "500ms"),
                // Whoever dies here is no page's victim.
                ("PGCRAWL_FRONTIER_MAX_EXPIRIES", "1000"),
                ("PGCRAWL_SHUTDOWN_GRACE", "1s"),
                ("PGCRAWL_DATABASE_PATIENCE", "60s"),
                ("NO_COLOR", "1"),
            ])
            .current_dir(std::env::temp_dir())
            .stdin(std::process::Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        self.children.push(command.spawn().unwrap());
    }

    /// Those that ended by themselves are out; answers whether one of them found that nothing is left.
    fn ended(&mut self) -> bool {
        let mut finished = false;
        self.children
            .retain_mut(|child| match child.try_wait().unwrap() {
                Some(status) => {
                    finished |= status.code() == Some(0);
                    false
                }
                None => true,
            });
        finished
    }

    /// One of them, or the way to the database, is in trouble.
    async fn shock(&mut self, rng: &mut StdRng, wire: &Wire) {
        if self.children.is_empty() {
            return;
        }
        let which = rng.random_range(0..self.children.len());
        let from = Instant::now();
        let mut aftermath = AFTERMATH;
        match rng.random_range(0..8) {
            0..3 => {
                aftermath = Duration::ZERO;
                let mut child = self.children.swap_remove(which);
                child.kill().await.unwrap();
                self.kills += 1;
            }
            3..6 => {
                let child = &self.children[which];
                signal(child, Signal::STOP);
                // Some beyond the lease, some not.
                tokio::time::sleep(Duration::from_millis(rng.random_range(200..4_500))).await;
                self.resumed.push(Instant::now());
                signal(child, Signal::CONT);
                self.stops += 1;
            }
            6 => {
                signal(&self.children[which], Signal::TERM);
            }
            _ => return self.cut(wire),
        }
        self.blow_since(from, aftermath);
    }

    /// Drops no fetch.
    fn cut(&mut self, wire: &Wire) {
        wire.cut();
        self.cuts += 1;
    }

    fn blow_since(&mut self, from: Instant, aftermath: Duration) {
        let to = Instant::now() + aftermath;
        self.blows.push(Blow { from, to });
    }

    /// All processes, running or to come, keep a longer delay from here on.
    async fn slow_down(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgcrawl"));
        command
            .args(["config", "set", "politeness.delay", LATER])
            .args(["--database-url", &self.url])
            .current_dir(std::env::temp_dir());
        let (code, said) = ended(&command.output().await.unwrap());
        assert_eq!(code, 0, "{said}");
        self.slowed = true;
    }

    /// When a request was over at the earliest. One without an end was dropped by whoever made it, in one of the blows, or lasts still.
    fn end_of(&self, request: &Recorded) -> Option<Instant> {
        request.ended.or_else(|| {
            let blow = self.blows.iter().find(|blow| blow.to >= request.started)?;
            Some(blow.from.max(request.started))
        })
    }

    fn words(&self) -> String {
        (1..=self.started)
            .map(|n| {
                let log = std::fs::read_to_string(self.dir.join(format!("{n}.log")));
                let log = log.unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(12).collect();
                format!("{n}: {}\n", tail.join(" | "))
            })
            .collect()
    }
}

fn pid_of(dir: &Path) -> Pid {
    let text = std::fs::read_to_string(dir.join("postgres/postmaster.pid")).unwrap();
    Pid::from_raw(text.lines().next().unwrap().parse().unwrap()).unwrap()
}

async fn restart(dir: &Path, settings: &EmbeddedSettings, mode: Signal) -> Server {
    let pid = pid_of(dir);
    kill_process(pid, mode).unwrap();
    while test_kill_process(pid).is_ok() && dir.join("postgres/postmaster.pid").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Server::start(settings).await.unwrap()
}

async fn web(pages: usize) -> Site {
    let all: String = (0..pages)
        .map(|n| format!("<a href=/{n}>{n}</a>"))
        .collect();
    let site = Site::builder().page("/", all.clone());
    let site = (0..pages).fold(site, |site, n| {
        site.delay(
            &format!("/{n}"),
            Duration::from_millis(10),
            format!("<title>{n}</title>{all}"),
        )
    });
    site.start().await
}

/// Each fetch of a host begins at least the delay after the end of all before it. Answers how many were excused: sent by a process that had
/// been stopped.
fn assert_apart(mut requests: Vec<Recorded>, fleet: &Fleet) -> usize {
    requests.sort_by_key(|request| request.started);
    let excused = |request: &Recorded| {
        fleet.resumed.iter().any(|at| {
            // It may have been sent right after, or arrived while the time was being read.
            request.started + Duration::from_millis(5) >= *at && request.started <= *at + RESUMED
        })
    };
    let mut excuses = 0;
    let mut last: Option<(Instant, &Recorded)> = None;
    for request in &requests {
        if let Some((ended, before)) = last {
            let gap = request.started.saturating_duration_since(ended);
            if gap < DELAY {
                assert!(
                    excused(request) || excused(before),
                    "{gap:?} between {} and {}",
                    before.target,
                    request.target
                );
                excuses += 1;
            }
        }
        let ended = fleet.end_of(request).unwrap_or_else(|| {
            let last = requests.last().map(|last| last.started);
            last.unwrap_or(request.started)
        });
        if last.is_none_or(|(latest, _)| ended >= latest) {
            last = Some((ended, request));
        }
    }
    excuses
}

async fn trial(plan: Plan) {
    let seed: u64 = rand::random();
    let mut rng = StdRng::seed_from_u64(seed);
    let dir = scratch_dir("chaos");
    let settings = EmbeddedSettings::in_dir(&dir);
    let mut servers = vec![Server::start(&settings).await.unwrap()];
    servers[0].create_database("main").await.unwrap();
    let wire = Wire::to_url(&servers[0].tcp_url("main")).await;
    let mut sites = Vec::new();
    for _ in 0..HOSTS {
        sites.push(web(plan.pages).await);
    }
    // One of them is asked without a delay, by all at once.
    let hasty = sites[HOSTS - 1].authority();
    let pool = connect(&servers[0].url("main"), &DbSettings::default())
        .await
        .unwrap();
    migrate(&pool).await.unwrap();
    sqlx::query("insert into hosts (authority, delay_ms) values ($1, 0)")
        .bind(hasty)
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let logs = scratch_dir("chaos-logs");
    let mut fleet = Fleet {
        url: wire.url(),
        seeds: sites.iter().map(|site| site.url("/")).collect(),
        dir: logs,
        children: Vec::new(),
        started: 0,
        slowed: false,
        resumed: Vec::new(),
        blows: Vec::new(),
        kills: 0,
        stops: 0,
        cuts: 0,
    };

    let began = Instant::now();
    let mut restarts = 0;
    while began.elapsed() < plan.rough && !fleet.ended() {
        while fleet.children.len() < PROCESSES {
            fleet.start();
        }
        let due = plan
            .rough
            .mul_f64((restarts + 1) as f64 / (plan.restarts + 1) as f64);
        if restarts < plan.restarts && began.elapsed() > due {
            let mode = [Signal::INT, Signal::QUIT][restarts % 2];
            let from = Instant::now();
            servers.push(restart(&dir, &settings, mode).await);
            fleet.blow_since(from, AFTERMATH);
            restarts += 1;
        }
        if fleet.cuts == 0 && began.elapsed() > plan.rough / 8 {
            fleet.cut(&wire);
        }
        if !fleet.slowed && began.elapsed() > plan.rough / 4 {
            fleet.slow_down().await;
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(100..700))).await;
        fleet.shock(&mut rng, &wire).await;
    }

    // In peace they come to the end.
    let long = Instant::now() + Duration::from_secs(180);
    while !fleet.ended() {
        while fleet.children.len() < PROCESSES {
            fleet.start();
        }
        assert!(Instant::now() < long, "no end: {seed}\n{}", fleet.words());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let from = Instant::now();
    for mut child in std::mem::take(&mut fleet.children) {
        signal(&child, Signal::TERM);
        child.wait().await.unwrap();
    }
    fleet.blow_since(from, AFTERMATH);

    let pool = connect(&servers.last().unwrap().url("main"), &DbSettings::default())
        .await
        .unwrap();
    let words = || format!("{seed}\n{}", fleet.words());
    // Whoever was killed last is buried by the next that comes; here nobody comes.
    let settings = pgcrawl::frontier::FrontierSettings::default();
    let frontier = pgcrawl::frontier::Frontier::new(pool.clone(), settings);
    frontier.recycle_dead().await.unwrap();
    assert_eq!(
        broken_invariants(&pool).await,
        Vec::<String>::new(),
        "{}",
        words()
    );
    let open = "select status, reason, count(*) from tasks where status <> 'done' group by 1, 2";
    assert_eq!(
        column(&pool, open).await,
        Vec::<String>::new(),
        "{}",
        words()
    );
    let all = (HOSTS * (plan.pages + 1)) as i64;
    let stored = "select count(*) from pages where http_status = 200";
    assert_eq!(number(&pool, stored).await, all, "{}", words());
    let (mut excused, mut asked) = (0, 0);
    for (number, site) in sites.iter().enumerate() {
        let requests = site.requests();
        asked += requests.len();
        if number < HOSTS - 1 {
            excused += assert_apart(requests, &fleet);
        }
    }
    assert!(excused <= fleet.stops, "{excused} of {}", fleet.stops);
    // They were disturbed, and much of it in the midst of their work.
    assert!(
        fleet.kills + fleet.stops >= 3,
        "{} kills, {} stops",
        fleet.kills,
        fleet.stops
    );
    assert!(
        restarts >= 1 && fleet.cuts >= 1 && fleet.slowed,
        "{restarts} restarts, {} cuts, slowed: {}",
        fleet.cuts,
        fleet.slowed
    );
    println!(
        "{asked} requests for {all} pages, {} processes, {} kills, {} stops, {} cuts, {restarts} restarts, {excused} excused, {:.0?}",
        fleet.started,
        fleet.kills,
        fleet.stops,
        fleet.cuts,
        began.elapsed()
    );
    pool.close().await;
    for server in servers {
        server.leave().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_die_stop_and_lose_their_database_lose_and_double_nothing_and_stay_polite() {
    trial(Plan {
        pages: 120,
        rough: Duration::from_secs(20),
        restarts: 2,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes five minutes"]
async fn for_five_minutes_as_well() {
    trial(Plan {
        pages: 600,
        rough: Duration::from_secs(300),
        restarts: 8,
    })
    .await;
}
