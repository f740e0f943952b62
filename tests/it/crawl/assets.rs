//! What pages are made of, where it is wanted; feeds; and the field cases of links that only a crawl can show.

use axum::response::IntoResponse as _;

use crate::support::{
    crawl::{Setup, broken_invariants, column},
    db::TestDb,
    site::Site,
};

fn served(kind: &'static str, body: &'static str) -> axum::response::Response {
    ([("content-type", kind)], body).into_response()
}

fn sorted(mut targets: Vec<String>) -> Vec<String> {
    targets.sort_unstable();
    targets
}

#[tokio::test]
async fn of_a_page_in_scope_are_taken_wherever_they_lie_and_however_deep() {
    let elsewhere = Site::builder()
        .robots("User-agent: *\nDisallow: /private/\n")
        .answer("/s.css", |_| {
            served("text/css", "a{b:url(bg.png)} @import 'more.css';")
        })
        .answer("/more.css", |_| served("text/css", ""))
        .answer("/bg.png", |_| served("image/png", "\0PNG"))
        .redirect("/old.js", 302, "/new.js")
        .answer("/new.js", |_| served("text/javascript", ""))
        .page("/page", "<a href=/never>x</a>")
        .start()
        .await;
    let cdn = |path: &str| elsewhere.url_at("localhost", path);
    let leaf = format!(
        "<link rel=stylesheet href={}><script src={}></script><img src=/own.png><img src={}><a href={}>no</a>",
        cdn("/s.css"),
        cdn("/old.js"),
        cdn("/private/x.png"),
        cdn("/page"),
    );
    let site = Site::builder()
        .page("/", "<a href=/leaf>x</a>")
        .page("/leaf", leaf)
        .answer("/own.png", |_| served("image/png", "\0PNG"))
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.traps.max_depth = 1;
    setup.crawl.wants.assets = true;
    setup.fetch.allow_private = true;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        sorted(site.targets()),
        ["/", "/leaf", "/own.png", "/robots.txt"]
    );
    assert_eq!(
        sorted(elsewhere.targets()),
        [
            "/bg.png",
            "/more.css",
            "/new.js",
            "/old.js",
            "/robots.txt",
            "/s.css"
        ]
    );
    assert_eq!(
        column(
            &db.pool,
            "select content_type, truncated, body_bytes from pages where content_type = 'image/png' order by 1"
        )
        .await,
        ["image/png,,4", "image/png,,4"]
    );
    assert_eq!(
        column(
            &db.pool,
            "select reason from tasks where status = 'excluded'"
        )
        .await,
        ["robots"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn that_redirect_lead_anywhere_and_pages_that_do_stay_in_the_scope() {
    let site = Site::builder()
        .answer("/", |request| {
            let host = request.headers()["host"].to_str().unwrap();
            let other = host.replace("127.0.0.1", "localhost");
            let body = format!("<img src=/logo><a href=http://{other}/in>in</a>");
            served("text/html", body.leak())
        })
        .answer("/logo", |request| {
            let host = request.headers()["host"].to_str().unwrap();
            let to = format!("http://{}/logo.png", host.replace("127.0.0.1", "localhost"));
            (axum::http::StatusCode::FOUND, [("location", to)]).into_response()
        })
        .answer("/logo.png", |_| served("image/png", "\0PNG"))
        .redirect("/in", 302, "/out")
        .page("/out", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.wants.assets = true;
    setup.fetch.allow_private = true;
    setup.rules = vec!["include glob /in on localhost".parse().unwrap()];
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        column(
            &db.pool,
            "select regexp_replace(url, '.*:[0-9]+', ''), kind, reason from tasks order by 1"
        )
        .await,
        [
            "/,page,",
            "/in,page,redirect_out_of_scope",
            "/logo,asset,",
            "/logo.png,asset,"
        ]
    );
    assert_eq!(site.count("/logo.png"), 1);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// Assets are wanted by nobody unless they say so.
#[tokio::test]
async fn are_left_alone_by_default() {
    let site = Site::builder()
        .page(
            "/",
            "<img src=/i.png><script src=/s.js></script><a href=/a>x</a>",
        )
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(sorted(site.targets()), ["/", "/a", "/robots.txt"]);
}

#[tokio::test]
async fn a_feed_that_a_page_names_leads_to_its_entries() {
    let site = Site::builder()
        .page(
            "/",
            "<link rel=alternate type='application/rss+xml' href=/feed>",
        )
        .answer("/feed", |_| {
            served(
                "text/xml",
                "<rss version='2.0'><channel><link>/</link><item><link>/entry?a=1&amp;b=2</link>\
                 <enclosure url='/no.mp3'/></item></channel></rss>",
            )
        })
        .page("/entry", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        sorted(site.targets()),
        ["/", "/entry?a=1&b=2", "/feed", "/robots.txt"]
    );
}

/// L03, L05, L07 to L10 and U14 of the field cases, as requests.
#[tokio::test]
async fn the_links_that_are_asked_for_are_those_that_a_browser_would_see() {
    let body = "<meta content='0;url=t1' http-equiv=refresh><meta http-equiv=refresh content='0; url=&#39;t2&#39;'>\
        <a href=/live>1</a><!-- <a href='/dead'>x</a> --><!--><a href=/live2>2</a><!-- a -- b -->\
        <a rel='noopener NoFollow' href=/n1>x</a><a rel=nofollowing href=/y1>x</a><a rel=ugc href=/y2>x</a>\
        <a href='?a=5&amp;v=full'>x</a><a href='/p&#97;th'>x</a><a href='/e?n=1&copy=7&sect=4&notit=5&para=6'>x</a>\
        <meta property='og:site_name' content='Shop.test'><meta name=description content='see /manual.pdf now'>\
        <a href='/\u{6e56}?k=\u{6e56}'>x</a>";
    let site = Site::builder()
        .answer("/", move |_| {
            let (bytes, ..) = encoding_rs::GBK.encode(body);
            let bytes = bytes.into_owned();
            ([("content-type", "text/html; charset=gbk")], bytes).into_response()
        })
        .otherwise(|_| async { axum::response::Html("").into_response() })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.frontier.obey_robots = false;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        sorted(site.targets()),
        [
            "/",
            "/%E6%B9%96?k=%BA%FE",
            "/?a=5&v=full",
            "/e?n=1&copy=7&sect=4&notit=5&para=6",
            "/live",
            "/live2",
            "/path",
            "/t1",
            "/t2",
            "/y1",
            "/y2",
        ]
    );
}
