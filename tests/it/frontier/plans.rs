//! No statement of the hot path reads a table whole: their plans, generic ones, in an empty database and in one that has grown without ever
//! being analysed.
//!
//! The plans are asked for under the session settings of the crawl. With sequential scans discouraged a whole table is read through an index,
//! so the shape of the index scans is looked at as well. Nor does one compare each row of a batch with each: what an array holds is taken for ten
//! elements when a plan is made.

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};

use super::Ground;

/// The statements of the crawl's course. Left out are those of its begin and end, which may look at all of a small table.
const STATEMENTS: [(&str, &str); 51] = [
    (
        "blocks_after",
        include_str!("../../../src/frontier/sql/blocks_after.sql"),
    ),
    (
        "hosts_with_new",
        include_str!("../../../src/frontier/sql/hosts_with_new.sql"),
    ),
    (
        "new_tasks_of",
        include_str!("../../../src/frontier/sql/new_tasks_of.sql"),
    ),
    (
        "enqueue_found",
        include_str!("../../../src/frontier/sql/enqueue_found.sql"),
    ),
    (
        "note_entries",
        include_str!("../../../src/frontier/sql/note_entries.sql"),
    ),
    (
        "name_sitemaps",
        include_str!("../../../src/frontier/sql/name_sitemaps.sql"),
    ),
    (
        "raise_sitemaps",
        include_str!("../../../src/frontier/sql/raise_sitemaps.sql"),
    ),
    (
        "known_tasks",
        include_str!("../../../src/frontier/sql/known_tasks.sql"),
    ),
    (
        "prefer_tasks",
        include_str!("../../../src/frontier/sql/prefer_tasks.sql"),
    ),
    (
        "sitemap_read",
        include_str!("../../../src/frontier/sql/sitemap_read.sql"),
    ),
    (
        "sitemap_chain",
        include_str!("../../../src/frontier/sql/sitemap_chain.sql"),
    ),
    (
        "sitemaps_of",
        include_str!("../../../src/frontier/sql/sitemaps_of.sql"),
    ),
    (
        "count_links",
        include_str!("../../../src/frontier/sql/count_links.sql"),
    ),
    ("claim", include_str!("../../../src/frontier/sql/claim.sql")),
    (
        "finish",
        include_str!("../../../src/frontier/sql/finish.sql"),
    ),
    (
        "validators",
        include_str!("../../../src/frontier/sql/validators.sql"),
    ),
    (
        "enqueue_hosts",
        include_str!("../../../src/frontier/sql/enqueue_hosts.sql"),
    ),
    (
        "host_ids",
        include_str!("../../../src/frontier/sql/host_ids.sql"),
    ),
    (
        "enqueue_tasks",
        include_str!("../../../src/frontier/sql/enqueue_tasks.sql"),
    ),
    (
        "release",
        include_str!("../../../src/frontier/sql/release.sql"),
    ),
    (
        "give_back",
        include_str!("../../../src/frontier/sql/give_back.sql"),
    ),
    ("stray", include_str!("../../../src/frontier/sql/stray.sql")),
    (
        "recycle_expired",
        include_str!("../../../src/frontier/sql/recycle_expired.sql"),
    ),
    (
        "recycle_dead",
        include_str!("../../../src/frontier/sql/recycle_dead.sql"),
    ),
    (
        "free_hosts",
        include_str!("../../../src/frontier/sql/free_hosts.sql"),
    ),
    ("clear", include_str!("../../../src/frontier/sql/clear.sql")),
    (
        "promote",
        include_str!("../../../src/frontier/sql/promote.sql"),
    ),
    (
        "next_ready",
        include_str!("../../../src/frontier/sql/next_ready.sql"),
    ),
    (
        "finished",
        include_str!("../../../src/frontier/sql/finished.sql"),
    ),
    (
        "has_tasks",
        include_str!("../../../src/frontier/sql/has_tasks.sql"),
    ),
    (
        "parked_hosts",
        include_str!("../../../src/frontier/sql/parked_hosts.sql"),
    ),
    (
        "host_answered",
        include_str!("../../../src/frontier/sql/host_answered.sql"),
    ),
    (
        "host_failed",
        include_str!("../../../src/frontier/sql/host_failed.sql"),
    ),
    ("defer", include_str!("../../../src/frontier/sql/defer.sql")),
    (
        "robots_of",
        include_str!("../../../src/frontier/sql/robots_of.sql"),
    ),
    (
        "store_robots",
        include_str!("../../../src/frontier/sql/store_robots.sql"),
    ),
    (
        "robots_failed",
        include_str!("../../../src/frontier/sql/robots_failed.sql"),
    ),
    (
        "reopen_tasks",
        include_str!("../../../src/frontier/sql/reopen_tasks.sql"),
    ),
    (
        "exclude_tasks",
        include_str!("../../../src/frontier/sql/exclude_tasks.sql"),
    ),
    (
        "reprioritise_tasks",
        include_str!("../../../src/frontier/sql/reprioritise_tasks.sql"),
    ),
    ("spent", include_str!("../../../src/frontier/sql/spent.sql")),
    (
        "host_visits",
        include_str!("../../../src/frontier/sql/host_visits.sql"),
    ),
    (
        "host_urls",
        include_str!("../../../src/frontier/sql/host_urls.sql"),
    ),
    (
        "close_host",
        include_str!("../../../src/frontier/sql/close_host.sql"),
    ),
    (
        "judge_tasks",
        include_str!("../../../src/frontier/sql/judge_tasks.sql"),
    ),
    (
        "judged_after",
        include_str!("../../../src/frontier/sql/judged_after.sql"),
    ),
    (
        "bring_back",
        include_str!("../../../src/frontier/sql/bring_back.sql"),
    ),
    (
        "host_tasks_after",
        include_str!("../../../src/frontier/sql/host_tasks_after.sql"),
    ),
    (
        "readmit",
        include_str!("../../../src/frontier/sql/readmit.sql"),
    ),
    (
        "shapes_of",
        include_str!("../../../src/frontier/sql/shapes_of.sql"),
    ),
    ("way", include_str!("../../../src/frontier/sql/way.sql")),
];

/// What people and `pgcrawl status` ask again and again, and a step of an operator's walk (`operate/walk.rs`).
const VIEWS: [(&str, &str); 10] = [
    (
        "a step of a walk",
        "with looked as materialized (select id, status, available_at, priority from tasks where id > $1::bigint order by id limit $2::int) select (select max(id) from looked), array_agg(task_id order by task_id) from (select * from visits where task_id = any (array(select id from looked where status = 'failed')) offset 0) visits where (http_status = 503 and authority = 'http://a.example')",
    ),
    ("progress", "select * from progress"),
    ("queue_health", "select * from queue_health"),
    ("recent_pages", "select * from recent_pages"),
    ("failures", "select * from failures"),
    (
        "host_progress",
        "select * from host_progress where authority = $1",
    ),
    (
        "who links to a page",
        "select v.url, l.anchor from links l join lateral (select url from tasks where id = l.from_task limit 1) v on true where l.to_task = $1",
    ),
    (
        "where a page links to",
        "select coalesce(t.url, l.to_url) from links l left join lateral (select url from tasks where id = l.to_task limit 1) t on true where l.from_task = $1",
    ),
    (
        "pages with the payload of a page",
        "select task_id from pages where digest = $1",
    ),
    (
        "a host's tasks",
        "select status, count(*) from tasks where host_id = $1 group by status",
    ),
];

/// The tables that grow.
const LARGE: [&str; 5] = ["tasks", "hosts", "pages", "bodies", "links"];

/// Indexes that hold but a part of a table: what is open, not what is done.
const PARTIAL: [&str; 5] = [
    "hosts_ready",
    "tasks_new",
    "tasks_claimed",
    "tasks_due",
    "tasks_failed",
];

/// Statements that walk all of what is open, since that is what they ask for.
const WALKS: [(&str, &str); 4] = [
    ("spent", "tasks_claimed"),
    ("clear", "tasks_claimed"),
    ("stray", "tasks_claimed"),
    ("failures", "tasks_failed"),
];

/// Parts of statements that are one row.
const SINGLE: [&str; 1] = ["old"];

/// Says what a plan does that it must not.
fn complaints(name: &str, plan: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(plan, false, false, &mut found);
    found.retain(|complaint| {
        !WALKS.contains(&(name, complaint.split(':').next().unwrap_or_default()))
    });
    found
}

/// `limited`: a limit above ends the node early. `sorted`: a sort above wants all of its rows first.
fn walk(node: &Value, limited: bool, sorted: bool, found: &mut Vec<String>) {
    let text = |key: &str| node[key].as_str().unwrap_or_default();
    let (kind, table) = (text("Node Type"), text("Relation Name"));
    // `exists` and `min` are content with a row; a CTE is not.
    let is_probe = matches!(text("Parent Relationship"), "InitPlan" | "SubPlan")
        && !text("Subplan Name").starts_with("CTE");
    let (limited, sorted) = if is_probe {
        (true, false)
    } else {
        (limited, sorted)
    };
    if LARGE.contains(&table) && kind != "ModifyTable" {
        let index = text("Index Name");
        let by_index = matches!(kind, "Index Scan" | "Index Only Scan");
        // Rows by their keys: as many as the statement names.
        let looks_up = by_index && text("Index Cond").contains(" = ") || kind == "Tid Scan";
        let is_partial = PARTIAL.contains(&index);
        let ends_early = by_index && limited && !sorted;
        if !looks_up && !(ends_early && (is_partial || node.get("Filter").is_none())) {
            found.push(format!(
                "{index}: {kind} of {table}, {}",
                text("Index Cond")
            ));
        }
    }
    for below in node["Plans"].as_array().into_iter().flatten() {
        let is = |key: &str, what: &str| below[key].as_str() == Some(what);
        if kind == "Nested Loop"
            && is("Parent Relationship", "Inner")
            && is("Node Type", "CTE Scan")
            && !SINGLE.iter().any(|one| is("CTE Name", one))
        {
            found.push(format!("{}: each with each", below["CTE Name"]));
        }
    }
    let (limited, sorted) = match kind {
        "Limit" => (true, false),
        "Sort" | "Incremental Sort" => (false, true),
        // They read all of what is below.
        "Aggregate" | "WindowAgg" | "Hash" => (false, false),
        _ => (limited, sorted),
    };
    for below in node["Plans"].as_array().into_iter().flatten() {
        walk(below, limited, sorted, found);
    }
}

/// The generic plan of a statement, under the settings of the session.
async fn plan(db: &mut PgConnection, sql: &str) -> Value {
    let prepare = format!("prepare looked_at as {}", sql.trim_end_matches([';', '\n']));
    run(db, &prepare).await;
    let parameters: i32 = sqlx::query_scalar(
        "select coalesce(cardinality(parameter_types), 0) from pg_prepared_statements where name = 'looked_at'",
    )
    .fetch_one(&mut *db)
    .await
    .unwrap();
    let nulls = vec!["null"; parameters as usize].join(", ");
    let arguments = if nulls.is_empty() {
        nulls
    } else {
        format!("({nulls})")
    };
    let explain = format!("explain (format json) execute looked_at{arguments}");
    let row = sqlx::raw_sql(AssertSqlSafe(explain))
        .fetch_one(&mut *db)
        .await
        .expect(sql);
    let text: String = row.get_unchecked(0);
    run(db, "deallocate looked_at").await;
    let plans: Value = serde_json::from_str(&text).unwrap();
    plans[0]["Plan"].clone()
}

async fn run(db: &mut PgConnection, sql: &str) {
    db.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned())))
        .await
        .expect(sql);
}

/// The statements inside a function, with parameters in the place of its variables.
async fn statements_of(db: &mut PgConnection, function: &str) -> Vec<String> {
    let source: String = sqlx::query_scalar("select prosrc from pg_proc where proname = $1")
        .bind(function)
        .fetch_one(db)
        .await
        .unwrap();
    let code: String = source
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    code.replace("    perform ", "    ;select ")
        .replace("    into locked\n", "")
        .replace("host_ids", "$1::int[]")
        .replace("any (locked)", "any ($1::int[])")
        .replace("priorities", "$2::smallint[]")
        .replace("task_ids", "$3::bigint[]")
        .replace("if locked is not null then", ";")
        .split(';')
        .map(str::trim)
        .filter(|statement| statement.starts_with("select") || statement.starts_with("update"))
        .map(str::to_owned)
        .collect()
}

/// Fails with all that reads too much.
async fn assert_plans(ground: &Ground) {
    let mut db = ground.db.pool.acquire().await.unwrap();
    run(&mut db, "set plan_cache_mode = force_generic_plan").await;
    let mut statements: Vec<(String, String)> = STATEMENTS
        .iter()
        .chain(&VIEWS)
        .map(|(name, sql)| ((*name).to_owned(), (*sql).to_owned()))
        .collect();
    for (function, count) in [("park_hosts", 3), ("wake_hosts", 3)] {
        let found = statements_of(&mut db, function).await;
        assert_eq!(found.len(), count, "{found:#?}");
        statements.extend(
            found
                .into_iter()
                .map(|sql| (format!("{function}: {sql}"), sql)),
        );
    }
    let mut found = Vec::new();
    for (name, sql) in statements {
        let plan = plan(&mut db, &sql).await;
        found.extend(
            complaints(&name, &plan)
                .into_iter()
                .map(|complaint| format!("{name}: {complaint}")),
        );
    }
    db.close_on_drop();
    assert!(found.is_empty(), "{found:#?}");
}

/// Fills the tables, most of it done, without that anybody counts, wakes or analyses.
async fn grow(ground: &Ground, tasks: u32) {
    let options = ground.db.pool.connect_options();
    let options =
        sqlx::postgres::PgConnectOptions::clone(&options).options([("statement_timeout", "0")]);
    let mut db = PgConnection::connect_with(&options).await.unwrap();
    for sql in [
        "alter table tasks set (autovacuum_enabled = false)".to_owned(),
        "alter table hosts set (autovacuum_enabled = false)".to_owned(),
        "alter table pages set (autovacuum_enabled = false)".to_owned(),
        "alter table tasks disable trigger user".to_owned(),
        "alter table tasks drop constraint tasks_host_id_fkey".to_owned(),
        "insert into hosts (authority, has_new) select 'https://h' || n || '.example', n % 10 = 0 from generate_series(1, 5000) n".to_owned(),
        format!(
            "insert into tasks (host_id, url, url_digest, status, claimed_by, claimed_at, available_at, reason)
             select n % 5000 + 1, 'https://h' || n % 5000 + 1 || '.example/page/' || n, md5(n::text)::uuid, s.status,
                    case when s.status = 'claimed' then 1 end, case when s.status = 'claimed' then now() end,
                    case when s.status = 'failed' and n % 3 = 0 then now() end, case when s.status = 'failed' then 'timeout' end
             from generate_series(1, {tasks}) n
             cross join lateral (select (case when n % 100 = 0 then 'claimed' when n % 50 = 1 then 'failed' when n % 10 = 2 then 'new' else 'done' end)::task_status as status) s"
        ),
        "insert into pages (task_id, claim_version, http_status) select id, claim_version, 200 from tasks where status = 'done' limit 50000".to_owned(),
        "alter table tasks add constraint tasks_host_id_fkey foreign key (host_id) references hosts (id) not valid".to_owned(),
        "alter table tasks enable trigger user".to_owned(),
    ] {
        run(&mut db, &sql).await;
    }
    db.close().await.unwrap();
    let analysed = "select count(*) from pg_stats where schemaname = current_schema() and tablename in ('tasks', 'hosts')";
    assert_eq!(
        ground.number(analysed).await,
        0,
        "somebody analysed the tables"
    );
}

#[tokio::test]
async fn no_statement_reads_a_table_whole_in_an_empty_database() {
    assert_plans(&Ground::new().await).await;
}

#[tokio::test]
async fn no_statement_reads_a_table_whole_when_it_has_grown_unanalysed() {
    let ground = Ground::new().await;
    grow(&ground, 100_000).await;
    assert_plans(&ground).await;
}

#[tokio::test]
#[ignore = "a million rows take a minute"]
async fn no_statement_reads_a_table_whole_with_a_million_tasks_unanalysed() {
    let ground = Ground::new().await;
    grow(&ground, 1_000_000).await;
    assert_plans(&ground).await;
}

#[tokio::test]
async fn a_statement_that_reads_a_table_whole_is_noticed() {
    let ground = Ground::new().await;
    let mut db = ground.db.pool.acquire().await.unwrap();
    run(&mut db, "set plan_cache_mode = force_generic_plan").await;
    for whole in [
        "select count(*) from tasks",
        "select * from tasks where url = $1",
        "select id from hosts where note = $1 order by id limit 1",
        "select id from hosts where has_new order by claimed limit 5",
        "select t.id from unnest($1::bigint[]) n (id) join tasks t on t.depth = n.id",
        "select max(fetch_ms) from pages",
        "with v as materialized (select n from unnest($1::int[]) n)
         select t.id from tasks t join v on v.n = t.id where t.id = any (array(select n from v)) and t.claimed_by = $2",
    ] {
        let plan = plan(&mut db, whole).await;
        assert!(!complaints(whole, &plan).is_empty(), "{whole}: {plan:#}");
    }
    db.close_on_drop();
}
