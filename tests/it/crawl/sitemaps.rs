//! Sitemaps: where they are found, what they lead to, and what they cost.

use std::sync::Arc;

use async_compression::tokio::bufread::GzipEncoder;
use axum::{
    body::Body,
    http::{StatusCode, header},
    response::IntoResponse as _,
};
use futures_util::StreamExt as _;
use pgcrawl::{
    crawl::{End, SitemapUse, Stop},
    scope::ScopeKind,
};
use tokio::io::AsyncReadExt as _;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number, urls},
    db::TestDb,
    program::{ended, pgcrawl},
    site::{Site, SiteBuilder},
};

/// Answers with a text in which `HOST` is the site itself.
trait OwnUrls {
    fn own(self, path: &str, content_type: &'static str, text: &str) -> Self;
    fn xml(self, path: &str, text: &str) -> Self;
}

impl OwnUrls for SiteBuilder {
    fn own(self, path: &str, content_type: &'static str, text: &str) -> Self {
        let text = text.to_owned();
        self.answer(path, move |request| {
            let host = request.headers()[header::HOST].to_str().unwrap();
            let body = text.replace("HOST", &format!("http://{host}"));
            ([(header::CONTENT_TYPE, content_type)], body).into_response()
        })
    }

    fn xml(self, path: &str, text: &str) -> Self {
        self.own(path, "application/xml", text)
    }
}

fn urlset(locs: &[&str]) -> String {
    let entries: String = locs
        .iter()
        .map(|loc| format!("<url><loc>HOST{loc}</loc></url>"))
        .collect();
    format!(
        "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{entries}</urlset>"
    )
}

fn index(locs: &[&str]) -> String {
    let entries: String = locs
        .iter()
        .map(|loc| format!("<sitemap><loc>HOST{loc}</loc></sitemap>"))
        .collect();
    format!("<sitemapindex>{entries}</sitemapindex>")
}

async fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    GzipEncoder::new(plain).read_to_end(&mut out).await.unwrap();
    out
}

fn sorted(site: &Site) -> Vec<String> {
    let mut targets = site.targets();
    targets.sort_unstable();
    targets
}

#[tokio::test]
async fn a_sitemap_of_robots_txt_leads_to_pages_that_no_link_leads_to() {
    let site = Site::builder()
        .own("/robots.txt", "text/plain", "User-agent: *\nDisallow: /private\nSitemap: HOST/map.xml\n")
        .page("/", "<a href=/linked>x</a>")
        .page("/linked", "")
        .page("/hidden", "<a href=/deeper>x</a>")
        .page("/deeper", "")
        .page("/de", "")
        .xml("/map.xml", "<urlset xmlns:xhtml='x'><url><loc>HOST/hidden</loc><lastmod>2024-05-06</lastmod><changefreq>weekly</changefreq><priority>0.9</priority>\
            <xhtml:link rel='alternate' hreflang='de' href='HOST/de'/></url><url><loc>HOST/linked</loc><lastmod>never</lastmod></url>\
            <url><loc>HOST/private/x</loc></url><url><loc>http://other.invalid/</loc></url><url><loc>HOST/a/a/a/a/a</loc></url><url></url></urlset>")
        .start()
        .await;
    let db = TestDb::new().await;
    let summary = Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(summary.end, End::Finished);
    assert_eq!(
        sorted(&site),
        [
            "/",
            "/de",
            "/deeper",
            "/hidden",
            "/linked",
            "/map.xml",
            "/robots.txt"
        ]
    );
    let depths = "select kind, depth, replace(url, (select authority from hosts h where h.id = host_id), '') from tasks where status = 'done' order by 3";
    assert_eq!(
        column(&db.pool, depths).await,
        [
            "page,0,/",
            "page,1,/de",
            "page,2,/deeper",
            "page,1,/hidden",
            "page,1,/linked",
            "sitemap,0,/map.xml"
        ]
    );
    let said = "select substring(t.url from '[^/]*$'), to_char(e.lastmod at time zone 'utc', 'YYYY-MM-DD'), e.priority, e.changefreq from sitemap_entries e join tasks t on t.id = e.task_id join tasks s on s.id = e.sitemap_id where t.status = 'done' and s.url like '%/map.xml' order by 1";
    assert_eq!(
        column(&db.pool, said).await,
        ["hidden,2024-05-06,0.9,weekly", "linked,,,"]
    );
    assert_eq!(
        column(
            &db.pool,
            "select reason from tasks where status = 'excluded' order by 1"
        )
        .await,
        ["repeated_segment", "robots"]
    );
    assert_eq!(
        column(&db.pool, "select format, ending, urls, in_scope, foreign_urls, invalid, p.http_status, p.links from sitemaps s join pages p using (task_id)").await,
        ["urlset,whole,5,3,1,1,200,5"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn indexes_nest_ten_deep_and_their_loops_end() {
    let mut site = Site::builder()
        .own("/robots.txt", "text/plain", "Sitemap: HOST/0.xml\n")
        .page("/", "")
        .xml("/0.xml", &index(&["/0.xml", "/1.xml", "/pages.xml"]))
        .xml("/pages.xml", &urlset(&["/near"]))
        .page("/near", "")
        .page("/far", "");
    for n in 1..14 {
        let next = format!("/{}.xml", n + 1);
        site = site.xml(&format!("/{n}.xml"), &index(&["/0.xml", &next]));
    }
    let site = site.xml("/11.xml", &urlset(&["/far"])).start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    for n in 0..=10 {
        assert_eq!(site.count(&format!("/{n}.xml")), 1, "{n}");
    }
    assert_eq!(
        (
            site.count("/near"),
            site.count("/11.xml"),
            site.count("/far")
        ),
        (1, 0, 0)
    );
    assert_eq!(
        column(
            &db.pool,
            "select reason, detail from tasks where status = 'excluded'"
        )
        .await,
        ["sitemap_depth,\"11 deep\""]
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where kind = 'sitemap' and depth = 0"
        )
        .await,
        13
    );
}

/// S13 and S09 of the field cases: named or coded as it may be, it is what its bytes are.
#[tokio::test]
async fn gzip_is_recognised_by_its_bytes_also_below_a_coding() {
    let plain = |n: u8| format!("<urlset><url><loc>/p{n}</loc></url></urlset>");
    let once = gzip(plain(1).as_bytes()).await;
    let twice = gzip(&gzip(plain(2).as_bytes()).await).await;
    let cut = {
        let many: String = (0..2_000)
            .map(|n| format!("<url><loc>/p9?{n}{}</loc></url>", n * 7_919))
            .collect();
        let whole = gzip(format!("<urlset>{many}</urlset>").as_bytes()).await;
        whole[..whole.len() / 2].to_vec()
    };
    let site = Site::builder()
        .own("/robots.txt", "text/plain", "Sitemap: HOST/1.xml\nSitemap: HOST/2.xml.gz\nSitemap: HOST/3.xml.gz\nSitemap: HOST/4\nSitemap: HOST/urls.xml\nSitemap: HOST/cut.gz\n")
        .page("/", "")
        .typed("/1.xml", "text/xml", once)
        .answer("/2.xml.gz", move |_| {
            ([("content-type", "application/x-gzip"), ("content-encoding", "gzip")], twice.clone()).into_response()
        })
        // Neither coding nor name is true.
        .answer("/3.xml.gz", move |_| ([("content-encoding", "gzip")], plain(3)).into_response())
        .typed("/4", "image/png", gzip(plain(4).as_bytes()).await)
        .route("/urls.xml", |request| async move {
            let host = request.headers()[header::HOST].to_str().unwrap();
            let text = format!("\u{feff}http://{host}/t1\r\n\r\n  http://{host}/t2  \n# note\nnot a url\n");
            ([("content-type", "text/plain")], gzip(text.as_bytes()).await).into_response()
        })
        .typed("/cut.gz", "application/gzip", cut)
        .otherwise(|_| async { axum::response::Html("").into_response() })
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    for target in ["/p1", "/p2", "/p3", "/p4", "/t1", "/t2"] {
        assert_eq!(site.count(target), 1, "{target}");
    }
    let of_cut = "select ending, urls > 100 and urls < 2000, (select truncated from pages p where p.task_id = s.task_id) from sitemaps s join tasks t on t.id = s.task_id where t.url like '%/cut.gz'";
    assert_eq!(column(&db.pool, of_cut).await, ["cut,t,disconnect"]);
    assert_eq!(
        column(&db.pool, "select format, invalid from sitemaps s join tasks t on t.id = s.task_id where t.url like '%/urls.xml'").await,
        ["text,2"]
    );
}

/// S04, S05, S08 and S14 of the field cases.
#[tokio::test]
async fn what_servers_write_into_sitemaps_is_read_as_it_is_meant() {
    let thief = Site::builder().start().await;
    let steal = thief.url("/steal");
    let site = Site::builder()
        .own("/robots.txt", "text/plain", "Sitemap: HOST/blank.xml\nSitemap: HOST/amp.xml\nSitemap: HOST/dtd.xml\nSitemap: HOST/image.xml\n")
        .page("/", "")
        .xml("/blank.xml", "\n  \u{feff}<?xml version='1.0'?><urlset><url><loc>\u{a0}\n HOST/w1 \u{200b}</loc></url></urlset>")
        .xml("/amp.xml", "<urlset><url><loc>HOST/e?a=1&amp;b=2</loc></url><url><loc><![CDATA[HOST/f?a=1&b=2]]></loc></url><url><loc>HOST/g?x=&#38;y</loc></url></urlset>")
        .xml("/dtd.xml", &format!("<!DOCTYPE urlset [<!ENTITY x SYSTEM \"{steal}\"><!ENTITY b \"&#97;\"><!ENTITY c \"&b;&b;\">]><urlset><url><loc>HOST/k&x;&c;</loc></url><url><loc>HOST/k2</loc></url></urlset>"))
        .xml("/image.xml", "<urlset><url><loc>HOST/pg</loc><image:image><image:loc>HOST/i.jpg</image:loc></image:image><video:video><video:player_loc>HOST/pl</video:player_loc></video:video></url></urlset>")
        .otherwise(|_| async { axum::response::Html("").into_response() })
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    let mut pages = site.targets();
    pages.retain(|target| !target.ends_with(".xml") && !target.ends_with(".txt"));
    pages.sort_unstable();
    assert_eq!(
        pages,
        [
            "/",
            "/e?a=1&b=2",
            "/f?a=1&b=2",
            "/g?x=&y",
            "/k2",
            "/pg",
            "/w1"
        ]
    );
    assert_eq!(thief.targets(), Vec::<String>::new());
    assert_eq!(
        number(&db.pool, "select sum(assets) from sitemaps").await,
        2
    );
}

/// S13 of the field cases: pages are cut at 1 MB, sitemaps are not, and one behind a redirect is read.
#[tokio::test]
async fn the_limit_of_pages_is_none_of_sitemaps_and_fifty_thousand_urls_are_read() {
    let site = Site::builder()
        .own(
            "/robots.txt",
            "text/plain",
            "User-agent: *\nDisallow: /p\nSitemap: HOST/big\n",
        )
        .page("/", "")
        .redirect("/big", 301, "/big.xml")
        .answer("/big.xml", |request| {
            let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
            let entry = move |n: u32| {
                let path = match n {
                    0 => "/first".to_owned(),
                    49_999 => "/last".to_owned(),
                    50_000 => "/behind".to_owned(),
                    n => format!("/p{n}/{}", "x".repeat(60)),
                };
                format!("<url><loc>http://{host}{path}</loc></url>")
            };
            let parts = futures_util::stream::iter((0..60).map(move |part| {
                let text: String = (part * 1_000..(part + 1) * 1_000).map(&entry).collect();
                Ok::<_, std::io::Error>(match part {
                    0 => format!("<urlset>{text}"),
                    59 => format!("{text}</urlset>"),
                    _ => text,
                })
            }));
            Body::from_stream(parts).into_response()
        })
        .page("/first", "")
        .page("/last", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.fetch.max_body_bytes = 1 << 20;
    // 50,000 rows may take their time on a busy machine.
    let long = std::time::Duration::from_secs(280);
    (setup.crawl.visit_budget, setup.fetch.total_timeout) = (long, long);
    (setup.frontier.lease, setup.frontier.dead_after) = (2 * long, 2 * long);
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        sorted(&site),
        ["/", "/big", "/big.xml", "/first", "/last", "/robots.txt"]
    );
    assert_eq!(
        column(
            &db.pool,
            "select urls, ending, (select count(*) from sitemap_entries) from sitemaps"
        )
        .await,
        ["50000,full,50000"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// S13 of the field cases: what is read of a sitemap is in the frontier before the rest has come.
#[tokio::test]
async fn entries_are_tasks_while_the_sitemap_is_still_coming() {
    let (more, wait) = tokio::sync::watch::channel(false);
    let site = Site::builder()
        .own("/robots.txt", "text/plain", "Sitemap: HOST/slow.xml\n")
        .page("/", "")
        .answer("/slow.xml", move |_| {
            let mut wait = wait.clone();
            let first: String = (0..2_000)
                .map(|n| format!("<url><loc>/early{n}</loc></url>"))
                .collect();
            let parts = futures_util::stream::iter([format!("<urlset>{first}")]).chain(
                futures_util::stream::once(async move {
                    let _ = wait.wait_for(|more| *more).await;
                    "<url><loc>/late</loc></url></urlset>".to_owned()
                }),
            );
            Body::from_stream(parts.map(Ok::<_, std::io::Error>)).into_response()
        })
        .otherwise(|_| async { axum::response::Html("").into_response() })
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.visit_budget = std::time::Duration::from_secs(55);
    setup.fetch.total_timeout = std::time::Duration::from_secs(55);
    let crawl = setup.join(&db).await;
    crawl.add_seeds(&urls(&[site.url("/")])).await.unwrap();
    let running = crawl.run(Stop::default());
    let seen = async {
        // Early pages are even asked for meanwhile.
        site.wait_for_request("/early3").await;
        assert_eq!(site.count("/late"), 0);
        more.send(true).unwrap();
    };
    let (summary, ()) = tokio::join!(running, seen);
    assert_eq!(summary.unwrap().end, End::Finished);
    crawl.leave().await;
    assert_eq!((site.count("/late"), site.count("/slow.xml")), (1, 1));
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from pages where http_status = 200"
        )
        .await,
        2_003
    );
}

#[tokio::test]
async fn a_sitemap_names_pages_of_other_hosts_only_where_their_robots_txt_names_it() {
    let elsewhere = Arc::new(std::sync::OnceLock::new());
    let named = {
        let elsewhere = Arc::clone(&elsewhere);
        Site::builder()
            .answer("/robots.txt", move |_| {
                format!("Sitemap: {}\n", elsewhere.get().unwrap()).into_response()
            })
            .page("/", "")
            .page("/vouched", "")
            .start()
            .await
    };
    let stranger = Site::builder()
        .page("/", "<a href=/linked-too>x</a>")
        .page("/stolen", "")
        .page("/linked-too", "")
        .start()
        .await;
    let map = format!(
        "<urlset><url><loc>{}</loc></url><url><loc>{}</loc></url><url><loc>{}</loc></url></urlset>",
        named.url("/vouched"),
        stranger.url("/stolen"),
        stranger.url("/linked-too"),
    );
    // The store is no host of the crawl: its sitemap is fetched, its pages are not.
    let store = Site::builder()
        .xml("/index.xml", &index(&["/map.xml"]))
        .typed("/map.xml", "application/xml", map)
        .start()
        .await;
    elsewhere.set(store.url("/index.xml")).unwrap();
    let db = TestDb::new().await;
    Setup::quick()
        .crawl(&db, &[named.url("/"), stranger.url("/")])
        .await;
    assert_eq!(sorted(&store), ["/index.xml", "/map.xml", "/robots.txt"]);
    assert_eq!((named.count("/vouched"), stranger.count("/stolen")), (1, 0));
    // What it may not name is not lost for those who may.
    assert_eq!(stranger.count("/linked-too"), 1);
    assert_eq!(
        column(
            &db.pool,
            "select format, in_scope, foreign_urls from sitemaps order by 1"
        )
        .await,
        ["index,1,0", "urlset,1,2"]
    );
}

/// What a host's robots.txt says of a sitemap of another counts also where it is known later than the sitemap, or its index.
#[tokio::test]
async fn a_sitemap_is_read_again_when_a_host_names_it_that_it_named() {
    let elsewhere = Arc::new(std::sync::OnceLock::new());
    let host = || {
        let elsewhere: Arc<std::sync::OnceLock<String>> = Arc::clone(&elsewhere);
        Site::builder()
            .answer("/robots.txt", move |_| {
                format!("Sitemap: {}\n", elsewhere.get().unwrap()).into_response()
            })
            .page("/", "")
            .page("/vouched", "")
    };
    let (first, second) = (host().start().await, host().start().await);
    let locs: String = [&first, &second]
        .map(|site| format!("<url><loc>{}</loc></url>", site.url("/vouched")))
        .concat();
    let store = Site::builder()
        .xml("/index.xml", &index(&["/map.xml", "/other.xml"]))
        .typed(
            "/map.xml",
            "application/xml",
            format!("<urlset>{locs}</urlset>"),
        )
        .xml("/other.xml", &urlset(&["/x"]))
        .start()
        .await;
    elsewhere.set(store.url("/index.xml")).unwrap();
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[first.url("/")]).await;
    assert_eq!((first.count("/vouched"), store.count("/map.xml")), (1, 1));
    Setup::quick().crawl(&db, &[second.url("/")]).await;
    assert_eq!((second.count("/vouched"), store.count("/map.xml")), (1, 2));
    assert_eq!(
        (store.count("/index.xml"), store.count("/other.xml")),
        (1, 1)
    );
    let foreign = "select max(foreign_urls) from sitemaps";
    assert_eq!(column(&db.pool, foreign).await, ["0"]);
    // It is no news the next time.
    let crawl = Setup::quick().join(&db).await;
    sqlx::query("update hosts set robots_until = now()")
        .execute(&db.pool)
        .await
        .unwrap();
    crawl
        .add_seeds(&urls(&[second.url("/more")]))
        .await
        .unwrap();
    crawl.run(Stop::default()).await.unwrap();
    crawl.leave().await;
    assert_eq!(
        (second.count("/robots.txt"), store.count("/map.xml")),
        (2, 2)
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

/// A text is read as one only where it was named as such.
#[tokio::test]
async fn a_page_becomes_a_sitemap_when_it_is_named_as_one() {
    let web = |robots: &str| {
        Site::builder()
            .own("/robots.txt", "text/plain", robots)
            .own("/list.txt", "text/plain", "HOST/a\n")
            .xml("/index.xml", &index(&["/list.txt"]))
            .page("/a", "")
    };
    // A seed is claimed before robots.txt is known.
    let site = web("Sitemap: HOST/list.txt\n").start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/list.txt")]).await;
    assert_eq!((site.count("/list.txt"), site.count("/a")), (1, 1));
    // It was read as a page.
    let site = web("").start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/list.txt")]).await;
    assert_eq!((site.count("/list.txt"), site.count("/a")), (1, 0));
    Setup::quick().crawl(&db, &[site.url("/index.xml")]).await;
    assert_eq!((site.count("/list.txt"), site.count("/a")), (2, 1));
    assert_eq!(
        column(
            &db.pool,
            "select kind from tasks where url like '%/list.txt'"
        )
        .await,
        ["sitemap"]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_is_a_task_already_takes_nothing_of_the_urls_of_its_host() {
    let site = Site::builder()
        .page("/", "<a href=/a>x</a><a href=/b>x</a>")
        .xml("/map.xml", &urlset(&["/a", "/b", "/c", "/c", "/d", "/a"]))
        .page("/a", "")
        .page("/b", "")
        .page("/c", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.budget.urls_per_host = Some(5);
    setup.crawl(&db, &[site.url("/")]).await;
    setup.crawl(&db, &[site.url("/map.xml")]).await;
    assert_eq!((site.count("/c"), site.count("/d")), (1, 0));
    let named = "select right(url, 1) from sitemap_entries join tasks on id = task_id order by 1";
    assert_eq!(column(&db.pool, named).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn what_lay_too_deep_belongs_to_the_crawl_where_a_sitemap_names_it() {
    let site = Site::builder()
        .page("/", "<a href=/a>x</a>")
        .page("/a", "<a href=/b>x</a>")
        .page("/b", "")
        .xml("/map.xml", &urlset(&["/b"]))
        .start()
        .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.keep_excluded = true;
    setup.traps.max_depth = 1;
    setup.crawl(&db, &[site.url("/")]).await;
    assert_eq!(
        column(&db.pool, "select reason from tasks where url like '%/b'").await,
        ["depth"]
    );
    setup.crawl(&db, &[site.url("/map.xml")]).await;
    assert_eq!(site.count("/b"), 1);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_seed_that_is_a_sitemap_is_read_as_one_whatever_it_is_called() {
    let site = Site::builder()
        .xml("/feed", &index(&["/more.xml.gz"]))
        .xml("/more.xml.gz", &urlset(&["/a", "/b"]))
        .page("/a", "<a href=/c>x</a>")
        .page("/b", "")
        .page("/c", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/feed")]).await;
    assert_eq!(
        sorted(&site),
        ["/a", "/b", "/c", "/feed", "/more.xml.gz", "/robots.txt"]
    );
    assert_eq!(
        column(
            &db.pool,
            "select depth, count(*) from tasks group by 1 order by 1"
        )
        .await,
        ["0,2", "1,2", "2,1"]
    );
}

#[tokio::test]
async fn only_follows_no_link_and_skip_reads_no_sitemap() {
    let web = || {
        Site::builder()
            .own("/robots.txt", "text/plain", "Sitemap: HOST/map.xml\n")
            .page("/", "<a href=/linked>x</a>")
            .page("/linked", "")
            .page("/mapped", "<a href=/deeper>x</a>")
            .page("/deeper", "")
            .xml("/map.xml", &urlset(&["/mapped"]))
    };
    for (used, asked) in [
        (
            SitemapUse::Only,
            &["/", "/map.xml", "/mapped", "/robots.txt"][..],
        ),
        (SitemapUse::Skip, &["/", "/linked", "/robots.txt"]),
    ] {
        let site = web().start().await;
        let db = TestDb::new().await;
        let mut setup = Setup::quick();
        setup.crawl.sitemaps.used = used;
        setup.crawl(&db, &[site.url("/")]).await;
        assert_eq!(sorted(&site), asked, "{used:?}");
    }
}

/// A file of URLs is the operator's list with `only`; else it is a text like any other.
#[tokio::test]
async fn a_list_of_urls_is_a_seed_where_nothing_else_is_crawled() {
    for (used, n) in [(SitemapUse::Only, 1), (SitemapUse::Auto, 0)] {
        let site = Site::builder()
            .own("/list.txt", "text/plain", "HOST/a\nHOST/b\n")
            .page("/a", "")
            .page("/b", "")
            .start()
            .await;
        let db = TestDb::new().await;
        let mut setup = Setup::quick();
        setup.crawl.sitemaps.used = used;
        setup.crawl(&db, &[site.url("/list.txt")]).await;
        assert_eq!((site.count("/a"), site.count("/b")), (n, n), "{used:?}");
    }
}

#[tokio::test]
async fn the_customary_place_is_asked_only_on_demand_and_its_lack_is_no_failure() {
    for (guess, robots, asked) in [
        (false, "", &["/", "/robots.txt"][..]),
        (true, "", &["/", "/robots.txt", "/sitemap.xml"]),
        (
            true,
            "Sitemap: HOST/other.xml\n",
            &["/", "/other.xml", "/robots.txt"],
        ),
    ] {
        let site = Site::builder()
            .own("/robots.txt", "text/plain", robots)
            .page("/", "")
            .start()
            .await;
        let db = TestDb::new().await;
        let mut setup = Setup::quick();
        setup.crawl.sitemaps.guess = guess;
        let summary = setup.crawl(&db, &[site.url("/")]).await;
        assert_eq!(sorted(&site), asked);
        assert_eq!(summary.counts.failed, 0);
        assert_eq!(number(&db.pool, "select count(*) from sitemaps").await, 0);
    }
}

#[tokio::test]
async fn a_page_where_a_sitemap_should_be_is_read_as_a_page() {
    let site = Site::builder()
        .own(
            "/robots.txt",
            "text/plain",
            "Sitemap: HOST/sitemap.html\nSitemap: HOST/none.xml\n",
        )
        .page("/", "")
        .page(
            "/sitemap.html",
            "<!doctype html><title>Map</title><a href=/a>x</a>",
        )
        .typed("/none.xml", "text/plain", "no such file")
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.count("/a"), 1);
    assert_eq!(
        column(&db.pool, "select substring(url from '[^/]*$'), status, reason from tasks where kind = 'sitemap' order by 1").await,
        ["none.xml,done,no_sitemap", "sitemap.html,done,"]
    );
}

#[tokio::test]
async fn folders_and_the_whole_web_are_crawled_without_sitemaps_unless_they_are_wanted() {
    for (used, scope, n) in [
        (SitemapUse::Auto, ScopeKind::Prefix, 0),
        (SitemapUse::Include, ScopeKind::Prefix, 1),
        (SitemapUse::Auto, ScopeKind::Any, 0),
        (SitemapUse::Auto, ScopeKind::Site, 1),
    ] {
        let site = Site::builder()
            .own("/robots.txt", "text/plain", "Sitemap: HOST/map.xml\n")
            .xml("/map.xml", &urlset(&["/docs/a", "/shop/a"]))
            .page("/docs/", "")
            .page("/docs/a", "")
            .page("/shop/a", "")
            .start()
            .await;
        let db = TestDb::new().await;
        let mut setup = Setup::quick();
        setup.scope = scope;
        setup.crawl.sitemaps.used = used;
        setup.crawl(&db, &[site.url("/docs/")]).await;
        assert_eq!(site.count("/docs/a"), n, "{used:?} {scope}");
        let outside = usize::from(scope == ScopeKind::Site);
        assert_eq!(site.count("/shop/a"), outside, "{used:?} {scope}");
    }
}

#[tokio::test]
async fn a_sitemap_that_is_read_again_forgets_what_it_names_no_more() {
    let map = Arc::new(std::sync::Mutex::new(urlset(&["/a", "/b"])));
    let site = {
        let map = Arc::clone(&map);
        Site::builder()
            .own("/robots.txt", "text/plain", "Sitemap: HOST/map.xml\n")
            .page("/", "")
            .page("/a", "")
            .page("/b", "")
            .page("/c", "")
            .answer("/map.xml", move |_| {
                let text = map.lock().unwrap().replace("HOST", "");
                ([("content-type", "text/xml")], text).into_response()
            })
            .start()
            .await
    };
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    *map.lock().unwrap() = urlset(&["/b", "/c"]);
    let crawl = Setup::quick().join(&db).await;
    crawl.refresh().await.unwrap();
    crawl.run(Stop::default()).await.unwrap();
    crawl.leave().await;
    assert_eq!(site.count("/c"), 1);
    assert_eq!(
        column(
            &db.pool,
            "select right(url, 1) from sitemap_entries join tasks on id = task_id order by 1"
        )
        .await,
        ["b", "c"]
    );
}

#[tokio::test]
async fn a_sitemap_that_is_not_there_for_now_is_tried_again() {
    let site = Site::builder()
        .own("/robots.txt", "text/plain", "Sitemap: HOST/map.xml\n")
        .page("/", "")
        .page("/a", "")
        .sequence(
            "/map.xml",
            vec![
                (503, Default::default(), String::new()),
                (
                    200,
                    Default::default(),
                    "<urlset><url><loc>/a</loc></url></urlset>".to_owned(),
                ),
            ],
        )
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!((site.count("/map.xml"), site.count("/a")), (2, 1));
}

/// S13 of the field cases: 50 MB, read by the program, whose greatest memory is asked of the system.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_sitemap_of_fifty_megabytes_costs_a_few_of_memory() {
    let (go_on, wait) = tokio::sync::watch::channel(false);
    let site = Site::builder()
        .own(
            "/robots.txt",
            "text/plain",
            "User-agent: *\nDisallow: /p\nSitemap: HOST/big.xml\n",
        )
        .page("/", "")
        .answer("/big.xml", |_| {
            // Entries of 10 KiB: most of it is what nobody reads.
            let parts = futures_util::stream::iter((0..500).map(|part| {
                let entry = |n| {
                    format!(
                        "<url><loc>/p{n}</loc><x>{}</x></url>\n",
                        "y".repeat(10 << 10)
                    )
                };
                let text: String = (part * 10..part * 10 + 10).map(entry).collect();
                Ok::<_, std::io::Error>(match part {
                    0 => format!("<urlset>{text}"),
                    499 => format!("{text}<url><loc>/last</loc></url></urlset>"),
                    _ => text,
                })
            }));
            Body::from_stream(parts).into_response()
        })
        .route("/last", move |_| {
            let mut wait = wait.clone();
            async move {
                let _ = wait.wait_for(|on| *on).await;
                StatusCode::NO_CONTENT.into_response()
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let child = pgcrawl(&db, &["crawl", &site.url("/"), "--delay", "0s"])
        .env("PGCRAWL_FETCH_TOTAL_TIMEOUT", "4m")
        .env("PGCRAWL_FRONTIER_LEASE", "10m")
        .env("PGCRAWL_FRONTIER_DEAD_AFTER", "10m")
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id().unwrap());
    let peak = || -> u64 {
        let status = std::fs::read_to_string(&status).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    site.wait_for_request("/robots.txt").await;
    let before = peak();
    tokio::time::timeout(std::time::Duration::from_secs(280), async {
        while site.count("/last") == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the last entry is visited");
    let cost = peak() - before;
    go_on.send(true).unwrap();
    let (code, said) = ended(&child.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        column(&db.pool, "select urls, ending, p.body_bytes > 50000000 from sitemaps join pages p using (task_id)").await,
        ["5001,whole,t"]
    );
    // With all that a crawl begins with; the file alone is 50,000 KiB.
    assert!(cost < 25_000, "{cost} KiB");
}
