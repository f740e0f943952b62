//! Hosts that hold on to whoever asks them, among hosts that do not.

use std::sync::Arc;
use std::time::Duration;

use async_compression::tokio::bufread::GzipEncoder;
use pgcrawl::crawl::{End, Stop};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::fetch::rubbish;
use crate::support::{
    crawl::{Setup, broken_invariants, column, number, urls},
    db::TestDb,
    program::pgcrawl,
    site::{RawListener, Site, Then},
};

const NO_ROBOTS: &[u8] =
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A server that sends `first`, and then `piece` again and again, but for robots.txt, of which it has none.
struct Trickle {
    address: std::net::SocketAddr,
    serving: tokio::task::JoinHandle<()>,
}

impl Trickle {
    async fn start(first: &'static [u8], piece: &'static [u8], pause: Duration) -> Trickle {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.spawn(async move {
                    let mut head = vec![0; 4096];
                    let read = stream.read(&mut head).await?;
                    if head[..read].starts_with(b"GET /robots.txt") {
                        return stream.write_all(NO_ROBOTS).await;
                    }
                    stream.write_all(first).await?;
                    loop {
                        tokio::time::sleep(pause).await;
                        stream.write_all(piece).await?;
                    }
                });
            }
        });
        Trickle { address, serving }
    }
}

impl Drop for Trickle {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The four that hold on, and what they are asked for.
struct Hostile {
    _servers: (Trickle, Trickle, RawListener, RawListener),
    seeds: Vec<String>,
}

impl Hostile {
    async fn start(pages: usize) -> Hostile {
        let pause = Duration::from_millis(20);
        let loris = Trickle::start(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n", 10 * pause).await;
        let endless = Trickle::start(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n",
            &[b'x'; 1024],
            pause,
        )
        .await;
        let bomb = {
            let mut member = Vec::new();
            let zeros = vec![b' '; 1 << 20];
            let mut encoder = GzipEncoder::new(&zeros[..]);
            encoder.read_to_end(&mut member).await.unwrap();
            let head =
                b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-encoding: gzip\r\n\r\n";
            Arc::new([&head[..], &member.repeat(10_000)].concat())
        };
        let bombs = RawListener::start(move |request| match request.target() {
            "/robots.txt" => (NO_ROBOTS.to_vec(), Then::Close),
            _ => (bomb.to_vec(), Then::Close),
        })
        .await;
        let resets = RawListener::start(|_| (Vec::new(), Then::Reset)).await;
        let roots = [
            format!("http://{}", loris.address),
            format!("http://{}", endless.address),
            bombs.url(""),
            resets.url(""),
        ];
        let seeds = roots
            .iter()
            .flat_map(|root| (0..pages).map(move |n| format!("{root}/{n}")))
            .collect();
        Hostile {
            _servers: (loris, endless, bombs, resets),
            seeds,
        }
    }
}

async fn good_sites(pages: usize, latency: Duration) -> Vec<Site> {
    let mut sites = Vec::new();
    for _ in 0..16 {
        let links: String = (0..pages).map(|n| format!("<a href=/{n}>x</a>")).collect();
        let mut site = Site::builder().page("/", links);
        for n in 0..pages {
            site = site.delay(&format!("/{n}"), latency, format!("<title>{n}</title>"));
        }
        sites.push(site.start().await);
    }
    sites
}

/// With the limits of the field: what holds on is held for a minute.
fn patient() -> Setup {
    let mut setup = Setup::quick();
    setup.fetch.total_timeout = Duration::from_secs(60);
    setup.crawl.visit_budget = Duration::from_secs(60);
    setup
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_hold_on_do_not_hold_up_the_others() {
    let (pages, hostile) = (10, Hostile::start(6).await);
    let sites = good_sites(pages, Duration::ZERO).await;
    let db = TestDb::new().await;
    let crawl = patient().join(&db).await;
    let mut seeds = hostile.seeds.clone();
    seeds.extend(sites.iter().map(|site| site.url("/")));
    crawl.add_seeds(&urls(&seeds)).await.unwrap();
    let stop = Stop::default();
    let watch = async {
        for site in &sites {
            site.wait_for(|log| log.len() >= pages + 2).await;
        }
        let slow = "select count(*) from tasks where status = 'claimed' and attempts > 0";
        let held = number(&db.pool, slow).await;
        stop.abort.cancel();
        held
    };
    let (summary, held) = tokio::join!(crawl.run(stop.clone()), watch);
    crawl.leave().await;
    assert_eq!(summary.unwrap().end, End::Interrupted);
    assert!(held >= 12, "the slow ones are still held: {held}");
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_holds_on_ends_by_its_limit_and_says_which() {
    let hostile = Hostile::start(2).await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.fetch.total_timeout = Duration::from_secs(2);
    setup.fetch.connect_timeout = Duration::from_millis(500);
    setup.fetch.idle_timeout = Duration::from_millis(500);
    setup.crawl.visit_budget = Duration::from_secs(2);
    setup.crawl.retry.waits = Vec::new();
    let summary = setup.crawl(&db, &hostile.seeds).await;
    assert_eq!(summary.end, End::Finished);
    let found = "select t.status, t.reason, p.truncated, count(*) from tasks t left join pages p on p.task_id = t.id group by 1, 2, 3 order by 1, 2, 3";
    assert_eq!(
        column(&db.pool, found).await,
        [
            "done,,length,2",
            "done,,time,2",
            "failed,idle_timeout,,2",
            "failed,robots_unreachable,,2"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_costs_a_crawl_more_than_its_own_page() {
    let count = 400;
    let mut runner = TestRunner::deterministic();
    let answers: Vec<_> = (0..count)
        .map(|_| rubbish::answer().new_tree(&mut runner).unwrap().current())
        .collect();
    let raw = RawListener::start(move |request| match request.target() {
        "/robots.txt" => (NO_ROBOTS.to_vec(), Then::Close),
        target => {
            let number = target.trim_matches(|c: char| !c.is_ascii_digit());
            answers[number.parse::<usize>().unwrap_or(0) % count].clone()
        }
    })
    .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.fetch.idle_timeout = Duration::from_millis(100);
    setup.fetch.connect_timeout = Duration::from_millis(400);
    setup.crawl.keep_bodies = true;
    setup.crawl.retry.waits = Vec::new();
    setup.crawl.retry.max_deferrals = 0;
    setup.crawl.retry.breaker_failures = u16::MAX;
    setup.crawl.retry.too_many_wait = Duration::from_millis(1);
    setup.crawl.retry.max_retry_after = Duration::from_millis(1);
    setup.traps.max_depth = 1;
    let seeds: Vec<String> = (0..count).map(|n| raw.url(&format!("/{n}"))).collect();
    let summary = setup.crawl(&db, &seeds).await;
    assert_eq!(summary.end, End::Finished);
    let open = "select count(*) from tasks where status in ('new', 'claimed')";
    assert_eq!(number(&db.pool, open).await, 0);
    let lost =
        "select url, reason, detail from tasks where reason in ('panic', 'unstorable', 'poison')";
    assert_eq!(column(&db.pool, lost).await, Vec::<String>::new());
    assert!(summary.counts.done > 100, "{:?}", summary.counts);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// The most memory that a process had so far, in MiB.
fn peak_of(child: &tokio::process::Child) -> u64 {
    let file = format!("/proc/{}/status", child.id().unwrap());
    let status = std::fs::read_to_string(file).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() / 1024
}

/// Prints how fast a process of its own crawls sixteen good hosts alone and beside the four that hold on, in turn, and its memory: at once
/// and with answers that take a while, as they do on a network.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: run it alone and in release, with --nocapture"]
#[allow(clippy::print_stdout, reason = "it prints what it measured")]
async fn measure_good_hosts_beside_hostile_ones() {
    let pages = 250;
    for (latency, round) in [0, 20]
        .into_iter()
        .flat_map(|ms| (0..3).map(move |round| (ms, round)))
    {
        for beside in [false, true] {
            let hostile = Hostile::start(20).await;
            let sites = good_sites(pages, Duration::from_millis(latency)).await;
            let db = TestDb::new().await;
            let mut seeds: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
            if beside {
                seeds.extend(hostile.seeds.clone());
            }
            let mut arguments = vec!["crawl", "--delay", "0s", "--contact", "ops@example.org"];
            arguments.extend(seeds.iter().map(String::as_str));
            let mut child = pgcrawl(&db, &arguments)
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            for site in &sites {
                site.wait_for(|log| log.len() >= pages + 2).await;
            }
            let peak = peak_of(&child);
            let logs: Vec<_> = sites.iter().flat_map(Site::requests).collect();
            let began = logs.iter().map(|request| request.started).min().unwrap();
            let ended = logs.iter().map(|request| request.started).max().unwrap();
            let took = (ended - began).as_secs_f64();
            let count = sites.len() * (pages + 1);
            println!(
                "answers after {latency} ms, round {round}, {}: {count} pages of 16 good hosts in {took:.2} s, {:.0} a second; {peak} MiB at most",
                if beside {
                    "beside 4 hostile hosts"
                } else {
                    "alone"
                },
                count as f64 / took,
            );
            child.kill().await.unwrap();
        }
    }
}
