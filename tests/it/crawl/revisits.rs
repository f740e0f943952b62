//! Pages that are visited again: "send it only if it has changed".

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use pgcrawl::fetch::{CookieFile, HostRules, HostSettings, KeepCookies, Login};
use pgcrawl::scope::ScopeKind;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number, urls},
    db::TestDb,
    site::{Site, SiteBuilder},
};

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// Pages with validators, and how often they were confirmed.
#[derive(Clone, Default)]
struct Confirmed(Arc<AtomicUsize>);

impl Confirmed {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// An answer that is 304 where the request knows this entity-tag, or, without one, the date.
    fn page(&self, request: &axum::extract::Request, etag: Option<&str>, html: &str) -> Response {
        let said = |name: &str| {
            let value = request.headers().get(name);
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        let known = match etag {
            Some(etag) => said("if-none-match").as_deref() == Some(etag),
            None => said("if-modified-since").as_deref() == Some(DATE),
        };
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "text/html; charset=utf-8".parse().unwrap());
        headers.insert("last-modified", DATE.parse().unwrap());
        if let Some(etag) = etag {
            headers.insert("etag", etag.parse().unwrap());
        }
        if known {
            self.0.fetch_add(1, Ordering::SeqCst);
            headers.insert("content-type", "application/x-nonsense".parse().unwrap());
            headers.insert("x-visit", "again".parse().unwrap());
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        headers.insert("x-visit", "first".parse().unwrap());
        (headers, html.to_owned()).into_response()
    }
}

/// A site of one page with this entity-tag, and what the page links to.
fn site(confirmed: &Confirmed, etag: Option<&'static str>) -> SiteBuilder {
    let confirmed = confirmed.clone();
    Site::builder()
        .answer("/", move |request| {
            confirmed.page(request, etag, "<title>Old</title><a href=/a>a</a>")
        })
        .page("/a", "<title>A</title>")
}

/// Visits all that was visited once more.
async fn again(setup: &Setup, db: &TestDb) {
    let crawl = setup.join(db).await;
    crawl.refresh().await.unwrap();
    crawl.run(Default::default()).await.unwrap();
    crawl.leave().await;
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

fn keeping_bodies() -> Setup {
    let mut setup = Setup::quick();
    setup.crawl.keep_bodies = true;
    setup
}

const ROOT: &str = "from pages p join tasks t on t.id = p.task_id where t.url like '%/'";

#[tokio::test]
async fn a_304_keeps_the_page_and_its_body_and_moves_its_times() {
    let confirmed = Confirmed::default();
    let site = site(&confirmed, Some("W/\"v 1\"")).start().await;
    let db = TestDb::new().await;
    let setup = keeping_bodies();
    setup.crawl(&db, &[site.url("/")]).await;
    let first = &site.wait_for_request("/").await;
    assert_eq!(
        (
            first.header("if-none-match"),
            first.header("if-modified-since")
        ),
        ("", "")
    );
    let kept = format!(
        "select http_status, title, charset, charset_from, encode(digest, 'hex'), body_bytes, wire_bytes, links, content_type, etag, last_modified, (select convert_from(body, 'UTF8') from bodies b where b.task_id = p.task_id and b.claim_version = t.claim_version) as body {ROOT}"
    );
    let before = column(&db.pool, &kept).await;
    let had = column(&db.pool, &format!("select fetched_at {ROOT}")).await;

    for visit in 2..=3 {
        again(&setup, &db).await;
        assert_eq!(confirmed.count(), visit - 1);
        assert_eq!(column(&db.pool, &kept).await, before);
        assert_eq!(
            column(&db.pool, &format!("select body_at {ROOT}")).await,
            had
        );
        let newer =
            format!("select count(*) {ROOT} and fetched_at > body_at and t.status = 'done'");
        assert_eq!(number(&db.pool, &newer).await, 1);
        let headers = format!("select headers->>'x-visit', headers->>'content-type' {ROOT}");
        assert_eq!(
            column(&db.pool, &headers).await,
            ["again,\"text/html; charset=utf-8\""]
        );
    }
    let asked = site.requests();
    let last = asked.iter().rfind(|request| request.target == "/").unwrap();
    assert_eq!(
        (
            last.header("if-none-match"),
            last.header("if-modified-since")
        ),
        ("W/\"v 1\"", DATE)
    );
    assert_eq!((site.count("/"), site.count("/a")), (3, 3));
}

#[tokio::test]
async fn a_date_alone_is_enough_to_ask_with() {
    let confirmed = Confirmed::default();
    let site = site(&confirmed, None).start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    again(&Setup::quick(), &db).await;
    assert_eq!(confirmed.count(), 1);
}

#[tokio::test]
async fn a_page_that_changed_is_read_anew_and_its_new_links_are_followed() {
    let changed = Arc::new(AtomicBool::new(false));
    let (confirmed, now) = (Confirmed::default(), Arc::clone(&changed));
    let counted = confirmed.clone();
    let site = Site::builder()
        .answer("/", move |request| match now.load(Ordering::SeqCst) {
            false => counted.page(request, Some("\"1\""), "<title>Old</title>"),
            true => counted.page(request, Some("\"2\""), "<title>New</title><a href=/n>n</a>"),
        })
        .page("/n", "<title>N</title>")
        .start()
        .await;
    let db = TestDb::new().await;
    let setup = keeping_bodies();
    setup.crawl(&db, &[site.url("/")]).await;
    again(&setup, &db).await;
    assert_eq!(confirmed.count(), 1);
    changed.store(true, Ordering::SeqCst);
    again(&setup, &db).await;
    assert_eq!((confirmed.count(), site.count("/n")), (1, 1));
    let row = format!("select title, etag, body_at is null {ROOT}");
    assert_eq!(column(&db.pool, &row).await, ["New,\"\"\"2\"\"\",t"]);
}

#[tokio::test]
async fn a_304_that_names_other_validators_moves_the_date_and_leaves_the_entity_tag() {
    // Apache compresses "1" as "1-gzip", and confirms it as "1".
    let site = Site::builder()
        .answer("/", |request| {
            let known = request.headers().get("if-none-match");
            match known.map(|value| value.to_str().unwrap()) {
                Some("\"1-gzip\"") => (
                    StatusCode::NOT_MODIFIED,
                    [
                        ("etag", "\"1\""),
                        ("last-modified", "Mon, 07 Nov 1994 08:49:37 GMT"),
                    ],
                )
                    .into_response(),
                _ => (
                    [("etag", "\"1-gzip\""), ("content-type", "text/html")],
                    "page",
                )
                    .into_response(),
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    again(&Setup::quick(), &db).await;
    again(&Setup::quick(), &db).await;
    let row = format!("select etag, last_modified, headers->>'etag', body_at is null {ROOT}");
    assert_eq!(
        column(&db.pool, &row).await,
        ["\"\"\"1-gzip\"\"\",\"Mon, 07 Nov 1994 08:49:37 GMT\",\"\"\"1-gzip\"\"\",f".to_owned()]
    );
}

#[tokio::test]
async fn nothing_is_asked_conditionally_that_would_not_be_read_the_same_or_is_not_whole() {
    let confirmed = Confirmed::default();
    let site = site(&confirmed, Some("\"1\"")).start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    // Bodies are wanted now, and none is there.
    again(&keeping_bodies(), &db).await;
    assert_eq!(confirmed.count(), 0);
    again(&keeping_bodies(), &db).await;
    assert_eq!(confirmed.count(), 1);
    for spoilt in [
        "update pages set truncated = 'length'",
        "update pages set http_status = 404",
        "update pages set reading = reading + 1",
        "update pages set reading = null",
        "update pages set etag = repeat('x', 4000), last_modified = 'yesterday'",
        "delete from bodies",
    ] {
        sqlx::query(spoilt).execute(&db.pool).await.unwrap();
        again(&keeping_bodies(), &db).await;
        assert_eq!(confirmed.count(), 1, "{spoilt}");
    }
    again(&keeping_bodies(), &db).await;
    assert_eq!(confirmed.count(), 2);
}

#[tokio::test]
async fn a_scope_that_has_grown_makes_pages_be_read_for_their_links_again() {
    let confirmed = Confirmed::default();
    let other = Site::builder()
        .page("/x", "x")
        .page("/y", "y")
        .start()
        .await;
    let (counted, far) = (confirmed.clone(), other.url("/x"));
    let site = Site::builder()
        .answer("/", move |request| {
            counted.page(request, Some("\"1\""), &format!("<a href={far}>x</a>"))
        })
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(other.count("/x"), 0);
    let crawl = Setup::quick().join(&db).await;
    crawl.add_seeds(&urls(&[other.url("/y")])).await.unwrap();
    crawl.leave().await;
    again(&Setup::quick(), &db).await;
    assert_eq!((confirmed.count(), other.count("/x")), (0, 1));
    again(&Setup::quick(), &db).await;
    assert_eq!(confirmed.count(), 1);
}

#[tokio::test]
async fn validators_are_not_shown_to_another_spelling_of_the_page() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let (log, confirmed) = (Arc::clone(&shown), Confirmed::default());
    let counted = confirmed.clone();
    let site = Site::builder()
        .answer("/p", move |request| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let condition = request.headers().get("if-none-match").is_some();
            log.lock().unwrap().push((query.clone(), condition));
            match query.as_str() {
                "b=2&a=1" => (StatusCode::FOUND, [("location", "/p?a=1&b=2")]).into_response(),
                _ => counted.page(request, Some("\"1\""), "<title>P</title>"),
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/p?b=2&a=1")]).await;
    again(&Setup::quick(), &db).await;
    let row = |query: &str, condition| (query.to_owned(), condition);
    assert_eq!(
        *shown.lock().unwrap(),
        [
            row("b=2&a=1", false),
            row("a=1&b=2", false),
            row("b=2&a=1", false),
            row("a=1&b=2", true)
        ]
    );
    assert_eq!(confirmed.count(), 1);
}

#[tokio::test]
async fn a_page_that_is_sent_back_to_itself_for_a_cookie_is_asked_whether_it_changed_each_time() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let (log, confirmed) = (Arc::clone(&shown), Confirmed::default());
    let counted = confirmed.clone();
    let site = Site::builder()
        .answer("/", move |request| {
            let said = |name| request.headers().contains_key(name);
            log.lock()
                .unwrap()
                .push((said("cookie"), said("if-none-match")));
            match said("cookie") {
                false => (
                    StatusCode::FOUND,
                    [("location", "/"), ("set-cookie", "seen=1")],
                )
                    .into_response(),
                true => counted.page(request, Some("\"1\""), "<title>P</title>"),
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    again(&Setup::quick(), &db).await;
    assert_eq!(
        *shown.lock().unwrap(),
        [(false, false), (true, false), (false, true), (true, true)]
    );
    assert_eq!(confirmed.count(), 1);
}

#[tokio::test]
async fn a_304_that_nobody_asked_for_is_an_error_and_no_page() {
    let site = Site::builder().status("/", 304).start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        column(&db.pool, "select t.status, t.reason, p.error, p.http_status is null from tasks t join pages p on p.task_id = t.id").await,
        ["failed,unasked_304,unasked_304,t"]
    );
    assert_eq!(site.count("/"), 4);
}

#[tokio::test]
async fn a_304_that_says_something_new_of_its_use_makes_the_next_visit_a_full_one() {
    let (confirmed, reserved) = (Confirmed::default(), Arc::new(AtomicBool::new(false)));
    let (counted, now) = (confirmed.clone(), Arc::clone(&reserved));
    let site = Site::builder()
        .answer("/", move |request| {
            let mut answer = counted.page(request, Some("\"1\""), "<title>Old</title>");
            if now.load(Ordering::SeqCst) {
                let usage = "train-ai=n".parse().unwrap();
                answer.headers_mut().insert("content-usage", usage);
            }
            answer
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let setup = Setup::quick();
    setup.crawl(&db, &[site.url("/")]).await;
    reserved.store(true, Ordering::SeqCst);
    again(&setup, &db).await;
    assert_eq!(confirmed.count(), 1);
    again(&setup, &db).await;
    assert_eq!(confirmed.count(), 1);
    let said = "select content_usage from page_signals";
    assert_eq!(column(&db.pool, said).await, ["train-ai=n"]);
    again(&setup, &db).await;
    assert_eq!(confirmed.count(), 2);
}

/// A change of a crawl's settings.
type Change = fn(&mut Setup, &Site);

/// How often the page was confirmed in two visits after a change.
async fn confirmed_after(change: Change) -> usize {
    let confirmed = Confirmed::default();
    let site = site(&confirmed, Some("\"1\"")).start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl(&db, &[site.url("/")]).await;
    change(&mut setup, &site);
    let version = setup.frontier.version;
    let settle = format!("update crawl set settings_version = {version}");
    sqlx::query(sqlx::AssertSqlSafe(settle))
        .execute(&db.pool)
        .await
        .unwrap();
    again(&setup, &db).await;
    again(&setup, &db).await;
    confirmed.count()
}

fn entry(site: &Site) -> HostSettings {
    HostSettings {
        hosts: vec![site.url("").parse().unwrap()],
        ..HostSettings::default()
    }
}

#[tokio::test]
async fn a_page_is_had_in_full_once_where_it_is_asked_for_as_somebody_else() {
    let changes: [(&str, Change); 8] = [
        ("a login", |setup, site| {
            setup.fetch.hosts = HostRules::new(vec![HostSettings {
                login: Some(Login::Bearer("sesame".into())),
                ..entry(site)
            }]);
        }),
        ("a header for the host", |setup, site| {
            let mut entry = entry(site);
            entry.headers.insert("x-api-key", "sesame".parse().unwrap());
            setup.fetch.hosts = HostRules::new(vec![entry]);
        }),
        ("a cookie for the host", |setup, site| {
            let mut entry = entry(site);
            entry.headers.insert("cookie", "id=sesame".parse().unwrap());
            setup.fetch.hosts = HostRules::new(vec![entry]);
        }),
        ("cookies that the host may keep", |setup, site| {
            setup.fetch.hosts = HostRules::new(vec![HostSettings {
                cookies: Some(KeepCookies::Host),
                ..entry(site)
            }]);
        }),
        ("cookies of a file", |setup, _| {
            let file = CookieFile::read("127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tsesame\n", 0);
            assert_eq!(file.cookies.len(), 1);
            setup.fetch.cookies = file.cookies.into();
        }),
        ("cookies that all may keep", |setup, _| {
            setup.fetch.keep_cookies = KeepCookies::Host;
        }),
        ("a header", |setup, _| {
            let languages = "de".parse().unwrap();
            setup.fetch.headers.insert("accept-language", languages);
        }),
        ("a name", |setup, _| {
            setup.fetch.user_agent = "another/1".to_owned();
        }),
    ];
    for (what, change) in changes {
        assert_eq!(confirmed_after(change).await, 1, "{what}");
    }
}

#[tokio::test]
async fn a_page_is_had_in_full_once_where_it_would_be_read_otherwise() {
    let changes: [(&str, Change); 5] = [
        ("a depth", |setup, _| setup.traps.max_depth = 5),
        ("a scope", |setup, _| setup.scope = ScopeKind::Any),
        ("a size", |setup, _| setup.fetch.max_body_bytes = 1_000_000),
        ("robots.txt", |setup, _| setup.frontier.obey_robots = false),
        ("a token", |setup, _| {
            setup.crawl.robots_token = "another".to_owned();
        }),
    ];
    for (what, change) in changes {
        assert_eq!(confirmed_after(change).await, 1, "{what}");
    }
}

#[tokio::test]
async fn settings_that_change_no_reading_cost_no_page() {
    let changes: [(&str, Change); 4] = [
        ("the version of all settings", |setup, _| {
            setup.frontier.version = 3;
        }),
        ("politeness", |setup, _| {
            setup.frontier.delay = Duration::from_millis(1);
        }),
        ("retries", |setup, _| setup.crawl.retry.waits.clear()),
        ("a login of another host", |setup, _| {
            setup.fetch.hosts = HostRules::new(vec![HostSettings {
                hosts: vec!["https://other.test".parse().unwrap()],
                login: Some(Login::Bearer("sesame".into())),
                ..HostSettings::default()
            }]);
        }),
    ];
    for (what, change) in changes {
        assert_eq!(confirmed_after(change).await, 2, "{what}");
    }
}

/// The page without the login would else stay for good: its date is older than any visit.
#[tokio::test]
async fn behind_a_login_a_page_does_not_stay_the_one_that_asks_to_log_in() {
    let site = Site::builder()
        .answer("/", |request| {
            let (known, logged_in) = (
                request.headers().contains_key("if-modified-since"),
                request.headers().contains_key("authorization"),
            );
            let title = match (known, logged_in) {
                (true, _) => return StatusCode::NOT_MODIFIED.into_response(),
                (_, true) => "<title>Inside</title>",
                (_, false) => "<title>Please log in</title>",
            };
            let headers = [("content-type", "text/html"), ("last-modified", DATE)];
            (headers, title).into_response()
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl(&db, &[site.url("/")]).await;
    let title = format!("select title {ROOT}");
    assert_eq!(column(&db.pool, &title).await, ["\"Please log in\""]);
    setup.fetch.hosts = HostRules::new(vec![HostSettings {
        login: Some(Login::Basic {
            username: "me".to_owned(),
            password: "sesame".into(),
        }),
        ..entry(&site)
    }]);
    again(&setup, &db).await;
    assert_eq!(column(&db.pool, &title).await, ["Inside"]);
}
