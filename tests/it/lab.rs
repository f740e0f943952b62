//! The laboratory finds what Postgres does, not how fast; and it leaves nothing behind.

use std::process::Stdio;
use std::time::Duration;

use pgcrawl::lab::{
    BatchSettings, Dataset, DeathSettings, IndexSettings, Kind, Lab, LabSettings, LockingSettings,
    ScaleSettings, Scratch, Section, SectionReport, SemanticsSettings,
};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::support::{
    crawl::{column, number},
    db::{TestDb, scratch_dir},
    program::{ended, pgcrawl, signal},
};

/// Every section in seconds.
fn tiny() -> LabSettings {
    let ms = Duration::from_millis;
    LabSettings {
        name: "tiny",
        commits: 3,
        locking: LockingSettings {
            workers: 4,
            tasks: 80,
            batch: 10,
            work: ms(20),
        },
        batches: BatchSettings {
            workers: 3,
            tasks: 60,
            sizes: vec![1, 10],
        },
        index: IndexSettings {
            done: 20_000,
            new: 50,
            batch: 5,
            claims: 3,
        },
        death: DeathSettings {
            tasks: 5,
            lease: ms(300),
            lock_timeout: ms(50),
            held: ms(50),
        },
        scale: ScaleSettings {
            datasets: [(30, 1), (60, 20)]
                .map(|(tasks, hosts)| Dataset { tasks, hosts })
                .to_vec(),
            dataset_workers: 2,
            crowd: Dataset {
                tasks: 200,
                hosts: 20,
            },
            workers: vec![1, 3],
            batch: 10,
            hosts_per_claim: 4,
            claims: 8,
            delay: ms(10),
            long: Dataset {
                tasks: 2_000,
                hosts: 20,
            },
            open: Dataset {
                tasks: 40,
                hosts: 20,
            },
            done: vec![0, 500],
            snapshot: ms(400),
            intervals: 2,
            polls: vec![ms(10)],
            wakes: 2,
            notifying: ms(100),
            notifiers: 2,
        },
        semantics: SemanticsSettings {
            tasks: 80,
            poisoned: 12,
            lives: 3,
            batch: 5,
            ..SemanticsSettings::default()
        },
    }
}

/// Runs one section in a schema of a test's database.
async fn section(section: Section) -> SectionReport {
    let db = TestDb::new().await;
    let scratch = Scratch::schema(db.url.clone()).await.unwrap();
    let lab = Lab::new(scratch.clone(), tiny());
    let report = lab.run(&[section]).await;
    scratch.clear().await.unwrap();
    assert_eq!(scratch_schemas(&db).await, Vec::<String>::new());
    report.unwrap().sections.remove(0)
}

async fn scratch_schemas(db: &TestDb) -> Vec<String> {
    column(
        &db.pool,
        "select nspname::text from pg_namespace where nspname like 'pgcrawl%'",
    )
    .await
}

/// The rows of a table, as the JSON has them.
fn rows(report: &SectionReport, table: usize) -> Vec<Value> {
    let table = serde_json::to_value(&report.tables[table]).unwrap();
    table["rows"].as_array().unwrap().clone()
}

/// The row whose value under a key begins so.
fn row<'a>(rows: &'a [Value], key: &str, begins: &str) -> &'a Value {
    rows.iter()
        .find(|row| {
            row[key]
                .as_str()
                .is_some_and(|text| text.starts_with(begins))
        })
        .unwrap_or_else(|| panic!("no {begins} in {rows:#?}"))
}

fn says(report: &SectionReport, words: &str) {
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.text.contains(words)),
        "{words}: {:#?}",
        report.findings
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_select_hands_out_duplicates_and_locks_do_not() {
    let report = section(Section::A).await;
    let rows = rows(&report, 0);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        let (claims, duplicates) = (
            row["claims"].as_u64().unwrap(),
            row["duplicates"].as_u64().unwrap(),
        );
        assert_eq!(claims - duplicates, 80, "{row}");
        let plain = row["lock"] == "plain SELECT";
        assert!(plain || duplicates == 0, "{row}");
        // Inside, all of them read before one of them writes: that needs no luck.
        assert!(!(plain && row["work"] == true) || duplicates > 0, "{row}");
    }
    // One after the other, and the others wait: 3 for each of the 8 batches but the last ones.
    let wait = |lock: &str| {
        let found = rows
            .iter()
            .find(|row| row["lock"] == lock && row["work"] == true);
        found.unwrap()["lock_wait_s"].as_f64().unwrap()
    };
    assert!(wait("FOR UPDATE") > wait("SKIP LOCKED"), "{rows:#?}");
    says(&report, "duplicates among");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_larger_batch_takes_fewer_claims_and_strands_more() {
    let report = section(Section::B).await;
    let rows = rows(&report, 0);
    assert_eq!(
        (&rows[0]["claims"], &rows[0]["stranded"]),
        (&60.into(), &1.into())
    );
    assert_eq!(
        (&rows[1]["claims"], &rows[1]["stranded"]),
        (&6.into(), &10.into())
    );
    says(
        &report,
        "strands 1 task of batches of 1 and 10 tasks of batches of 10",
    );
    says(&report, "0 were duplicates");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generic_plan_with_the_status_as_a_parameter_cannot_use_the_partial_index() {
    let report = section(Section::C).await;
    let rows = rows(&report, 0);
    let reads = |n: usize| rows[n]["reads"].as_str().unwrap();
    assert!(reads(0).contains("lab_partial"), "{rows:#?}");
    assert!(!reads(1).contains("lab_partial"), "{rows:#?}");
    assert!(
        rows[0]["index_bytes"].as_u64() < rows[2]["index_bytes"].as_u64(),
        "{rows:#?}"
    );
    says(&report, "a generic plan cannot use it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_loses_nothing_and_its_late_finish_changes_no_row() {
    let report = section(Section::D).await;
    let deaths = rows(&report, 0);
    let versions: Vec<_> = deaths
        .iter()
        .map(|row| {
            (
                row["open"].as_u64(),
                row["claim_version"].as_u64(),
                row["late_finish_rows"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        versions,
        [
            (Some(5), Some(1), None),
            (Some(5), Some(2), Some(0)),
            (Some(5), Some(2), Some(0))
        ]
    );
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.kind == Kind::Met)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_lock_is_skipped_or_refused_and_an_empty_answer_is_no_empty_queue() {
    let report = section(Section::D).await;
    let locks = rows(&report, 1);
    let answer = |begins: &str| row(&locks, "asked", begins).clone();
    assert_eq!(answer("FOR UPDATE SKIP LOCKED")["answer"], "rows 2, 3, 4");
    assert_eq!(answer("FOR UPDATE, lock_timeout")["sqlstate"], "55P03");
    assert_eq!(answer("FOR UPDATE NOWAIT")["sqlstate"], "55P03");
    assert_eq!(
        answer("FOR UPDATE, the lock held")["answer"],
        "rows 1, 2, 3"
    );
    assert_eq!(answer("FOR UPDATE SKIP LOCKED, all")["answer"], "no row");
    says(&report, "an empty answer does not mean an empty queue");
    says(&report, "the frontier's own claim got 0 tasks");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frontier_of_each_size_is_worked_on_and_no_finish_is_refused() {
    let report = section(Section::E).await;
    let crowd = rows(&report, 0);
    let workers: Vec<_> = crowd.iter().map(|row| row["workers"].as_u64()).collect();
    assert_eq!(workers, [Some(1), Some(3)]);
    for row in &crowd {
        assert!(row["visits_per_s"].as_f64().unwrap() > 0.0, "{row}");
        assert!(
            row["claim_p99_ms"].as_f64() >= row["claim_p50_ms"].as_f64(),
            "{row}"
        );
    }
    let sizes = rows(&report, 1);
    assert_eq!(sizes.len(), 2);
    for row in &sizes {
        assert!(row["claim_p50_ms"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["held_p50_ms"].as_f64().unwrap() > 0.0, "{row}");
    }
    let done = rows(&report, 2);
    let beside: Vec<_> = done.iter().map(|row| row["done"].as_u64()).collect();
    assert_eq!(beside, [Some(0), Some(500)]);
    for row in &done {
        assert!(row["claim_p50_ms"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["wal_bytes"].as_u64().unwrap() > 0, "{row}");
    }
    let long = rows(&report, 3);
    let held: Vec<_> = long
        .iter()
        .map(|row| row["snapshot_held"].as_str())
        .collect();
    assert_eq!(
        held,
        [Some("none"), Some("none"), Some("held"), Some("held")]
    );
    assert!(rows(&report, 4).len() == 2 && rows(&report, 5).len() == 2);
    let twice = report
        .findings
        .iter()
        .find(|finding| finding.text.contains("handed out twice"))
        .unwrap();
    assert_eq!(twice.kind, Kind::Met, "{twice:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_disputed_comes_out_as_postgres_has_it() {
    let report = section(Section::F).await;
    let trials = rows(&report, 0);
    let so = |said: &str| row(&trials, "said", said)["holds"].as_bool().unwrap();
    let expected = [
        ("a row that no longer fits is dropped", true),
        ("a row that newly fits is not seen", true),
        ("ORDER BY … FOR UPDATE comes in order", false),
        ("LIMIT n FOR UPDATE comes short", false),
        ("so does a LIMIT below the lock", true),
        ("and an UPDATE of a LIMIT without a lock", true),
        ("and with SKIP LOCKED", false),
        ("LIMIT n FOR UPDATE comes short at the end", true),
        ("RETURNING keeps the order", false),
        ("a CTE and an ORDER BY around it do", true),
        ("FOR UPDATE in a join locks every table", true),
        ("FOR UPDATE OF locks more than the one", false),
        ("REPEATABLE READ fails with 40001", true),
        ("with SKIP LOCKED as well", true),
        ("so a queue in REPEATABLE READ", true),
        ("SELECT … SKIP LOCKED in autocommit", true),
    ];
    for (said, expected) in expected {
        assert_eq!(so(said), expected, "{said}: {}", row(&trials, "said", said));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_job_stops_a_naive_queue_and_not_the_frontier() {
    let report = section(Section::F).await;
    let queues = rows(&report, 1);
    let naive = row(&queues, "queue", "a naive queue");
    assert_eq!((&naive["deaths"], &naive["done"]), (&3.into(), &0.into()));
    let ours = row(&queues, "queue", "the frontier");
    assert_eq!(
        (&ours["done"], &ours["poison"]),
        (&11.into(), &"failed, poison".into())
    );
}

/// What the operator has in his database, beside system tables.
async fn tables(db: &TestDb) -> Vec<String> {
    column(
        &db.pool,
        "select table_schema || '.' || table_name from information_schema.tables
         where table_schema not in ('pg_catalog', 'information_schema') order by 1",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_json_and_leaves_the_database_as_it_was() {
    let db = TestDb::new().await;
    let before = tables(&db).await;
    let output = pgcrawl(&db, &["bench", "frontier", "--section", "d,a", "--json"])
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["sections"][0]["section"], "a", "{report}");
    assert_eq!(report["sections"][1]["section"], "d", "{report}");
    assert_eq!(report["machine"]["size"], "quick", "{report}");
    assert_eq!(tables(&db).await, before);
    assert_eq!(number(&db.pool, "select count(*) from tasks").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_markdown_has_a_table_a_trial_and_the_findings_below() {
    let db = TestDb::new().await;
    let output = pgcrawl(&db, &["bench", "frontier", "--section", "f", "--markdown"])
        .output()
        .await
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n### f. What is disputed\n"), "{text}");
    assert!(
        text.contains("\n| said | tried | answer | so |\n| --- | --- | --- | --- |\n"),
        "{text}"
    );
    assert!(
        text.contains("\n- a naive queue: after 10 deaths"),
        "{text}"
    );
}

/// Starts section e, and waits until it fills a million rows: one statement is under way, which must end with its client.
async fn filling(db: &TestDb) -> Child {
    let child = pgcrawl(db, &["bench", "frontier", "--section", "e", "--json"])
        .spawn()
        .unwrap();
    let filling = "select count(*) from pg_stat_activity
                   where datname = current_database() and state = 'active' and query like 'insert into tasks%'";
    for _ in 0..6_000 {
        if number(&db.pool, filling).await > 0 {
            assert_eq!(scratch_schemas(db).await.len(), 1);
            return child;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing is filled");
}

/// The run is over: it said nothing on standard output, and nothing of it is left. Answers its code, and what it said beside.
async fn over(db: &TestDb, child: Child) -> (i32, String) {
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(scratch_schemas(db).await, Vec::<String>::new());
    let sessions = "select count(*) from pg_stat_activity where datname = current_database() and starts_with(application_name, 'pgcrawl_bench')";
    assert_eq!(number(&db.pool, sessions).await, 0);
    ended(&output)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_leaves_nothing_behind() {
    let db = TestDb::new().await;
    let child = filling(&db).await;
    signal(&child, rustix::process::Signal::INT);
    let (code, said) = over(&db, child).await;
    assert_eq!(code, 5, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_says_why_and_leaves_nothing_behind() {
    let db = TestDb::new().await;
    let child = filling(&db).await;
    let kill = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                where datname = current_database() and starts_with(application_name, 'pgcrawl_bench')";
    assert!(number(&db.pool, kill).await > 0);
    let (code, said) = over(&db, child).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the laboratory's statement failed"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_server_it_makes_a_database_and_drops_it() {
    let dir = scratch_dir("bench");
    let run = |arguments: &'static [&'static str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgcrawl"));
        command
            .args(arguments)
            .arg("--data-dir")
            .arg(&dir)
            .env_remove("DATABASE_URL")
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null());
        command.output()
    };
    let output = run(&["bench", "frontier", "--section", "a", "--json"])
        .await
        .unwrap();
    let (code, said) = ended(&output);
    assert_eq!(code, 0, "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["machine"]["reached_by"], "127.0.0.1", "over TCP");
    let left = run(&["crawls", "--json"]).await.unwrap();
    let (code, said) = ended(&left);
    assert_eq!(
        (code, String::from_utf8_lossy(&left.stdout).as_ref()),
        (0, ""),
        "{said}"
    );
}

#[tokio::test]
async fn a_second_run_of_the_same_process_gets_a_schema_of_its_own() {
    let db = TestDb::new().await;
    let one = Scratch::schema(db.url.clone()).await.unwrap();
    let two = Scratch::schema(db.url.clone()).await.unwrap();
    assert_ne!(one.name(), two.name());
    one.clear().await.unwrap();
    assert_eq!(scratch_schemas(&db).await, [two.name()]);
    two.clear().await.unwrap();
}
