//! Redirects are results; their targets are tasks.

use axum::{http::header, response::IntoResponse as _};
use pgcrawl::scope::ScopeKind;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    site::Site,
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
