//! Block and opt-out lists: files that are read again, entries that hold for all.

use std::time::Duration;

use pgcrawl::{crawl::Stop, frontier::Frontier, scope::ScopeKind};
use tempfile::NamedTempFile;

use crate::support::{
    crawl::{Setup, broken_invariants, column, number, urls},
    db::TestDb,
    program::{ended, run},
    site::Site,
};

fn list(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn with_list(file: &NamedTempFile) -> Setup {
    let mut setup = Setup::quick();
    setup.crawl.block_lists = vec![file.path().to_owned()];
    setup
}

/// Whose robots.txt and pages were asked for: host and target.
fn asked(site: &Site) -> Vec<String> {
    let requests = site.requests();
    let mut all: Vec<String> = requests
        .iter()
        .map(|request| {
            let host = request.header("host").split(':').next().unwrap_or_default();
            format!("{host}{}", request.target)
        })
        .collect();
    all.sort_unstable();
    all
}

#[tokio::test]
async fn what_is_blocked_is_neither_asked_for_nor_asked_for_its_robots_by_anybody() {
    let site = Site::builder()
        .page(
            "/",
            "<a href=/private>1</a><a href=/private/x>2</a><a href=/privately>3</a><a id=out>",
        )
        .answer("/away", |request| {
            let port = request.headers()["host"]
                .to_str()
                .unwrap_or_default()
                .rsplit(':')
                .next()
                .unwrap_or_default()
                .to_owned();
            axum::response::IntoResponse::into_response((
                axum::http::StatusCode::FOUND,
                [("location", format!("http://out.site.test:{port}/"))],
            ))
        })
        .page("/privately", "<a href=/away>a</a>")
        .start()
        .await;
    let port = site.address().port();
    let file = list(&format!(
        "# who asked us to stay away\nout.site.test # by mail\n\nnot an entry\nhttps://in.site.test:{port}/private\n"
    ));
    let db = TestDb::new().await;
    let mut first = with_list(&file);
    first.scope = ScopeKind::Site;
    for name in ["in", "out"] {
        first
            .fetch
            .resolve
            .push(format!("{name}.site.test:127.0.0.1").parse().unwrap());
    }
    let of = |name: &str, path: &str| site.url_at(&format!("{name}.site.test"), path);
    first.crawl(&db, &[of("in", "/")]).await;
    let mut meant = vec![
        "in.site.test/",
        "in.site.test/away",
        "in.site.test/privately",
        "in.site.test/robots.txt",
    ];
    assert_eq!(asked(&site), meant);
    assert_eq!(
        column(
            &db.pool,
            "select reason from tasks where reason is not null"
        )
        .await,
        ["redirect_blocked"]
    );
    assert_eq!(
        column(
            &db.pool,
            "select entry, line from block_entries order by line"
        )
        .await,
        [
            "out.site.test,2".to_owned(),
            format!("in.site.test:{port}/private,5")
        ]
    );

    // Another process, which has no list, and seeds that are on it.
    let mut second = Setup::quick();
    second.scope = ScopeKind::Site;
    second.fetch.resolve = first.fetch.resolve.clone();
    second
        .crawl(
            &db,
            &[of("out", "/x"), of("in", "/private/y"), of("in", "/z")],
        )
        .await;
    meant.push("in.site.test/z");
    meant.sort_unstable();
    let mut all = asked(&site);
    all.dedup();
    assert_eq!(all, meant);
    assert_eq!(
        column(&db.pool, "select detail from tasks where status = 'excluded' and reason = 'blocked' order by detail").await,
        [format!("in.site.test:{port}/private"), "out.site.test".to_owned()]
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());

    sqlx::query("insert into settings (key, value) values ('crawl.scope', '\"site\"')")
        .execute(&db.pool)
        .await
        .unwrap();
    let output = run(&db, &["explain", "--json", &of("out", "/new")]).await;
    let (code, said) = ended(&output);
    assert_eq!(code, 0, "{said}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let blocked = found["scope"]["blocked"].as_str().unwrap_or_default();
    assert!(
        blocked.starts_with("out.site.test (") && blocked.ends_with(" line 2)"),
        "{found}"
    );
}

#[tokio::test]
async fn a_list_that_changes_ends_what_is_open_in_all_processes_within_seconds() {
    let links: String = (0..400).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let site = Site::builder()
        .page("/", links)
        .otherwise(|request| async move {
            axum::response::IntoResponse::into_response(request.uri().to_string())
        })
        .start()
        .await;
    let file = list("# nobody yet\n");
    let db = TestDb::new().await;
    let mut having = with_list(&file);
    let mut other = Setup::quick();
    for setup in [&mut having, &mut other] {
        // 400 of them would last for two minutes.
        setup.frontier.delay = Duration::from_millis(300);
        setup.crawl.per_host = 1;
    }
    let (having, other) = (having.join(&db).await, other.join(&db).await);
    other.add_seeds(&urls(&[site.url("/")])).await.unwrap();
    let change = async {
        site.wait_for(|log| log.len() > 4).await;
        std::fs::write(file.path(), "*.0.0.1\n127.0.0.1\n").unwrap();
    };
    let (one, two, ()) = tokio::join!(
        having.run(Stop::default()),
        other.run(Stop::default()),
        change
    );
    one.unwrap();
    two.unwrap();
    having.leave().await;
    other.leave().await;
    assert!(site.requests().len() < 200, "{}", site.requests().len());
    assert_eq!(
        column(
            &db.pool,
            "select distinct detail from tasks where status = 'excluded' and reason = 'blocked'"
        )
        .await,
        ["127.0.0.1"]
    );
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from tasks where status in ('new', 'claimed', 'failed')"
        )
        .await,
        0
    );
    assert_eq!(number(&db.pool, "select count(*) from tasks").await, 401);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_the_list_has_no_more_may_be_found_again_and_brings_nothing_back_by_itself() {
    let site = Site::builder()
        .page("/", "<a href=/a>a</a>")
        .page("/a", "")
        .page("/more", "<a href=/a>a</a><a href=/b>b</a>")
        .page("/b", "")
        .start()
        .await;
    let (a, b) = (site.url("/a"), site.url("/b"));
    let file = list(&format!("{a}\n{b}\n"));
    let db = TestDb::new().await;
    let crawl = with_list(&file).join(&db).await;
    crawl
        .add_seeds(&urls(&[site.url("/"), b.clone()]))
        .await
        .unwrap();
    crawl.run(Stop::default()).await.unwrap();
    crawl.leave().await;
    assert_eq!(site.count("/a") + site.count("/b"), 0);

    // Another list that has it keeps it.
    let frontier = Frontier::new(db.pool.clone(), Default::default());
    let second = frontier.block_list("elsewhere:/list").await.unwrap();
    let entry = a.trim_start_matches("http://").to_owned();
    frontier
        .block(second, std::slice::from_ref(&entry), &[1])
        .await
        .unwrap();
    std::fs::write(file.path(), "").unwrap();
    with_list(&file).crawl(&db, &[site.url("/more")]).await;
    assert_eq!((site.count("/a"), site.count("/b")), (0, 0));
    assert_eq!(
        number(
            &db.pool,
            "select count(*) from block_entries where gone_at is null"
        )
        .await,
        1
    );
    assert_eq!(
        column(
            &db.pool,
            "select reason from tasks where status = 'excluded'"
        )
        .await,
        ["blocked"]
    );

    frontier.unblock(second, &[entry]).await.unwrap();
    with_list(&file).crawl(&db, &[site.url("/more?2")]).await;
    // The seed that was excluded stays so until an operator says otherwise; the link was never a task.
    assert_eq!((site.count("/a"), site.count("/b")), (1, 0));
}

#[tokio::test]
async fn a_list_that_two_processes_make_at_once_has_one_number() {
    let db = TestDb::new().await;
    let frontier = Frontier::new(db.pool.clone(), Default::default());
    let mut other = db.pool.begin().await.unwrap();
    let made: i32 =
        sqlx::query_scalar("insert into block_lists (name) values ('machine:/list') returning id")
            .fetch_one(&mut *other)
            .await
            .unwrap();
    let asked = tokio::spawn(async move { frontier.block_list("machine:/list").await });
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    while number(&db.pool, waiting).await == 0 {
        tokio::task::yield_now().await;
    }
    other.commit().await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap(), made);
}

#[tokio::test]
async fn a_list_that_is_not_there_begins_no_crawl() {
    let db = TestDb::new().await;
    let arguments = [
        "crawl",
        "http://127.0.0.1:9/",
        "--block-list",
        "/nowhere/optout.txt",
    ];
    let (code, said) = ended(&run(&db, &arguments).await);
    assert_eq!(code, 1);
    assert!(
        said.contains("cannot read the block list /nowhere/optout.txt"),
        "{said}"
    );
}
