//! What a large crawl costs. Ignored in the normal run, since it takes minutes.

use std::time::Duration;

use axum::response::IntoResponse as _;

use crate::support::{
    crawl::{broken_invariants, column, number},
    db::TestDb,
    program::{ended, pgcrawl, run},
    site::Site,
};

/// Peak resident memory of a process in MiB (proc_pid_status(5), VmHWM), for as long as it can be asked.
#[cfg(target_os = "linux")]
fn peak_mib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

/// Run it with `PGCRAWL_BIN=$PWD/target/release/pgcrawl cargo test --test it memory_does -- --ignored --nocapture`.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn memory_does_not_grow_with_the_frontier() {
    const PAGES: u64 = 200_000;
    // Page n links to 2n+1 and 2n+2, to a few others, and to the navigation that all pages share.
    let site = Site::builder()
        .otherwise(|request| async move {
            let n: u64 = request
                .uri()
                .path()
                .trim_start_matches("/p")
                .parse()
                .unwrap_or(0);
            let mut html = format!(
                "<title>Page {n}</title><p>{}</p>",
                "lorem ipsum ".repeat(200)
            );
            for to in [
                2 * n + 1,
                2 * n + 2,
                (n * 7919) % PAGES,
                (n * 104_729) % PAGES,
            ] {
                if to < PAGES {
                    html.push_str(&format!("<a href=/p{to}>{to}</a>"));
                }
            }
            for to in 0..20 {
                html.push_str(&format!("<a href=/p{to}>{to}</a>"));
            }
            axum::response::Html(html).into_response()
        })
        .unrecorded()
        .start()
        .await;
    let db = TestDb::new().await;
    let seed = site.url("/p0");
    let mut child = pgcrawl(
        &db,
        &["crawl", &seed, "--delay", "0s", "--per-host", "32", "-q"],
    )
    .stderr(std::process::Stdio::inherit())
    .spawn()
    .unwrap();
    let pid = child.id().unwrap();
    let began = std::time::Instant::now();
    let mut peak = 0;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.unwrap(),
            () = tokio::time::sleep(std::time::Duration::from_millis(500)) => peak = peak.max(peak_mib(pid).unwrap_or(0)),
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{PAGES} pages in {seconds:.1} s ({:.0}/s), peak {peak} MiB",
        PAGES as f64 / seconds
    );
    assert!(status.success());
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 200"
        )
        .await,
        PAGES as i64
    );
    assert!(peak < 200, "{peak} MiB");
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// What two, four and eight processes do with one database, on a site whose answers take half a second: the time of a page is the site's, so that
/// two cores can show whether processes get into each other's way.
///
/// Run it with `PGCRAWL_BIN=$PWD/target/release/pgcrawl cargo test --test it processes_share -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn processes_share_a_crawl_without_getting_into_each_others_way() {
    const PAGES: usize = 4_900;
    const LATENCY: Duration = Duration::from_millis(500);
    println!("| processes | pages/s | to one | claim p50 | claim p99 |\n|---|---|---|---|---|");
    let mut one = None;
    for processes in [1, 2, 4, 8] {
        let site = Site::builder()
            .otherwise(|request| async move {
                if request.uri().path() != "/" {
                    tokio::time::sleep(LATENCY).await;
                    return axum::response::Html("<title>page</title>".to_owned()).into_response();
                }
                let links: String = (0..PAGES)
                    .map(|n| format!("<a href=/{n}>{n}</a>"))
                    .collect();
                axum::response::Html(links).into_response()
            })
            .unrecorded()
            .start()
            .await;
        let db = TestDb::new().await;
        let seed = site.url("/");
        let flags = ["--delay", "0s", "--per-host", "64"];
        let (code, said) = ended(
            &run(
                &db,
                &[&["crawl", &seed, "--max-pages", "1"], &flags[..]].concat(),
            )
            .await,
        );
        assert_eq!(code, 4, "{said}");
        let began = std::time::Instant::now();
        let children: Vec<_> = (0..processes)
            .map(|_| {
                pgcrawl(&db, &["work", "--until-empty", "--per-host", "64"])
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let (code, said) = ended(&child.wait_with_output().await.unwrap());
            assert_eq!(code, 0, "{said}");
        }
        let rate = PAGES as f64 / began.elapsed().as_secs_f64();
        let one = *one.get_or_insert(rate);
        let claims = column(&db.pool, "select round(max(claim_p50_ms)::numeric, 1), round(max(claim_p99_ms)::numeric, 1) from worker_reports").await;
        let claims = claims[0].replace(',', " ms | ");
        println!(
            "| {processes} | {rate:.0} | {:.2}x | {claims} ms |",
            rate / one
        );
        assert_eq!(
            number(&db.pool, "select count(*) from pages").await,
            PAGES as i64 + 1
        );
        assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
    }
}

/// What the link graph costs: the same site, 32 links to other pages on each page, with `--links` none, internal and all in turn.
///
/// Run it on a quiet machine with `PGCRAWL_BIN=$PWD/target/release/pgcrawl cargo test --test it the_link_graph_costs -- --ignored --nocapture`;
/// `PGCRAWL_SCALE_PAGES` (20,000) and `PGCRAWL_SCALE_ROUNDS` (3) say how much.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn the_link_graph_costs() {
    const LINKS: u64 = 32;
    let asked = |name: &str, default| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let pages: u64 = asked("PGCRAWL_SCALE_PAGES", 20_000);
    let site = Site::builder()
        .otherwise(move |request| async move {
            let path = request.uri().path().trim_start_matches("/p");
            let n: u64 = path.parse().unwrap_or(0);
            // Ten pages that all link to, the two that make it a tree, and others: each of them once.
            let mut to: Vec<u64> = (0..10).chain([2 * n + 1, 2 * n + 2]).collect();
            to.extend(
                (1..)
                    .map(|k| n * 7_919 + k * 104_729)
                    .take(4 * LINKS as usize),
            );
            let mut seen = std::collections::HashSet::new();
            let links: String = to
                .into_iter()
                .enumerate()
                .map(|(at, to)| if at < 10 { to } else { to % pages })
                .filter(|to| seen.insert(*to))
                .take(LINKS as usize)
                .map(|to| format!("<li><a href=/p{to}>Chapter {to} of the manual</a>\n"))
                .collect();
            let text = "lorem ipsum ".repeat(200);
            let html = format!("<title>Page {n}</title><p>{n} {text}</p><ul>{links}</ul>");
            axum::response::Html(html).into_response()
        })
        .unrecorded()
        .start()
        .await;
    let seed = site.url("/p0");
    println!("| --links | pages/s | rows | size |\n|---|---|---|---|");
    for _ in 0..asked("PGCRAWL_SCALE_ROUNDS", 3) {
        for graph in ["none", "internal", "all"] {
            let db = TestDb::new().await;
            let began = std::time::Instant::now();
            let flags = ["--delay", "0s", "--per-host", "32", "-q", "--links", graph];
            let (code, said) = ended(&run(&db, &[&["crawl", &seed], &flags[..]].concat()).await);
            let seconds = began.elapsed().as_secs_f64();
            assert_eq!(code, 0, "{said}");
            assert_eq!(
                number(&db.pool, "select count(*) from pages").await,
                pages as i64
            );
            let rows = number(&db.pool, "select count(*) from links").await;
            let bytes = number(&db.pool, "select pg_total_relation_size('links')").await;
            let rate = pages as f64 / seconds;
            println!(
                "| {graph} | {rate:.0} | {rows} | {} MB |",
                bytes / 1_000_000
            );
        }
    }
}
