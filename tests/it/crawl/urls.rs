//! Which URLs are asked for, and which of them are one page. U06 to U18 of the field cases, as seen by a server.

use axum::response::{Html, IntoResponse as _};
use pgcrawl::canon::{Canon, CanonOptions, Listed};

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
    program::{ended, run},
    site::{Site, SiteBuilder},
};

/// Crawls a site from its root, and returns what was asked for beside robots.txt, sorted.
async fn asked(setup: Setup, site: &Site, seeds: &[&str]) -> Vec<String> {
    let db = TestDb::new().await;
    let seeds: Vec<String> = seeds.iter().map(|path| site.url(path)).collect();
    setup.crawl(&db, &seeds).await;
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
    let mut targets = site.targets();
    targets.retain(|target| target != "/robots.txt");
    targets.sort_unstable();
    targets
}

/// A root with these links, whose targets are all there.
fn linking(links: &[&str]) -> SiteBuilder {
    let root: String = links
        .iter()
        .map(|link| format!("<a href=\"{link}\">x</a>"))
        .collect();
    Site::builder()
        .page("/", root)
        .otherwise(|_| async { Html("<title>x</title>").into_response() })
}

fn stripping(session_ids: Listed, tracking: Listed, ignore: &[&str]) -> Setup {
    let mut setup = Setup::quick();
    setup.frontier.canon = Canon::new(CanonOptions {
        session_ids,
        tracking,
        ignore: ignore.iter().map(|rule| rule.parse().unwrap()).collect(),
    });
    setup
}

/// U06 and U07.
#[tokio::test]
async fn links_are_relative_to_the_first_base_that_is_a_place() {
    let site = Site::builder()
        .page(
            "/d/i.html",
            "<base href='data:text/plain,hi'><a href=ok1>1</a>",
        )
        .page(
            "/d/j.html",
            "<base href='javascript:void(0)'><a href=ok2>2</a>",
        )
        .page(
            "/x/i.html",
            "<base target=_top><a href=one>1</a><base href=/b1/><base href=/b2/><a href=two>2</a>",
        )
        .otherwise(|_| async { Html("").into_response() })
        .start()
        .await;
    assert_eq!(
        asked(
            Setup::quick(),
            &site,
            &["/d/i.html", "/d/j.html", "/x/i.html"]
        )
        .await,
        [
            "/b1/one",
            "/b1/two",
            "/d/i.html",
            "/d/j.html",
            "/d/ok1",
            "/d/ok2",
            "/x/i.html"
        ]
    );
}

const SESSIONS: [&str; 3] = [
    "/item;jsessionid=E46F.node_2?p=1",
    "/item;jsessionid=77AA.node_1?p=1",
    "/item?p=1",
];

/// U08.
#[tokio::test]
async fn a_session_id_with_a_node_goes_as_a_whole_or_not_at_all() {
    let site = linking(&SESSIONS).status("/item.node_2", 404).start().await;
    let mut all = asked(Setup::quick(), &site, &["/"]).await;
    let mut linked = vec!["/"];
    linked.extend(SESSIONS);
    linked.sort_unstable();
    all.sort_unstable();
    assert_eq!(all, linked);

    let site = linking(&SESSIONS).start().await;
    let setup = stripping(Listed::V1, Listed::Off, &[]);
    // Once, and as it was linked: no URL is made up.
    assert_eq!(asked(setup, &site, &["/"]).await, ["/", SESSIONS[0]]);
}

#[tokio::test]
async fn a_redirect_that_only_adds_a_session_id_is_walked_within_the_visit() {
    let site = Site::builder()
        .redirect("/a", 302, "/a;jsessionid=1")
        .page("/a;jsessionid=1", "<title>A</title><a href='/a;jsessionid=2'>again</a><a href='/b?utm_source=x&sid=0123456789abcdef'>b</a><a href=/b>b</a>")
        .page("/b", "<a href='/c?ref=1'>c</a><a href='/c?ref=2'>c</a>")
        .page("/c", "")
        .start()
        .await;
    let setup = stripping(Listed::V1, Listed::V1, &["127.0.0.1: ref"]);
    assert_eq!(
        asked(setup, &site, &["/a"]).await,
        [
            "/a",
            "/a;jsessionid=1",
            "/b?utm_source=x&sid=0123456789abcdef",
            "/c?ref=1"
        ]
    );
}

/// U11.
#[tokio::test]
async fn an_escaped_slash_is_no_slash_and_the_case_of_escapes_none_of_the_page() {
    let site = linking(&["/k/a%2fb", "/k/a%2Fb", "/k/a/b", "/k/%7Euser", "/k/~user"])
        .start()
        .await;
    assert_eq!(
        asked(Setup::quick(), &site, &["/"]).await,
        ["/", "/k/%7Euser", "/k/a%2fb", "/k/a/b"]
    );
}

/// U15.
#[tokio::test]
async fn an_ipv6_host_is_one_host_however_it_is_written() {
    let builder = Site::builder().bind("[::1]:0");
    let Ok(probe) = std::net::TcpListener::bind("[::1]:0") else {
        eprintln!("skipped: this machine has no ::1");
        return;
    };
    drop(probe);
    let site = builder
        .answer("/", |request| {
            let host = request.headers()["host"].to_str().unwrap_or_default();
            Html(format!("<a href=//{host}/a>a</a>")).into_response()
        })
        .page("/a", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let seeds = [
        site.url_at("[::1]", "/"),
        site.url_at("[0:0:0:0:0:0:0:1]", "/"),
    ];
    Setup::quick().crawl(&db, &seeds).await;
    assert_eq!(site.targets(), ["/robots.txt", "/", "/a"]);
    assert_eq!(number(&db.pool, "select count(*) from hosts").await, 1);
}

/// U16.
#[tokio::test]
async fn fragments_are_neither_asked_for_nor_pages_and_escaped_ones_are_none() {
    let site = linking(&["#x", "/p#y", "/p?#z", "/r%23cz", "/r#cz"])
        .start()
        .await;
    assert_eq!(
        asked(Setup::quick(), &site, &["/#top"]).await,
        ["/", "/p", "/r", "/r%23cz"]
    );
}

/// U17.
#[tokio::test]
async fn bad_percent_signs_cost_no_page_its_links_and_go_out_as_they_are() {
    let site = linking(&["/100%", "/a%zz?b=%", "/caf%E9", "/after"])
        .start()
        .await;
    assert_eq!(
        asked(Setup::quick(), &site, &["/"]).await,
        ["/", "/100%", "/a%zz?b=%", "/after", "/caf%E9"]
    );
}

/// U18.
#[tokio::test]
async fn an_underscore_in_a_hosts_name_is_none_of_our_business() {
    let site = Site::builder().page("/x", "").start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    let name = "my_host.site.test";
    setup.fetch.resolve = vec![format!("{name}:127.0.0.1").parse().unwrap()];
    setup.crawl(&db, &[site.url_at(name, "/x")]).await;
    let of_page = site.wait_for_request("/x").await;
    assert_eq!(
        of_page.header("host"),
        format!("{name}:{}", site.address().port())
    );
    assert_eq!(
        column(&db.pool, "select http_status from pages").await,
        ["200"]
    );
}

#[tokio::test]
async fn seeds_of_a_host_are_visited_in_their_order() {
    let site = linking(&[]).start().await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.per_host = 1;
    let paths: Vec<String> = (0..40).map(|n| format!("/{}", n * 7 % 40)).collect();
    let seeds: Vec<String> = paths.iter().map(|path| site.url(path)).collect();
    setup.crawl(&db, &seeds).await;
    assert_eq!(site.targets()[1..], paths);
}

#[tokio::test]
async fn which_urls_are_one_page_is_settled_by_the_first_seeds() {
    let site = linking(&["/a?utm_source=x", "/a"]).start().await;
    let db = TestDb::new().await;
    // Begun, and without a seed.
    Setup::quick().join(&db).await.leave().await;
    let set = async |value: &str| {
        ended(&run(&db, &["config", "set", "canon.strip_tracking", value]).await)
    };
    assert_eq!(set("true").await.0, 0);
    let seed = site.url("/");
    let (code, said) = ended(&run(&db, &["crawl", &seed, "--delay", "0s"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(site.targets(), ["/robots.txt", "/", "/a?utm_source=x"]);

    let (code, said) = set("off").await;
    assert_eq!(code, 1);
    assert!(said.contains("canon.strip_tracking is settled"), "{said}");
    let (code, said) = ended(&run(&db, &["crawl", &seed, "--strip-session-ids"]).await);
    assert_eq!(code, 1);
    assert!(
        said.contains("canon.strip_session_ids is \"off\" in this crawl"),
        "{said}"
    );

    let url = site.url("/a?utm_medium=y");
    let output = run(&db, &["explain", "--json", &url]).await;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["url"]["asked for"], url);
    assert_eq!(found["url"]["compared as"], site.url("/a"));
    assert_eq!(found["task"]["fetched_as"], site.url("/a?utm_source=x"));
}
