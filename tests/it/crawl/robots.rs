//! robots.txt in a crawl: asked for first, kept for all, never taken for granted.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse as _;
use pgcrawl::crawl::{End, SitemapUse, Stop};
use serde_json::json;

use crate::support::{
    crawl::{Setup, column, number, urls},
    db::TestDb,
    site::Site,
};

/// R03 of the field cases.
#[tokio::test]
async fn robots_that_answers_429_is_asked_again_before_any_page() {
    let mut patience = HeaderMap::new();
    patience.insert("retry-after", HeaderValue::from_static("1"));
    let site = Site::builder()
        .sequence(
            "/robots.txt",
            vec![
                (429, patience.clone(), String::new()),
                (429, patience, String::new()),
                (
                    200,
                    HeaderMap::new(),
                    "User-agent: *\nAllow: /\n".to_owned(),
                ),
            ],
        )
        .page("/", "<a href=/a>a</a>")
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.retry.robots_wait = Duration::from_millis(100);
    let summary = setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!(
        site.targets(),
        ["/robots.txt", "/robots.txt", "/robots.txt", "/", "/a"]
    );
    let requests = site.requests();
    assert!(requests[1].started - requests[0].started >= Duration::from_secs(1));
    assert!(requests[2].started - requests[1].started >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_host_whose_robots_cannot_be_had_is_given_up_and_named() {
    let site = Site::builder()
        .status("/robots.txt", 503)
        .page("/", "")
        .start()
        .await;
    let healthy = Site::builder()
        .page("/", "<title>Healthy</title>")
        .start()
        .await;
    let db = TestDb::new().await;
    let summary = Setup::quick()
        .crawl(&db, &[site.url("/"), site.url("/2"), healthy.url("/")])
        .await;
    assert_eq!(site.targets(), ["/robots.txt"; 4]);
    let ending = summary.ending.unwrap();
    assert_eq!(
        ending.given_up,
        [(site.authority(), "robots.txt answered 503".to_owned())]
    );
    assert_eq!(
        column(&db.pool, "select reason from tasks where status = 'failed'").await,
        ["robots_unreachable"; 2]
    );
    assert_eq!(
        column(&db.pool, "select title from pages where http_status = 200").await,
        ["Healthy"]
    );
}

#[tokio::test]
async fn robots_is_kept_in_its_table_and_not_asked_for_by_a_second_run() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /no\nSitemap: http://map.invalid/s.xml\n")
        .page("/", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.sitemaps.used = SitemapUse::Skip;
    setup.crawl(&db, &[site.url("/")]).await;
    setup.crawl(&db, &[site.url("/no/1")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/"]);
    assert_eq!(
        column(&db.pool, "select detail from tasks where reason = 'robots'").await,
        ["\"disallow: /no\""]
    );
    assert_eq!(
        column(&db.pool, "select sitemaps[1] from robots").await,
        ["http://map.invalid/s.xml"]
    );
}

#[tokio::test]
async fn a_crawl_that_ignores_robots_neither_asks_nor_obeys() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /\n")
        .page("/", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.targets(), ["/"]);
}

#[tokio::test]
async fn links_that_are_known_to_be_forbidden_become_rows_and_no_requests() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /no\n")
        .page(
            "/",
            "<a href=/no/1>1</a><a href=/no/2>2</a><a href=/yes>3</a>",
        )
        .page("/yes", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let summary = Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/", "/yes"]);
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'excluded' and claim_version = 0"
        )
        .await,
        2
    );
    assert_eq!(summary.counts.excluded, 0);
}

/// R01, R05, R06, R07, R11 and R13 of the field cases, as a server sees them.
#[tokio::test]
async fn files_that_other_crawlers_misread_are_obeyed_to_the_letter() {
    let wide: Vec<u8> = "\u{feff}User-agent: *\r\nDisallow: /p/\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let hostile = format!("User-agent: *\nDisallow: /{}*zz\n", "*a".repeat(40));
    let letters = format!("/{}", "a".repeat(60));
    let cases: [(&[u8], &[&str], &[&str]); 7] = [
        (
            b"\xef\xbb\xbfUser-agent: *\nDisallow: /private/\n",
            &["/open"],
            &["/private/a"],
        ),
        (
            b"User-agent: *\nDisallow: /hidden/\nAllow: /pub/\nDisallow:\n",
            &["/pub/x"],
            &["/hidden/x"],
        ),
        (
            "User-agent: *\nDisallow: /t/5%2F6/\nDisallow: /s/%2A/\nDisallow: /caf\u{e9}/\n"
                .as_bytes(),
            &["/t/5/6/p", "/s/any/p"],
            &["/t/5%2f6/p", "/s/*/p", "/caf%C3%A9/p"],
        ),
        (hostile.as_bytes(), &[&letters, "/next"], &[]),
        (&wide, &["/q"], &["/p/a"]),
        (
            b"# caf\xe9\nUser-agent: *\nDisallow: /p/\n",
            &["/q"],
            &["/p/a"],
        ),
        (
            b"User-agent: *\rDisallow: /m/\rAllow: /m/ok\r",
            &["/m/ok"],
            &["/m/a"],
        ),
    ];
    for (file, allowed, forbidden) in cases {
        let all = allowed.iter().chain(forbidden);
        let links: String = all
            .clone()
            .map(|path| format!("<a href='{path}'>x</a>"))
            .collect();
        let bytes = file.to_vec();
        let site = allowed
            .iter()
            .fold(Site::builder().page("/", links), |site, path| {
                site.page(path, "")
            })
            .answer("/robots.txt", move |_| bytes.clone().into_response())
            .start()
            .await;
        let db = TestDb::new().await;
        Setup::quick().crawl(&db, &[site.url("/")]).await;
        let targets = site.targets();
        for path in allowed {
            assert_eq!(site.count(path), 1, "{path} in {targets:?}");
        }
        assert_eq!(targets.len(), 2 + allowed.len(), "{targets:?}");
        assert_eq!(
            column(
                &db.pool,
                "select reason from tasks where status = 'excluded'"
            )
            .await,
            vec!["robots"; forbidden.len()]
        );
    }
}

/// R16: the rules are those of the host that was asked, wherever they lie.
#[tokio::test]
async fn rules_that_lie_elsewhere_are_those_of_the_host_that_was_asked() {
    let elsewhere = Site::builder()
        .page("/their-rules", "User-agent: *\nDisallow: /no/")
        .start()
        .await;
    let mut site = Site::builder().redirect("/robots.txt", 301, "/r1");
    for n in 1..4 {
        site = site.redirect(&format!("/r{n}"), 302, format!("/r{}", n + 1));
    }
    let site = site
        .redirect("/r4", 307, elsewhere.url("/their-rules"))
        .page("/", "<a href=/no/1>1</a><a href=/yes>2</a>")
        .page("/yes", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.fetch.allow_private = true;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(elsewhere.targets(), ["/their-rules"]);
    assert_eq!(site.count("/yes"), 1);
    assert_eq!(site.count("/no/1"), 0);
    assert_eq!(
        column(&db.pool, "select hops || ' ' || final_url from robots").await,
        [format!("\"5 {}\"", elsewhere.url("/their-rules"))]
    );
}

#[tokio::test]
async fn a_redirect_of_robots_takes_a_turn_in_the_rate_and_keeps_the_delay_of_its_address() {
    let elsewhere = Site::builder().page("/rules", "").start().await;
    let site = Site::builder()
        .redirect("/robots.txt", 301, elsewhere.url("/rules"))
        .page("/", "")
        .start()
        .await;
    let times = || {
        let (own, other) = (site.requests(), elsewhere.requests());
        let [.., robots, page] = &own[..] else {
            panic!("{own:?}")
        };
        (robots.clone(), other.last().unwrap().clone(), page.clone())
    };
    let mut rated = Setup::quick();
    rated.crawl.rate = Some(4.0);
    rated.fetch.allow_private = true;
    rated.crawl(&TestDb::new().await, &[site.url("/")]).await;
    let (robots, _, page) = times();
    // Two turns later: the second one is the hop's. Turns of a rate come up to a tenth of a second early.
    assert!(page.started - robots.started >= Duration::from_millis(400));

    let delay = Duration::from_millis(300);
    let mut spaced = Setup::quick();
    spaced.crawl.ip_delay = delay;
    spaced.fetch.allow_private = true;
    spaced.crawl(&TestDb::new().await, &[site.url("/")]).await;
    let (robots, hop, page) = times();
    assert!(hop.started - robots.ended.unwrap() >= delay);
    assert!(page.started - hop.ended.unwrap() >= delay);
}

#[tokio::test]
async fn a_host_that_redirects_lead_to_is_asked_by_one_at_a_time() {
    let elsewhere = Site::builder()
        .page("/rules/1", "")
        .page("/rules/2", "")
        .page("/rules/3", "")
        .start()
        .await;
    let host = |n: u32| {
        Site::builder()
            .redirect("/robots.txt", 301, elsewhere.url(&format!("/rules/{n}")))
            .page("/", "")
            .start()
    };
    let (one, two, three) = tokio::join!(host(1), host(2), host(3));
    let mut setup = Setup::quick();
    setup.frontier.delay = Duration::from_millis(250);
    setup.fetch.allow_private = true;
    let seeds = [one.url("/"), two.url("/"), three.url("/")];
    setup.crawl(&TestDb::new().await, &seeds).await;
    let requests = elsewhere.requests();
    assert_eq!(requests.len(), 3);
    for pair in requests.windows(2) {
        assert!(pair[1].started - pair[0].ended.unwrap() >= Duration::from_millis(240));
    }
}

/// A provider sends the crawlers of all his hosts to one file.
#[tokio::test]
async fn a_file_that_many_hosts_lead_to_is_asked_for_once() {
    let elsewhere = Site::builder()
        .page("/rules", "User-agent: *\nDisallow: /no/")
        .start()
        .await;
    let mut sites = Vec::new();
    for _ in 0..8 {
        let site = Site::builder()
            .redirect("/robots.txt", 301, elsewhere.url("/rules"))
            .page("/", "<a href=/no/1>1</a>");
        sites.push(site.start().await);
    }
    let seeds: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.delay = Duration::from_millis(50);
    setup.fetch.allow_private = true;
    setup.crawl(&db, &seeds).await;
    assert_eq!(elsewhere.targets(), ["/rules"]);
    for site in &sites {
        assert_eq!(site.targets(), ["/robots.txt", "/"]);
    }
    let stored = column(&db.pool, "select hops || ' ' || final_url from robots").await;
    assert_eq!(
        stored,
        vec![format!("\"1 {}\"", elsewhere.url("/rules")); 8]
    );
}

#[tokio::test]
async fn a_redirect_of_robots_goes_on_with_the_next_claim_where_the_delay_is_longer_than_a_fetch() {
    let site = Site::builder()
        .redirect("/robots.txt", 301, "/r1")
        .redirect("/r1", 302, "/r2")
        .page("/r2", "User-agent: *\nDisallow: /no/")
        .page("/", "<a href=/no/1>1</a>")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.delay = Duration::from_millis(1_200);
    setup.crawl.visit_budget = Duration::from_secs(1);
    setup.crawl(&db, &[site.url("/")]).await;
    let requests = site.requests();
    assert_eq!(site.targets(), ["/robots.txt", "/r1", "/r2", "/"]);
    for pair in requests.windows(2) {
        assert!(pair[1].started - pair[0].ended.unwrap() >= setup.frontier.delay);
    }
    assert_eq!(
        column(&db.pool, "select hops || ' ' || http_status from robots").await,
        ["\"2 200\""]
    );
}

/// L07 and L16 of the field cases, and what is stored of them.
#[tokio::test]
async fn what_pages_ask_of_robots_is_obeyed_and_stored() {
    let with = |fields: &'static [(&'static str, &'static str)], html: &'static str| {
        move |_: &axum::extract::Request| {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_static("text/html"));
            for (name, value) in fields {
                headers.append(*name, HeaderValue::from_static(value));
            }
            (headers, html).into_response()
        }
    };
    let site = Site::builder()
        .robots("User-agent: *\nAllow: /\nContent-Usage: train-ai=n\nContent-Usage: /open train-ai=y\n")
        .page(
            "/",
            r#"<a rel="noopener NoFollow" href="/n1">x</a><a rel="nofollowing" href="/y1">x</a><a rel=ugc href="/y2">x</a>
               <a rel=sponsored href=/a>x</a><a href=/c>x</a><a href=/open>x</a><a href=/file>x</a>"#,
        )
        .answer("/a", with(&[("x-robots-tag", "nofollow"), ("x-robots-tag", "otherbot: noindex")], "<a href=/b>x</a><a href=/b2>x</a>"))
        .answer("/c", with(&[("x-robots-tag", "otherbot: nofollow")], "<a href=/d>x</a>"))
        .answer("/open", with(&[("content-usage", "train-ai=n, search=y"), ("tdm-reservation", "1"), ("tdm-policy", "https://h/p.json")],
                "<meta name=robots content='noai, noimageai, noindex, noarchive'>"))
        .answer("/file", |_| ([("content-type", "image/png"), ("x-robots-tag", "noindex")], "png").into_response())
        .page("/y1", "")
        .page("/y2", "")
        .page("/d", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    let mut targets = site.targets();
    targets.sort();
    assert_eq!(
        targets,
        [
            "/",
            "/a",
            "/c",
            "/d",
            "/file",
            "/open",
            "/robots.txt",
            "/y1",
            "/y2"
        ]
    );
    let signals = async |path: &str| -> serde_json::Value {
        let found = column(
            &db.pool,
            &format!("select p.signals::text from pages p join tasks t on t.id = p.task_id where t.url = '{}'", site.url(path)),
        )
        .await;
        serde_json::from_str(&found[0].trim_matches('"').replace("\"\"", "\"")).unwrap()
    };
    assert_eq!(
        signals("/").await,
        json!({ "robots_content_usage": "train-ai=n", "withheld": 1, "ugc": 1, "sponsored": 1 })
    );
    assert_eq!(
        signals("/a").await,
        json!({ "robots_content_usage": "train-ai=n", "nofollow": true, "withheld": 2 })
    );
    assert_eq!(
        signals("/c").await,
        json!({ "robots_content_usage": "train-ai=n" })
    );
    assert_eq!(
        signals("/open").await,
        json!({ "robots_content_usage": "train-ai=y", "content_usage": "train-ai=n, search=y", "tdm_reservation": "1",
                "tdm_policy": "https://h/p.json", "noai": true, "noimageai": true, "noindex": true, "noarchive": true })
    );
    assert_eq!(
        signals("/file").await,
        json!({ "robots_content_usage": "train-ai=n", "noindex": true }),
        "the header of what is not read counts, too"
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from page_signals where noindex and links_withheld = 0"
        )
        .await,
        2
    );
}

/// A file and a page that were made to take long together: what is not judged early is judged when it is claimed.
#[tokio::test]
async fn links_are_judged_early_only_as_far_as_that_costs_little() {
    let rules: String = (10_000..30_000)
        .map(|n| format!("Disallow:/x/{n}*a\n"))
        .collect();
    let long = "a".repeat(1_900);
    let links: String = (0..4)
        .map(|n| format!("<a href=/no/{long}{n}>x</a>"))
        .collect();
    let site = Site::builder()
        .robots(format!("User-agent: *\nDisallow: /no\n{rules}"))
        .page("/", links)
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/"]);
    assert_eq!(
        column(
            &db.pool,
            "select least(claim_version, 1) || ' ' || count(*) from tasks where reason = 'robots' group by least(claim_version, 1) order by 1"
        )
        .await,
        ["\"0 2\"", "\"1 2\""]
    );
}

#[tokio::test]
async fn a_seed_that_another_process_has_added_is_asked_at_its_private_address_at_once() {
    let site = Site::builder().page("/", "").start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    // A host that is refused would rest for longer than this test.
    setup.crawl.retry.robots_wait = Duration::from_secs(3_600);
    let (adds, crawls) = (setup.join(&db).await, setup.join(&db).await);
    adds.add_seeds(&urls(&[site.url("/")])).await.unwrap();
    let run = tokio::time::timeout(Duration::from_secs(60), crawls.run(Stop::default()));
    let summary = run.await.expect("nothing is refused").unwrap();
    assert_eq!(summary.end, End::Finished);
    assert_eq!(site.count("/"), 1);
    adds.leave().await;
    crawls.leave().await;
}
