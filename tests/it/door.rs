//! The program as it is typed: the demo, and the commands that look at a crawl.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use secrecy::ExposeSecret;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::support::db::TestDb;

/// The program on a test's database, with nothing else of the environment that matters to it.
fn pgcrawl(db: &TestDb, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgcrawl"));
    command
        .args(arguments)
        .env("DATABASE_URL", db.url.expose_secret())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn the_demo_finds_exactly_what_its_site_holds_and_the_database_tells_of_it() {
    let db = TestDb::new().await;
    let demo = output(pgcrawl(&db, &["demo"])).await;
    let (printed, said) = (text(&demo.stdout), text(&demo.stderr));
    assert_eq!(demo.status.code(), Some(0), "{printed}{said}");
    assert!(
        printed.contains("Each page was asked for once"),
        "{printed}"
    );
    assert_eq!(printed.matches("│ http_status").count(), 1, "{printed}");
    assert!(printed.contains("missing-09.html ┆"), "{printed}");

    let library = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("http://"))
        .unwrap()
        .to_owned();
    let forbidden = output(pgcrawl(
        &db,
        &["explain", &format!("http://{library}private/letters.html")],
    ))
    .await;
    let explained = text(&forbidden.stdout);
    assert!(
        explained.contains("Disallow: /private/") && explained.contains("forbidden by line"),
        "{explained}"
    );
    assert!(explained.contains("belongs to the crawl"), "{explained}");
    let known = output(pgcrawl(
        &db,
        &[
            "explain",
            "--json",
            &format!("http://{library}search?q=rivers&lang=en#x"),
        ],
    ))
    .await;
    let known: serde_json::Value = serde_json::from_slice(&known.stdout).unwrap();
    assert_eq!(known["task"]["status"], "done", "{known}");
    assert_eq!(known["last visit"]["http_status"], "200", "{known}");
    let stranger = output(pgcrawl(&db, &["explain", "https://example.org/"])).await;
    let stranger = text(&stranger.stdout);
    assert!(
        stranger.contains("does not belong to the crawl: out_of_scope"),
        "{stranger}"
    );

    let again = output(pgcrawl(&db, &["demo"])).await;
    assert_eq!(
        again.status.code(),
        Some(1),
        "a database with a crawl is not the demo's to use"
    );
}

#[tokio::test]
async fn the_doctor_finds_nothing_amiss_where_the_tests_run() {
    let db = TestDb::new().await;
    let looked = output(pgcrawl(&db, &["doctor", "--name", "localhost"])).await;
    let printed = text(&looked.stdout);
    assert_eq!(looked.status.code(), Some(0), "{printed}");
    assert!(printed.starts_with("ok    database"), "{printed}");
    let mut lost = pgcrawl(&db, &["doctor", "--name", "localhost"]);
    lost.env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing");
    let lost = output(lost).await;
    assert_eq!(lost.status.code(), Some(1), "{}", text(&lost.stdout));
}

#[tokio::test]
async fn a_reader_that_went_away_is_a_success() {
    let db = TestDb::new().await;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = pgcrawl(&db, &["config", "show"]);
    command.stdout(writer).stderr(Stdio::piped());
    let ended = output(command).await;
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(text(&ended.stderr), "");
}

#[tokio::test]
async fn every_statement_of_the_cookbook_runs() {
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url.expose_secret()).await.unwrap();
    let mut ran = 0;
    for document in ["docs/SQL.md", "README.md"] {
        for statement in statements(document) {
            let mut trial = connection.begin().await.unwrap();
            let answer = trial.execute(AssertSqlSafe(statement.clone())).await;
            assert!(answer.is_ok(), "{document}: {statement}: {answer:?}");
            trial.rollback().await.unwrap();
            ran += 1;
        }
    }
    assert!(ran > 20, "{ran}");
}

/// Returns the statements of a document's SQL blocks.
fn statements(document: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap();
    let blocks = text
        .split("```sql\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"))
        .map(|(block, _)| block);
    let code = |line: &str| {
        line.split("--")
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    };
    let code: Vec<String> = blocks
        .flat_map(|block| block.lines().map(code).collect::<Vec<_>>())
        .collect();
    code.join("\n")
        .split(';')
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
        .map(str::to_owned)
        .collect()
}
