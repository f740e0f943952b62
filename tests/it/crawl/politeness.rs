//! Gaps between fetches of a host, end to start, as the site sees them.

use std::time::Duration;

use crate::support::{
    crawl::{Setup, broken_invariants, number},
    db::TestDb,
    site::{Recorded, Site},
};

/// The gaps between requests, from the end of each to the start of the next, in the order they came.
fn gaps(requests: &[Recorded]) -> Vec<Duration> {
    requests
        .windows(2)
        .map(|pair| {
            pair[1]
                .started
                .saturating_duration_since(pair[0].ended.unwrap())
        })
        .collect()
}

fn six_pages() -> crate::support::site::SiteBuilder {
    let all: String = (0..5).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    (0..5).fold(Site::builder().page("/", all.clone()), |site, n| {
        site.page(&format!("/{n}"), all.clone())
    })
}

#[tokio::test]
async fn a_host_rests_for_its_delay_between_all_fetches_robots_included() {
    let site = six_pages().start().await;
    let db = TestDb::new().await;
    let delay = Duration::from_millis(120);
    let mut setup = Setup::quick();
    setup.frontier.delay = delay;
    setup.frontier.hold = Duration::from_millis(300);
    setup.crawl(&db, &[site.url("/")]).await;
    let requests = site.requests();
    assert_eq!(requests.len(), 7, "{:?}", site.targets());
    assert!(
        gaps(&requests).iter().all(|gap| *gap >= delay),
        "{:?}",
        gaps(&requests)
    );
}

#[tokio::test]
async fn two_processes_keep_one_delay_together() {
    let site = six_pages().start().await;
    let db = TestDb::new().await;
    let delay = Duration::from_millis(120);
    let mut setup = Setup::quick();
    setup.frontier.delay = delay;
    setup.frontier.hold = Duration::from_millis(120);
    let seeds = [site.url("/")];
    tokio::join!(setup.crawl(&db, &seeds), setup.crawl(&db, &seeds));
    let requests = site.requests();
    assert_eq!(requests.len(), 7, "{:?}", site.targets());
    assert!(
        gaps(&requests).iter().all(|gap| *gap >= delay),
        "{:?}",
        gaps(&requests)
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_crawl_delay_counts_from_the_first_page_on_even_where_the_crawl_has_none() {
    let site = six_pages()
        .robots("User-agent: *\nCrawl-delay: 0.15\nDisallow: /4\n")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    let requests = site.requests();
    assert_eq!(requests.len(), 6, "{:?}", site.targets());
    let delay = Duration::from_millis(150);
    assert!(
        gaps(&requests).iter().all(|gap| *gap >= delay),
        "{:?}",
        gaps(&requests)
    );
    assert_eq!(
        number(&db.pool, "select crawl_delay_ms from hosts").await,
        150
    );
}

#[tokio::test]
async fn a_host_without_a_delay_is_asked_side_by_side_up_to_its_ceiling() {
    let all: String = (0..24).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    let site = (0..24)
        .fold(Site::builder().page("/", all), |site, n| {
            site.delay(&format!("/{n}"), Duration::from_millis(60), "")
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.per_host = 4;
    setup.crawl(&db, &[site.url("/")]).await;
    let requests = site.requests();
    let most = requests
        .iter()
        .map(|one| {
            let open = |other: &&Recorded| {
                other.started <= one.started && other.ended.unwrap() > one.started
            };
            requests.iter().filter(open).count()
        })
        .max()
        .unwrap();
    assert_eq!(most, 4);
}

#[tokio::test]
async fn a_disallowed_task_costs_no_delay() {
    // The seeds are tasks before robots.txt is known: each of them is judged when it is claimed.
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /no\n")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    // Had each of them its rest, this would take minutes.
    setup.frontier.delay = Duration::from_secs(2);
    setup.frontier.hold = Duration::from_secs(60);
    let seeds: Vec<String> = (0..30).map(|n| site.url(&format!("/no/{n}"))).collect();
    let summary = setup.crawl(&db, &seeds).await;
    assert_eq!(summary.counts.excluded, 30);
    assert_eq!(site.targets(), ["/robots.txt"]);
}
