//! Seeds with data: what their columns come to.

use std::io::Write as _;

use tempfile::NamedTempFile;

use crate::support::{
    crawl::{broken_invariants, column},
    db::TestDb,
    program::{ended, run},
    site::Site,
};

fn file(extension: &str, text: &str) -> NamedTempFile {
    let mut file = tempfile::Builder::new()
        .suffix(extension)
        .tempfile()
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

async fn crawl(db: &TestDb, arguments: &[&str]) -> String {
    let mut all = vec!["crawl", "--delay", "0s", "--contact", "me@example.org"];
    all.extend(arguments);
    let (code, said) = ended(&run(db, &all).await);
    assert_eq!(code, 0, "{said}");
    said
}

#[tokio::test]
async fn a_label_is_carried_to_all_that_its_seed_leads_to() {
    let site = Site::builder()
        .page("/a/", "<a href=/a/1>1</a><a href=/both>b</a>")
        .redirect("/a/1", 302, "/a/2")
        .page("/a/2", "<a href=/a/3>3</a>")
        .page("/a/3", "")
        .page("/b/", "<a href=/b/1>1</a>")
        .page("/b/1", "")
        .page("/both", "")
        .page("/plain", "<a href=/plain/1>1</a>")
        .page("/plain/1", "")
        .start()
        .await;
    let db = TestDb::new().await;
    let text = format!(
        "label,url,priority,depth\nred,{},-1,\nblue,{},0,19\nno seed,mailto:me@example.org,,\n,{},1,\n",
        site.url("/a/"),
        site.url("/b/"),
        site.url("/plain")
    );
    let seeds = file(".csv", &text);
    let path = seeds.path().display().to_string();
    let said = crawl(&db, &[&path]).await;
    assert!(said.contains(&format!("{path}:4: ")), "{said}");
    let tasks = "select regexp_replace(url, 'http://[^/]+', ''), coalesce(label, '-'), priority, depth from tasks order by 1";
    assert_eq!(
        column(&db.pool, tasks).await,
        [
            "/a/,red,-1,0",
            // Breadth-first: a link comes one later than its page.
            "/a/1,red,0,1",
            "/a/2,red,0,1",
            "/a/3,red,1,2",
            "/b/,blue,0,19",
            "/b/1,blue,1,20",
            "/both,red,0,1",
            "/plain,-,1,0",
            "/plain/1,-,2,1",
        ]
    );
    let asked = site.targets();
    let place = |target: &str| asked.iter().position(|asked| asked == target).unwrap();
    assert!(place("/a/") < place("/b/") && place("/b/") < place("/plain"));
    let output = run(&db, &["explain", "--json", &site.url("/a/3")]).await;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["task"]["label"], "red");
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_seed_has_a_scope_of_its_own_which_outlives_a_change_of_the_crawls() {
    let links = "<a href=/docs/1>1</a><a href=/blog/1>2</a><a href=/>3</a>";
    let pages = || {
        Site::builder()
            .page("/docs/", links)
            .page("/docs/1", links)
            .page("/blog/1", links)
            .page("/", links)
    };
    let (narrow, wide) = (pages().start().await, pages().start().await);
    let db = TestDb::new().await;
    let seeds = file(
        ".seeds",
        &format!(
            "{{\"url\": \"{}\", \"scope\": \"prefix\"}}\n{{\"url\": \"{}\"}}\n",
            narrow.url("/docs/"),
            wide.url("/docs/")
        ),
    );
    let path = seeds.path().display().to_string();
    crawl(&db, &[&path, "--seed-format", "jsonl"]).await;
    let sorted = |site: &Site| {
        let mut targets = site.targets();
        targets.sort_unstable();
        targets
    };
    assert_eq!(sorted(&narrow), ["/docs/", "/docs/1", "/robots.txt"]);
    assert_eq!(
        sorted(&wide),
        ["/", "/blog/1", "/docs/", "/docs/1", "/robots.txt"]
    );
    let output = run(&db, &["explain", &narrow.url("/docs/1")]).await;
    let said = String::from_utf8(output.stdout).unwrap();
    let own = format!("prefix {} (seed)", narrow.url("/docs/"));
    assert!(
        said.contains(&own) && said.contains("belongs to the crawl"),
        "{said}"
    );

    let (code, said) = ended(&run(&db, &["config", "set", "crawl.scope", "prefix"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        column(
            &db.pool,
            "select replace(rule, ' ', '=') from scope_rules order by 1"
        )
        .await,
        [
            wide.url("/docs/"),
            format!("prefix={}", narrow.url("/docs/"))
        ]
    );
    let (code, said) = ended(&run(&db, &["config", "set", "crawl.scope", "host"]).await);
    assert_eq!(code, 0, "{said}");
    let mut rules = column(&db.pool, "select replace(rule, ' ', '=') from scope_rules").await;
    rules.sort_unstable();
    let mut meant = [
        wide.address().to_string(),
        format!("prefix={}", narrow.url("/docs/")),
    ];
    meant.sort_unstable();
    assert_eq!(rules, meant);
}

#[tokio::test]
async fn a_file_whose_columns_are_unknown_begins_no_crawl() {
    let db = TestDb::new().await;
    let seeds = file(".csv", "url,weight\nhttp://127.0.0.1:9/,3\n");
    let path = seeds.path().display().to_string();
    let (code, said) = ended(&run(&db, &["crawl", &path]).await);
    assert_eq!(code, 1);
    assert!(said.contains(":1: unknown columns: weight"), "{said}");
    assert!(said.contains("priority, depth, label, scope"), "{said}");
}
