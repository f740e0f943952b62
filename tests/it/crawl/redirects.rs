//! Redirects are results; their targets are tasks.

use std::time::Duration;

use axum::{http::header, response::IntoResponse as _};
use pgcrawl::{crawl::Stop, scope::ScopeKind};

use crate::support::{
    crawl::{Setup, broken_invariants, column, number, urls},
    db::TestDb,
    site::{Site, SiteBuilder},
};

/// H02 of the field cases: robots.txt of the same host, robots.txt of another, another host altogether.
#[tokio::test]
async fn a_redirect_into_a_forbidden_place_is_recorded_and_not_followed() {
    let other = Site::builder()
        .robots("User-agent: *\nDisallow: /\n")
        .page("/y", "")
        .start()
        .await;
    let stranger = Site::builder().page("/z", "").start().await;
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /private/\n")
        .page("/", "<a href=/go>1</a><a href=/go2>2</a><a href=/go3>3</a>")
        .redirect("/go", 302, "/private/x")
        .redirect("/go2", 302, other.url("/y"))
        .redirect("/go3", 302, stranger.url("/z"))
        .page("/private/x", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick()
        .crawl(&db, &[site.url("/"), other.url("/")])
        .await;
    assert_eq!(site.count("/private/x"), 0);
    assert_eq!(other.targets(), ["/robots.txt"]);
    assert_eq!(stranger.targets(), Vec::<String>::new());
    for (path, reason) in [
        ("/go", "redirect_robots"),
        ("/go3", "redirect_out_of_scope"),
    ] {
        let sql = format!("select reason from tasks where url = '{}'", site.url(path));
        assert_eq!(column(&db.pool, &sql).await, [reason]);
    }
    // Of the third, robots.txt may not have been known yet; then its target was judged when it was claimed.
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status = 'excluded' and reason = 'robots'"
        )
        .await,
        3
    );
}

/// T08: the count of hops travels with the task.
#[tokio::test]
async fn a_chain_of_redirects_that_never_repeats_ends_at_the_limit() {
    let site = Site::builder()
        .route("/r", |request| async move {
            let n: u32 = request
                .uri()
                .query()
                .and_then(|q| q.strip_prefix("n="))
                .and_then(|n| n.parse().ok())
                .unwrap_or(0);
            (
                axum::http::StatusCode::FOUND,
                [(header::LOCATION, format!("/r?n={}", n + 1))],
            )
                .into_response()
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.max_hops = 5;
    setup.crawl(&db, &[site.url("/r?n=0")]).await;
    assert_eq!(site.targets().len(), 1 + 6, "{:?}", site.targets());
    assert_eq!(
        column(
            &db.pool,
            "select reason from tasks where reason is not null"
        )
        .await,
        ["redirect_too_many_hops"]
    );
    assert_eq!(number(&db.pool, "select max(depth) from tasks").await, 0);
}

#[tokio::test]
async fn fifty_links_that_redirect_to_one_page_fetch_it_once() {
    let links: String = (0..50).map(|n| format!("<a href=/go/{n}>x</a>")).collect();
    let site = (0..50)
        .fold(
            Site::builder()
                .page("/", links)
                .page("/one", "<title>One</title>"),
            |site, n| site.redirect(&format!("/go/{n}"), 301, "/one"),
        )
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.count("/one"), 1);
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where redirect_to is not null"
        )
        .await,
        50
    );
}

#[tokio::test]
async fn a_redirect_to_its_own_key_is_followed_inside_the_visit() {
    let site = Site::builder()
        .answer("/", |request| {
            let asked_again = request
                .headers()
                .get(header::COOKIE)
                .is_some_and(|cookie| cookie == "seen=1");
            if asked_again {
                return axum::response::Html("<title>In</title><a href=/a>a</a>").into_response();
            }
            let headers = [(header::LOCATION, "/"), (header::SET_COOKIE, "seen=1")];
            (axum::http::StatusCode::FOUND, headers).into_response()
        })
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        column(&db.pool, "select title from pages where title is not null").await,
        ["In"]
    );
    assert_eq!(number(&db.pool, "select max(hops) from pages").await, 1);
    assert_eq!(site.count("/a"), 1);
}

/// A redirect of a seed to its www twin widens the scope to that; one of a page that was linked does not.
#[tokio::test]
async fn a_seed_that_redirects_to_its_www_twin_takes_it_into_scope() {
    // The twin has another host name but the same server; both names are this machine's.
    let site = Site::builder()
        .answer("/", |request| {
            let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
            if let Some(port) = host.strip_prefix("localhost:") {
                let twin = format!("http://www.localhost:{port}/");
                return (
                    axum::http::StatusCode::MOVED_PERMANENTLY,
                    [(header::LOCATION, twin)],
                )
                    .into_response();
            }
            axum::response::Html("<title>Twin</title><a href=/a>a</a>").into_response()
        })
        .page("/a", "<title>A</title>")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.scope = ScopeKind::Host;
    setup.crawl(&db, &[site.url_at("localhost", "/")]).await;
    assert_eq!(
        column(
            &db.pool,
            "select title from pages where title is not null order by title"
        )
        .await,
        ["A", "Twin"]
    );
    assert_eq!(
        column(&db.pool, "select source from scope_rules order by id").await,
        ["seed", "redirect"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// What a `Location` of these bytes comes to: the request that follows, or the reason why none does.
#[derive(Clone, Copy)]
enum Leads {
    To(&'static str),
    Nowhere(&'static str),
}

#[tokio::test]
async fn a_location_is_read_as_browsers_read_it_and_what_leads_nowhere_says_why() {
    use Leads::{Nowhere, To};
    let long = format!("/{}", "x".repeat(3_000)).into_bytes();
    let cases: Vec<(Vec<&[u8]>, Leads)> = vec![
        (
            vec!["/caf\u{e9} au lait".as_bytes()],
            To("/caf%C3%A9%20au%20lait"),
        ),
        (vec![b"/latin\xE9?q=\xE9"], To("/latin%E9?q=%E9")),
        (vec![b"\\back\\slash"], To("/back/slash")),
        (vec![b"/t\tab"], To("/tab")),
        (vec![b"relative?x=1"], To("/from/relative?x=1")),
        (vec![b"?only=query"], To("/from/5?only=query")),
        (vec![b"/fragment#part"], To("/fragment")),
        (vec![b"/lone%percent%zz"], To("/lone%percent%zz")),
        (vec![b"/twice", b"/twice"], To("/twice")),
        (vec![b"/one", b"/other"], Nowhere("redirect_malformed")),
        (vec![b"http://[bad/"], Nowhere("redirect_malformed")),
        (vec![b"mailto:a@b.example"], Nowhere("redirect_scheme")),
        (vec![b"javascript:void(0)"], Nowhere("redirect_scheme")),
        (vec![b""], Nowhere("redirect_without_target")),
        (vec![], Nowhere("redirect_without_target")),
        (vec![&long], Nowhere("redirect_url_length")),
    ];
    let links: String = (0..cases.len())
        .map(|n| format!("<a href=/from/{n}>{n}</a>"))
        .collect();
    let mut builder = Site::builder().page("/", links);
    for (n, (values, _)) in cases.iter().enumerate() {
        let values: Vec<Vec<u8>> = values.iter().map(|value| value.to_vec()).collect();
        builder = builder.answer(&format!("/from/{n}"), move |request| {
            if request.uri().query().is_some() {
                return "".into_response();
            }
            let mut answer = axum::response::Html("<a href=/in-the-body>x</a>").into_response();
            *answer.status_mut() = axum::http::StatusCode::FOUND;
            for value in &values {
                let value = axum::http::HeaderValue::from_bytes(value).unwrap();
                answer.headers_mut().append(header::LOCATION, value);
            }
            answer
        });
    }
    let site = builder.start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    for (n, (values, leads)) in cases.iter().enumerate() {
        let url = site.url(&format!("/from/{n}"));
        let sql = format!(
            "select t.reason, p.redirect_to from tasks t join pages p on p.task_id = t.id where t.url = '{url}'"
        );
        let row: (Option<String>, Option<String>) = sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .fetch_one(&db.pool)
            .await
            .unwrap();
        let shown: Vec<_> = values
            .iter()
            .map(|value| String::from_utf8_lossy(value))
            .collect();
        match leads {
            To(target) => {
                assert_eq!(row, (None, Some(site.url(target))), "{shown:?}");
                assert_eq!(site.count(target), 1, "{shown:?} in {:?}", site.targets());
            }
            Nowhere(why) => assert_eq!(row.0.as_deref(), Some(*why), "{shown:.40?}"),
        }
    }
    assert_eq!(
        site.count("/in-the-body"),
        0,
        "a redirect's body has no links"
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn other_headers_and_statuses_that_name_a_url_are_no_redirects() {
    let with = |status: u16, name: &'static str, value: &'static str| {
        move |_: &axum::extract::Request| {
            let mut answer = axum::response::Html("<title>Page</title>").into_response();
            *answer.status_mut() = axum::http::StatusCode::from_u16(status).unwrap();
            answer.headers_mut().insert(name, value.parse().unwrap());
            answer
        }
    };
    let site = Site::builder()
        .page("/", "<a href=/300>1</a><a href=/304>2</a><a href=/content>3</a><a href=/refresh>4</a><a href=/meta>5</a>")
        .answer("/300", with(300, "location", "/from-300"))
        .answer("/304", with(304, "location", "/from-304"))
        .answer("/content", with(200, "content-location", "/from-content"))
        .answer("/refresh", with(200, "refresh", "0; url=/from-refresh"))
        .page("/meta", "<meta http-equiv=refresh content='0; url=/from-meta'>")
        .page("/from-refresh", "")
        .page("/from-meta", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    let mut led: Vec<String> = site.targets();
    led.retain(|target| target.starts_with("/from"));
    led.sort_unstable();
    assert_eq!(led, ["/from-meta", "/from-refresh"]);
    // Those two are links; the others are pages like any other.
    let sql = "select count(*) from pages where redirect_to is not null";
    assert_eq!(number(&db.pool, sql).await, 0);
    assert_eq!(number(&db.pool, "select max(depth) from tasks").await, 2);
    assert_eq!(number(&db.pool, "select max(hops) from tasks").await, 0);
}

#[tokio::test]
async fn two_pages_that_redirect_to_each_other_are_each_asked_once() {
    let site = Site::builder()
        .redirect("/a", 302, "/b")
        .redirect("/b", 302, "/a")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/a")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/a", "/b"]);
    // The way is in the rows.
    let sql = "select string_agg(t.hops || ' ' || p.http_status || ' ' || p.redirect_to, ', ' order by t.hops) \
               from tasks t join pages p on p.task_id = t.id left join tasks v on v.id = t.via \
               where t.hops = 0 or v.hops = t.hops - 1";
    let way = format!("0 302 {}, 1 302 {}", site.url("/b"), site.url("/a"));
    assert_eq!(column(&db.pool, sql).await[0].trim_matches('"'), way);
}

#[tokio::test]
async fn a_page_that_redirects_to_itself_for_ever_fails_with_its_last_status() {
    let site = Site::builder().redirect("/", 307, "/").start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    let sql = "select t.status || ' ' || t.reason || ' ' || p.http_status || ' ' || p.error from tasks t join pages p on p.task_id = t.id";
    assert_eq!(
        column(&db.pool, sql).await,
        ["\"failed redirect_loop 307 redirect_loop\""]
    );
    assert_eq!(site.count("/"), 1);
}

/// Only a seed says what its operator wants: a page that was found may lead anywhere.
#[tokio::test]
async fn the_twin_of_a_seed_is_taken_from_www_as_well_and_that_of_a_link_is_not() {
    let site = Site::builder()
        .answer("/", |request| {
            let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
            match host.strip_prefix("www.") {
                Some(bare) => (
                    axum::http::StatusCode::FOUND,
                    [(header::LOCATION, format!("http://{bare}/"))],
                )
                    .into_response(),
                None => {
                    axum::response::Html("<a href=http://sub.localhost/>x</a><a href=/linked>x</a>")
                        .into_response()
                }
            }
        })
        .answer("/linked", |request| {
            let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
            let twin = host.replace("localhost", "sub.localhost");
            let headers = [(header::LOCATION, format!("http://{twin}/linked"))];
            (axum::http::StatusCode::FOUND, headers).into_response()
        })
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick()
        .crawl(&db, &[site.url_at("www.localhost", "/")])
        .await;
    assert_eq!(
        column(&db.pool, "select source from scope_rules order by id").await,
        ["seed", "redirect"]
    );
    let sql = format!(
        "select reason from tasks where url = '{}'",
        site.url_at("localhost", "/linked")
    );
    assert_eq!(column(&db.pool, &sql).await, ["redirect_out_of_scope"]);
    assert_eq!(site.count("/linked"), 1);
}

/// The twin is as wide as the seed was wanted, wherever the seed was put.
#[tokio::test]
async fn the_www_twin_of_a_seed_with_a_scope_and_a_depth_of_its_own_is_no_wider() {
    let site = Site::builder()
        .answer("/docs/", |request| {
            let host = request.headers()[header::HOST].to_str().unwrap();
            if host.starts_with("www.") {
                let links = "<a href=/docs/a>x</a><a href=/elsewhere>x</a>";
                return axum::response::Html(links).into_response();
            }
            let headers = [(header::LOCATION, format!("http://www.{host}/docs/"))];
            (axum::http::StatusCode::FOUND, headers).into_response()
        })
        .page("/docs/a", "")
        .page("/elsewhere", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let crawl = Setup::quick().join(&db).await;
    let mut seeds = urls(&[site.url_at("localhost", "/docs/")]);
    seeds[0].depth = 3;
    seeds[0].scope = Some(ScopeKind::Prefix);
    crawl.add_seeds(&seeds).await.unwrap();
    crawl.run(Stop::default()).await.unwrap();
    crawl.leave().await;
    assert_eq!(
        column(&db.pool, "select rule from scope_rules order by id").await,
        [
            format!("\"prefix {}\"", site.url_at("localhost", "/docs/")),
            format!("\"prefix {}\"", site.url_at("www.localhost", "/docs/")),
        ]
    );
    assert_eq!((site.count("/docs/a"), site.count("/elsewhere")), (1, 0));
}

/// The same redirect widens the scope where a seed makes it, and does not where a page does that was linked.
#[tokio::test]
async fn the_www_twin_of_a_page_that_was_linked_is_another_host() {
    let twin = |request: &axum::extract::Request| {
        let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
        if host.starts_with("www.") {
            return "".into_response();
        }
        let headers = [(header::LOCATION, format!("http://www.{host}/linked"))];
        (axum::http::StatusCode::FOUND, headers).into_response()
    };
    let site = Site::builder()
        .page("/", "<a href=/linked>x</a>")
        .answer("/linked", twin)
        .start()
        .await;
    for (seed, asked) in [("/", 1), ("/linked", 2)] {
        let db = TestDb::new().await;
        let before = site.count("/linked");
        Setup::quick()
            .crawl(&db, &[site.url_at("localhost", seed)])
            .await;
        assert_eq!(site.count("/linked") - before, asked, "seed {seed}");
    }
}

#[tokio::test]
async fn a_redirect_to_a_private_address_that_no_seed_names_is_refused() {
    let site = Site::builder()
        .answer("/", |request| {
            let host = request.headers()[header::HOST].to_str().unwrap();
            let inner = host.replace("127.0.0.1", "127.0.0.2");
            let headers = [(header::LOCATION, format!("http://{inner}/secret"))];
            (axum::http::StatusCode::FOUND, headers).into_response()
        })
        .page("/secret", "")
        .bind("0.0.0.0:0")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.scope = ScopeKind::Any;
    setup
        .crawl(&db, &[site.url("/").replace("0.0.0.0", "127.0.0.1")])
        .await;
    assert_eq!(site.targets(), ["/robots.txt", "/"]);
    let sql = "select t.status || ' ' || r.error from tasks t join robots r using (host_id) where t.hops = 1";
    assert_eq!(column(&db.pool, sql).await, ["\"failed private_address\""]);
}

/// The entry's secrets go to its host, the redirect's target sees none of them.
#[tokio::test]
async fn a_login_stays_with_its_host_when_a_page_redirects_elsewhere() {
    use pgcrawl::fetch::{HostRules, HostSettings, KeepCookies, Login};
    let other = Site::builder().page("/y", "").start().await;
    let target = other.url("/y");
    let site = Site::builder()
        .answer("/", move |_| {
            let headers = [
                (header::LOCATION, target.clone()),
                (header::SET_COOKIE, "id=1; Path=/".to_owned()),
            ];
            (axum::http::StatusCode::FOUND, headers).into_response()
        })
        .start()
        .await;
    let mut entry = HostSettings {
        hosts: vec![site.url("").parse().unwrap()],
        login: Some(Login::Bearer("sesame".into())),
        cookies: Some(KeepCookies::Host),
        ..HostSettings::default()
    };
    entry.headers.insert("x-api-key", "sesame".parse().unwrap());
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.fetch.hosts = HostRules::new(vec![entry]);
    setup.scope = ScopeKind::Any;
    // Its host is named, since it is private; its page is found by the redirect.
    setup
        .crawl(&db, &[site.url("/"), other.url("/named")])
        .await;
    for request in site.requests() {
        assert_eq!(
            request.header("authorization"),
            "Bearer sesame",
            "{}",
            request.target
        );
    }
    assert_eq!(other.count("/y"), 1);
    for request in other.requests() {
        for name in ["authorization", "x-api-key", "cookie"] {
            assert_eq!(request.header(name), "", "{} of {}", name, request.target);
        }
    }
    // And nothing of it is in the database.
    for table in ["tasks", "pages", "hosts", "robots", "settings"] {
        let sql = format!(
            "select count(*) from {table} t where t::text like '%sesame%' or t::text like '%id=1%'"
        );
        assert_eq!(number(&db.pool, &sql).await, 0, "{table}");
    }
}

/// A page that redirects to itself this often, with a new cookie each time, and then links to `/after`.
fn hopping(hops: u32) -> SiteBuilder {
    let counted = std::sync::atomic::AtomicU32::new(0);
    Site::builder()
        .answer("/", move |_| {
            let n = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if n == hops {
                return axum::response::Html("<a href=/after>x</a>").into_response();
            }
            let headers = [
                (header::LOCATION, "/".to_owned()),
                (header::SET_COOKIE, format!("n={n}")),
            ];
            (axum::http::StatusCode::FOUND, headers).into_response()
        })
        .page("/after", "")
}

#[tokio::test]
async fn hops_inside_a_visit_take_their_turns_in_the_crawl_s_rate_afterwards() {
    let site = hopping(4).start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.rate = Some(5.0);
    setup.crawl(&db, &[site.url("/")]).await;
    let of = |target| {
        let mut all = site.requests();
        all.retain(|request| request.target == target);
        all
    };
    let (pages, after) = (of("/"), of("/after"));
    assert_eq!((pages.len(), after.len()), (5, 1));
    // From the first to the sixth request are five gaps of 200 ms; one may come early.
    let took = after[0].started - pages[0].started;
    assert!(took >= Duration::from_millis(800), "{took:?}");
}

#[tokio::test]
async fn a_low_rate_of_the_crawl_costs_no_visit_its_hops() {
    let site = hopping(2).start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.crawl.rate = Some(1.0);
    setup.crawl.visit_budget = Duration::from_millis(800);
    setup.crawl.max_pages = Some(1);
    setup.crawl(&db, &[site.url("/")]).await;
    let sql = "select t.status, t.attempts, p.hops from tasks t join pages p on p.task_id = t.id";
    assert_eq!(column(&db.pool, sql).await, ["done,1,2"]);
}

/// U14, U17 and U18 of the field cases, as far as the request line.
#[tokio::test]
async fn what_a_page_links_to_stands_on_the_request_line_as_browsers_write_it() {
    // The same two characters of GBK in path and query.
    let page = b"<a href='/\xba\xfe?k=\xba\xfe'>1</a><a href='/100%'>2</a><a href='/a%zz?b=%'>3</a><a href='/caf%E9'>4</a><a href=/after>5</a>";
    let targets = [
        "/%E6%B9%96?k=%BA%FE",
        "/100%",
        "/a%zz?b=%",
        "/caf%E9",
        "/after",
    ];
    let site = Site::builder()
        .typed("/", "text/html; charset=gbk", &page[..])
        .otherwise(|_| async { "".into_response() })
        .robots("")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    for target in targets {
        assert_eq!(site.count(target), 1, "{target} in {:?}", site.targets());
    }
    assert_eq!(site.requests().len(), 2 + targets.len());

    let names =
        crate::support::names::Nameserver::start(&[("my_host.site.test", "127.0.0.1")]).await;
    let mut setup = Setup::quick();
    setup.fetch.resolver = pgcrawl::fetch::Resolver::At(names.address());
    let db = TestDb::new().await;
    setup
        .crawl(&db, &[site.url_at("my_host.site.test", "/after")])
        .await;
    let log = site.requests();
    let last = log.last().unwrap();
    assert_eq!(last.target, "/after");
    assert!(last.header("host").starts_with("my_host.site.test:"));
}

#[tokio::test]
async fn a_page_s_redirect_to_itself_in_a_forbidden_spelling_is_not_followed() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /p?a=\n")
        .answer("/p", |request| match request.uri().query() {
            Some("b=1&a=2") => (
                axum::http::StatusCode::FOUND,
                [(header::LOCATION, "/p?a=2&b=1")],
            )
                .into_response(),
            _ => "forbidden".into_response(),
        })
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/p?b=1&a=2")]).await;
    assert_eq!(
        column(&db.pool, "select status, reason from tasks").await,
        ["done,redirect_robots"]
    );
    assert_eq!(site.targets(), ["/robots.txt", "/p?b=1&a=2"]);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}
