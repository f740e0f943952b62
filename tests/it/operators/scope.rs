//! `pgcrawl scope` and `pgcrawl traps`: rules that change while tasks are there.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use axum::response::{Html, IntoResponse as _};
use pgcrawl::frontier::{HostId, operate::ExcludedByShape};
use serde_json::{Value, json};
use sqlx::Executor as _;
use uuid::Uuid;

use super::{Ground, until};
use crate::support::{
    db::TestDb,
    program::{ended, pgcrawl, run},
    site::Site,
};

async fn printed(ground: &Ground, arguments: &[&str]) -> String {
    let (code, said) = (run(&ground.db, arguments).await, arguments);
    let (status, complaint) = ended(&code);
    assert_eq!(status, 0, "{said:?}: {complaint}");
    String::from_utf8(code.stdout).unwrap()
}

/// A seed, and five tasks that it led to.
async fn found() -> Ground {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/"]).await;
    let sql = "insert into scope_rules (rule, host, source) values ('a.example', 'a.example', 'seed');
               insert into tasks (host_id, url_digest, url, depth, via)
               select 1, md5(path)::uuid, 'http://a.example' || path, depth, 1
               from (values ('/x', 1), ('/cal/1', 1), ('/cal/2', 2), ('/cal/today', 1), ('/deep', 9)) as t (path, depth);
               insert into settings (key, value) values ('crawl.scope', '\"host\"');
               update worker_counts set discovered = discovered + 5";
    ground.db.pool.execute(sqlx::raw_sql(sql)).await.unwrap();
    ground
}

const OPEN: &str = "select right(url, -16) from tasks where status = 'new' order by 1";

#[tokio::test]
async fn a_rule_is_added_and_removed_with_what_follows_for_the_tasks_that_are_there() {
    let ground = found().await;
    let text = printed(
        &ground,
        &["scope", "add", "exclude", "glob", "/cal/*", "--dry-run"],
    )
    .await;
    assert_eq!(
        text,
        "3 tasks would be excluded, 0 tasks would be brought back\n"
    );
    assert_eq!(ground.column(OPEN).await.len(), 6);
    assert_eq!(
        printed(&ground, &["scope", "show"]).await,
        "0  include host of the seeds, 20 links deep, 0 outside\n"
    );

    let text = printed(&ground, &["scope", "add", "exclude glob /cal/*"]).await;
    assert_eq!(text, "3 tasks excluded, 0 tasks brought back\n");
    assert_eq!(ground.column(OPEN).await, ["/", "/deep", "/x"]);
    assert_eq!(
        ground
            .column("select distinct reason, detail from tasks where status = 'excluded'")
            .await,
        ["scope_rule,\"exclude glob /cal/*\""]
    );

    // The last word.
    let text = printed(
        &ground,
        &["scope", "add", "include glob /cal/today", "--json"],
    )
    .await;
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({ "excluded": 0, "brought_back": 1, "dry_run": false })
    );
    let text = printed(&ground, &["scope", "add", "exclude depth >5"]).await;
    assert_eq!(text, "1 task excluded, 0 tasks brought back\n");
    assert_eq!(
        printed(&ground, &["scope", "show"]).await,
        "0  include host of the seeds, 20 links deep, 0 outside\n1  exclude glob /cal/*\n2  include glob /cal/today\n3  exclude depth >5\n"
    );
    assert_eq!(
        printed(&ground, &["scope", "check", "http://a.example/cal/3"]).await,
        "does not belong to the crawl: scope_rule; exclude glob /cal/*\n"
    );
    let text = printed(&ground, &["explain", "http://a.example/cal/1"]).await;
    assert!(
        text.contains("decided by") && text.contains("exclude glob /cal/*"),
        "{text}"
    );

    let text = printed(&ground, &["scope", "remove", "1"]).await;
    assert_eq!(text, "0 tasks excluded, 2 tasks brought back\n");
    let text = printed(&ground, &["scope", "set"]).await;
    assert_eq!(text, "0 tasks excluded, 1 task brought back\n");
    assert_eq!(ground.column(OPEN).await.len(), 6);
    // Each change is a version of the settings, which running processes follow.
    assert_eq!(ground.number("select settings_version from crawl").await, 5);
    ground.assert_sound().await;
}

#[tokio::test]
async fn a_seed_stays_whatever_rules_are_added_and_what_an_operator_excluded_stays_out() {
    let ground = found().await;
    printed(&ground, &["exclude", "--where", "url like '%/x'"]).await;
    let text = printed(&ground, &["scope", "add", "exclude glob /**"]).await;
    assert_eq!(text, "4 tasks excluded, 0 tasks brought back\n");
    assert_eq!(ground.column(OPEN).await, ["/"]);
    let text = printed(&ground, &["scope", "remove", "exclude glob /**"]).await;
    assert_eq!(text, "0 tasks excluded, 4 tasks brought back\n");
    assert_eq!(
        ground
            .column("select reason from tasks where status = 'excluded'")
            .await,
        ["operator"]
    );
    ground.assert_sound().await;
}

#[tokio::test]
async fn another_depth_is_applied_to_the_tasks_that_are_there() {
    let ground = found().await;
    printed(&ground, &["config", "set", "crawl.max_depth", "1"]).await;
    let text = printed(&ground, &["scope", "apply"]).await;
    assert_eq!(text, "2 tasks excluded, 0 tasks brought back\n");
    printed(&ground, &["config", "set", "crawl.max_depth", "2"]).await;
    let text = printed(&ground, &["scope", "apply"]).await;
    assert_eq!(text, "0 tasks excluded, 1 task brought back\n");
    ground.assert_sound().await;
}

#[tokio::test]
async fn assets_and_sitemaps_that_lie_elsewhere_stay_where_the_rules_do_not_speak_of_them() {
    let ground = found().await;
    ground.seed(&["http://cdn.example/"]).await;
    let sql = "insert into tasks (host_id, url_digest, url, depth, via, kind)
               select 2, md5(url)::uuid, 'http://' || url, 30, 1, kind::task_kind
               from (values ('cdn.example/a.png', 'asset'), ('cdn.example/b.gif', 'asset'), ('cdn.example/c', 'page'),
                            ('cdn.example/s.xml', 'sitemap')) as t (url, kind);
               update worker_counts set discovered = discovered + 4";
    ground.db.pool.execute(sqlx::raw_sql(sql)).await.unwrap();
    printed(&ground, &["scope", "add", "exclude glob *.gif"]).await;
    assert_eq!(
        ground
            .column("select right(url, 5), kind, status, reason from tasks where host_id = 2 and via is not null order by 1")
            .await,
        [
            "a.png,asset,new,",
            "b.gif,asset,excluded,scope_rule",
            "ple/c,page,excluded,out_of_scope",
            "s.xml,sitemap,new,"
        ]
    );
    ground.assert_sound().await;
}

/// A seed may have a depth of its own.
#[tokio::test]
async fn another_scope_is_that_of_the_seeds_wherever_they_were_put() {
    let ground = found().await;
    let sql = "update tasks set depth = 3 where via is null";
    ground.db.pool.execute(sqlx::raw_sql(sql)).await.unwrap();
    printed(&ground, &["config", "set", "crawl.scope", "site"]).await;
    assert_eq!(
        ground.column("select rule, source from scope_rules").await,
        ["a.example,seed"]
    );
    let text = printed(&ground, &["scope", "apply", "--dry-run"]).await;
    assert_eq!(
        text,
        "0 tasks would be excluded, 0 tasks would be brought back\n"
    );
}

#[tokio::test]
async fn what_cannot_be_a_rule_is_refused_and_nothing_changes() {
    let ground = found().await;
    for (arguments, code, words) in [
        (
            &["scope", "add", "exclude", "cal"][..],
            1,
            "none of host, site",
        ),
        (&["scope", "add", "exclude regex a(b"], 1, "unclosed group"),
        (&["scope", "set", "nothing"], 2, "begins with"),
        (&["scope", "remove", "1"], 1, "no rule \"1\""),
        (&["traps", "unpark", "1"], 1, "no parked shape"),
    ] {
        let (status, said) = ended(&run(&ground.db, arguments).await);
        assert_eq!(status, code, "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    assert_eq!(ground.number("select settings_version from crawl").await, 0);
}

#[tokio::test]
async fn a_running_crawl_follows_a_rule_and_fetches_nothing_that_it_leaves_out() {
    let all: String = (0..300).map(|n| format!("<a href=/no/{n}>n</a>")).collect();
    let site = Site::builder()
        .otherwise(move |request| {
            let page = match request.uri().path() {
                "/" => all.clone(),
                path => path.to_owned(),
            };
            async move { Html(page).into_response() }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    let crawl = pgcrawl(&db, &["crawl", &seed, "--delay", "60ms"])
        .spawn()
        .unwrap();
    site.wait_for(|log| log.len() > 5).await;
    let (code, said) = ended(&run(&db, &["scope", "add", "exclude glob /no/**"]).await);
    assert_eq!(code, 0, "{said}");
    let (code, said) = ended(&crawl.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    let asked = site.targets().len();
    assert!(asked < 300, "{asked} of 302 requests");
    let left: i64 = sqlx::query_scalar("select count(*) from tasks where reason = 'scope_rule'")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert!(
        left as usize + asked >= 300,
        "{left} left out, {asked} asked"
    );
}

#[tokio::test]
async fn what_a_visit_under_way_finds_is_judged_by_the_rule_that_came_meanwhile() {
    let (go_on, may_go_on) = tokio::sync::watch::channel(false);
    let site = Site::builder()
        .otherwise(move |request| {
            let mut may_go_on = may_go_on.clone();
            async move {
                if request.uri().path() == "/" {
                    let _ = may_go_on.wait_for(|may| *may).await;
                }
                Html("<a href=/no/1>1</a><a href=/no/2>2</a><a href=/yes>y</a>").into_response()
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let seed = site.url("/");
    let crawl = pgcrawl(&db, &["crawl", &seed, "--delay", "1ms"])
        .spawn()
        .unwrap();
    site.wait_for(|log| log.iter().any(|request| request.target == "/"))
        .await;
    let output = run(&db, &["scope", "add", "exclude glob /no/**"]).await;
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "0 tasks excluded, 0 tasks brought back\n"
    );
    let _ = go_on.send(true);
    let (code, said) = ended(&crawl.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    let mut targets = site.targets();
    targets.sort();
    assert_eq!(targets, ["/", "/robots.txt", "/yes"]);
}

/// Four hundred days of which all pages say the same, linked on the front page. From the two hundredth request on the site waits to be told to
/// go on: nobody waits for the detector.
async fn calendar() -> (Site, tokio::sync::watch::Sender<bool>) {
    let all: String = (0..400)
        .map(|n| format!("<a href=/cal/{n}>n</a>"))
        .collect();
    let (go_on, may_go_on) = tokio::sync::watch::channel(false);
    let asked = AtomicUsize::new(0);
    let site = Site::builder()
        .otherwise(move |request| {
            let (all, mut may_go_on) = (all.clone(), may_go_on.clone());
            let before = asked.fetch_add(1, Ordering::Relaxed);
            async move {
                let path = request.uri().path().to_owned();
                if before >= 200 {
                    let _ = may_go_on.wait_for(|may| *may).await;
                }
                Html(if path == "/" {
                    all
                } else {
                    "nothing on".to_owned()
                })
                .into_response()
            }
        })
        .start()
        .await;
    (site, go_on)
}

#[tokio::test]
async fn a_running_crawl_visits_a_shape_again_from_the_moment_that_it_is_unparked() {
    let (site, go_on) = calendar().await;
    let may_go_on = go_on.subscribe();
    // The crawl has something to do until then.
    let slow = Site::builder()
        .otherwise(move |_| {
            let mut may_go_on = may_go_on.clone();
            async move {
                let _ = may_go_on.wait_for(|may| *may).await;
                Html("").into_response()
            }
        })
        .start()
        .await;
    let db = TestDb::new().await;
    let (seed, other) = (site.url("/"), slow.url("/"));
    let arguments = ["crawl", &seed, &other, "--delay", "15ms", "--ignore-robots"];
    let crawl = pgcrawl(&db, &arguments).spawn().unwrap();
    until(
        &db,
        "select count(*) from tasks where reason = 'trap_shape'",
    )
    .await;
    let (code, said) = ended(&run(&db, &["traps", "unpark", "1"]).await);
    assert_eq!(code, 0, "{said}");
    let _ = go_on.send(true);
    let (code, said) = ended(&crawl.wait_with_output().await.unwrap());
    assert_eq!(code, 0, "{said}");
    assert_eq!(site.targets().len(), 401);
}

#[tokio::test]
async fn a_shape_leaves_out_pages_that_links_led_to_and_neither_seeds_nor_sitemaps() {
    let ground = found().await;
    let sql = "insert into tasks (host_id, url_digest, url, depth, via, kind)
               values (1, md5('s')::uuid, 'http://a.example/cal/3', 1, 1, 'sitemap'),
                      (1, md5('t')::uuid, 'http://a.example/cal/4', 0, null, 'page');
               insert into pages (task_id, claim_version, http_status, digest, fetched_at)
               select id, 1, 200, decode(repeat('00', 32), 'hex'), now()
               from tasks
               where url like '%/cal/_'";
    ground.db.pool.execute(sqlx::raw_sql(sql)).await.unwrap();
    let looked = ground
        .operator
        .host_tasks_after(HostId(1), Uuid::nil(), ExcludedByShape::No)
        .await;
    let mut urls: Vec<String> = looked.unwrap().1.into_iter().map(|(_, url)| url).collect();
    urls.sort();
    let links = ["/cal/1", "/cal/2", "/cal/today", "/deep", "/x"];
    assert_eq!(urls, links.map(|path| format!("http://a.example{path}")));
    // As first visits have it.
    ground.typed("update tasks set claim_version = 1").await;
    let pages = ground.frontier().shape_pages(100, Duration::ZERO).await;
    let looked_at = pages.unwrap();
    let counted = looked_at.iter().filter(|page| page.digest.is_some());
    let mut urls: Vec<&str> = counted.map(|page| &page.url[16..]).collect();
    urls.sort_unstable();
    assert_eq!(
        (looked_at.len(), urls),
        (4, vec!["/cal/1", "/cal/2", "/cal/4"])
    );
}

#[tokio::test]
async fn a_seed_that_a_budget_left_out_comes_back_whatever_the_rules_say() {
    let ground = found().await;
    printed(&ground, &["scope", "add", "exclude glob /"]).await;
    ground
        .typed("update tasks set status = 'excluded', reason = 'host_pages', detail = 'x' where via is null")
        .await;
    let text = printed(&ground, &["scope", "apply"]).await;
    assert_eq!(text, "0 tasks excluded, 1 task brought back\n");
    assert_eq!(ground.column(OPEN).await.len(), 6);
    ground.assert_sound().await;
}

#[tokio::test]
async fn a_shape_that_is_unparked_is_visited_whatever_its_pages_bring() {
    let (site, park) = calendar().await;
    let db = TestDb::new().await;
    let looking = tokio::spawn({
        let pool = db.pool.clone();
        async move {
            let sql = "select count(*) from trap_shapes";
            while sqlx::query_scalar::<_, i64>(sql)
                .fetch_one(&pool)
                .await
                .unwrap()
                == 0
            {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            let _ = park.send(true);
        }
    });
    let seed = site.url("/");
    let arguments = ["crawl", &seed, "--delay", "15ms", "--ignore-robots"];
    let (code, said) = ended(&run(&db, &arguments).await);
    assert_eq!(code, 0, "{said}");
    looking.await.unwrap();
    let asked = site.targets().len();
    assert!(asked < 401, "{asked}");
    let output = run(&db, &["traps", "show"]).await;
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("/cal/#") && shown.contains("  parked  "),
        "{shown}"
    );
    let rest = 401 - asked;
    let (said, dry) = (
        format!("/cal/#: {rest} tasks brought back\n"),
        format!("/cal/#: {rest} tasks would be brought back\n"),
    );
    for (arguments, expected) in [
        (&["traps", "unpark", "1", "--dry-run"][..], dry),
        (&["traps", "unpark", "1"], said),
    ] {
        let output = run(&db, arguments).await;
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
    // A process that has not heard of it yet may leave out one more: said again, that one comes back, too.
    let late = "update tasks set status = 'excluded', reason = 'trap_shape', detail = '/cal/#'
                where id = (select max(id) from tasks where status = 'new')";
    sqlx::query(late).execute(&db.pool).await.unwrap();
    let output = run(&db, &["traps", "unpark", "1"]).await;
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "/cal/#: 1 task brought back\n"
    );
    let (code, said) = ended(&run(&db, &["crawl", "--delay", "15ms"]).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(site.targets().len(), 401);
    let kept = "select count(*) from trap_shapes where kept_at is not null and parked_at is null";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(&db.pool).await.unwrap();
    assert_eq!(kept, 1);
}
