//! Politeness that several processes keep together: the crawl's rate, the delay of an address, a pace that answers asked for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;

use crate::support::{
    crawl::{Setup, broken_invariants, number},
    db::TestDb,
    program::{ended, pgcrawl},
    site::{Recorded, Site, SiteBuilder},
};

fn web(pages: usize) -> SiteBuilder {
    let all: String = (0..pages)
        .map(|n| format!("<a href=/{n}>{n}</a>"))
        .collect();
    (0..pages).fold(Site::builder().page("/", all), |site, n| {
        site.page(&format!("/{n}"), format!("<title>{n}</title>"))
    })
}

/// Runs this many processes from the seeds until nothing is left.
async fn crawl(db: &TestDb, seeds: &[String], processes: usize, flags: &[&str]) {
    let mut arguments = vec!["crawl"];
    arguments.extend(seeds.iter().map(String::as_str));
    arguments.extend(flags);
    let children: Vec<_> = (0..processes)
        .map(|_| pgcrawl(db, &arguments).spawn().unwrap())
        .collect();
    for child in children {
        let (code, said) = ended(&child.wait_with_output().await.unwrap());
        assert_eq!(code, 0, "{said}");
    }
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn three_processes_have_one_rate_together() {
    let sites = [
        web(40).start().await,
        web(40).start().await,
        web(40).start().await,
    ];
    let seeds: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    let db = TestDb::new().await;
    let began = Instant::now();
    // Few in flight, so that none of them takes all the work.
    let flags = ["--delay", "0s", "--rate", "40", "--concurrency", "2"];
    crawl(&db, &seeds, 3, &flags).await;
    let last = sites
        .iter()
        .flat_map(Site::requests)
        .map(|request| request.started)
        .max()
        .unwrap();
    let asked: usize = sites.iter().map(|site| site.requests().len()).sum();
    assert_eq!(asked, 3 * 42);
    let shares = "select count(*) from worker_counts where done > 20";
    assert!(number(&db.pool, shares).await >= 2, "one did all of it");
    // One stretch of a tenth of a second and one burst may come before their time. Each with the rate for itself would take a third.
    let least = Duration::from_secs_f64((asked as f64 - 8.0) / 40.0);
    assert!(last - began >= least, "{:?}", last - began);
}

/// Sorted by time; none begins before the one before it has ended, and the delay after it.
fn assert_apart(mut requests: Vec<Recorded>, delay: Duration) {
    requests.sort_by_key(|request| request.started);
    for pair in requests.windows(2) {
        let gap = pair[1].started - pair[0].ended.unwrap();
        assert!(
            gap >= delay,
            "{gap:?} between {} and {}",
            pair[0].target,
            pair[1].target
        );
    }
}

#[tokio::test]
async fn hosts_of_one_address_are_asked_one_after_another_by_all_processes() {
    let delay = Duration::from_millis(60);
    let sites = [
        web(6).start().await,
        web(6).start().await,
        web(6).start().await,
    ];
    let seeds: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    let db = TestDb::new().await;
    crawl(
        &db,
        &seeds,
        2,
        &["--delay", "0s", "--per-host", "4", "--ip-delay", "60ms"],
    )
    .await;
    let requests: Vec<Recorded> = sites.iter().flat_map(Site::requests).collect();
    assert_eq!(requests.len(), 3 * 8);
    assert_apart(requests, delay);
    let workers = "select count(*) from worker_counts where done > 0";
    assert!(number(&db.pool, workers).await >= 1);
}

#[tokio::test]
async fn a_host_that_answers_slowly_rests_for_as_long_as_it_worked() {
    let slow = Duration::from_millis(250);
    let links = "<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>";
    let site = (1..=3)
        .fold(
            Site::builder().delay("/", slow, links.to_owned()),
            |site, n| site.delay(&format!("/{n}"), slow, String::new()),
        )
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.delay = Duration::from_millis(20);
    setup.crawl(&db, &[site.url("/")]).await;
    let pages: Vec<Recorded> = site
        .requests()
        .into_iter()
        .filter(|request| request.target != "/robots.txt")
        .collect();
    assert_eq!(pages.len(), 4);
    assert_apart(pages, slow);
}

/// H16 of the field cases.
#[tokio::test]
async fn an_answer_that_asks_for_patience_doubles_the_hosts_delay_until_it_answers_well() {
    let links = "<a href=/1>1</a><a href=/2>2</a>";
    let patience: HeaderMap = [(header::RETRY_AFTER, HeaderValue::from_static("1"))]
        .into_iter()
        .collect();
    let html: HeaderMap = [(header::CONTENT_TYPE, HeaderValue::from_static("text/html"))]
        .into_iter()
        .collect();
    let site = Site::builder()
        .page("/1", "")
        .page("/2", "")
        .sequence(
            "/",
            vec![
                (429, patience, String::new()),
                (200, html, links.to_owned()),
            ],
        )
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.delay = Duration::from_millis(100);
    setup.crawl(&db, &[site.url("/")]).await;
    let requests = site.requests();
    let busy = requests
        .iter()
        .position(|request| request.target == "/")
        .unwrap();
    assert_eq!(
        requests
            .iter()
            .filter(|request| request.target == "/")
            .count(),
        2
    );
    let wait = requests[busy + 1].started - requests[busy].ended.unwrap();
    assert!(wait >= Duration::from_secs(1), "{wait:?}");
    assert_apart(requests[busy + 1..].to_vec(), Duration::from_millis(180));
}

/// H16 of the field cases: a host that bears so much and no more.
#[tokio::test]
async fn a_host_that_bears_two_requests_in_a_while_is_asked_more_slowly_until_all_is_had() {
    let links: String = (0..30).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let (window, lately) = (Duration::from_millis(250), Mutex::new(Vec::new()));
    let too_many = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&too_many);
    let site = Site::builder()
        .robots("")
        .otherwise(move |request| {
            let mut lately = lately.lock().unwrap();
            let now = Instant::now();
            lately.retain(|asked| now - *asked < window);
            lately.push(now);
            let answer = match lately.len() {
                0..=2 => {
                    let body = if request.uri().path() == "/" {
                        links.clone()
                    } else {
                        String::new()
                    };
                    ([(header::CONTENT_TYPE, "text/html")], body).into_response()
                }
                _ => {
                    counted.fetch_add(1, Ordering::Relaxed);
                    StatusCode::TOO_MANY_REQUESTS.into_response()
                }
            };
            std::future::ready(answer)
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.delay = Duration::from_millis(40);
    setup.crawl.retry.too_many_wait = Duration::from_millis(300);
    setup.crawl(&db, &[site.url("/")]).await;
    let done = "select count(*) from tasks where status = 'done'";
    assert_eq!(number(&db.pool, done).await, 31);
    let too_many = too_many.load(Ordering::Relaxed);
    // Two or three teach it. At the pace that it began with every third would be too many.
    assert!((1..8).contains(&too_many), "{too_many} answers of 429");
    let pace = "select coalesce(max(pace_ms), 0) from hosts";
    assert!(number(&db.pool, pace).await > 40);
}
