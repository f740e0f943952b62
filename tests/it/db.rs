//! Connecting, migrating, asking.

use std::time::Duration;

use pgcrawl::db::{Access, DbError, DbSettings, Part, QueryError, connect, migrate, query_text};
use secrecy::{ExposeSecret, SecretString};

use crate::support::db::{TestDb, bare_database};

#[tokio::test]
async fn each_test_has_a_migrated_database_of_its_own() {
    let (one, other) = tokio::join!(TestDb::new(), TestDb::new());
    sqlx::raw_sql("create table t (x int)")
        .execute(&one.pool)
        .await
        .unwrap();
    let exists = "select to_regclass('t') is not null";
    assert!(
        sqlx::query_scalar::<_, bool>(exists)
            .fetch_one(&one.pool)
            .await
            .unwrap()
    );
    assert!(
        !sqlx::query_scalar::<_, bool>(exists)
            .fetch_one(&other.pool)
            .await
            .unwrap()
    );
    let migrated: i64 = sqlx::query_scalar("select count(*) from _sqlx_migrations")
        .fetch_one(&one.pool)
        .await
        .unwrap();
    assert!(migrated > 0);
}

#[tokio::test]
async fn eight_processes_at_once_bring_an_empty_database_up() {
    let url = bare_database("UTF8").await;
    let started: Vec<_> = (0..8)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move {
                let settings = DbSettings {
                    max_connections: 2,
                    ..DbSettings::default()
                };
                let pool = connect(&url, &settings).await?;
                migrate(&pool).await?;
                Ok::<_, DbError>(pool)
            })
        })
        .collect();
    for pool in started {
        let pool = pool.await.unwrap().unwrap();
        sqlx::query("select from _sqlx_migrations")
            .execute(&pool)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_migration_of_a_newer_program_is_told_as_such() {
    let db = TestDb::new().await;
    let newer =
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                 values (987654, 'from the future', true, '', 0)";
    sqlx::raw_sql(newer).execute(&db.pool).await.unwrap();
    let refused = migrate(&db.pool).await.unwrap_err();
    assert!(
        matches!(refused, DbError::Newer { version: 987_654 }),
        "{refused}"
    );
}

#[tokio::test]
async fn a_migrating_process_waits_longer_than_the_pools_lock_timeout() {
    let url = bare_database("UTF8").await;
    let settings = DbSettings {
        lock_timeout: Duration::from_millis(1),
        ..DbSettings::default()
    };
    let pool = connect(&url, &settings).await.unwrap();
    let shown: String = sqlx::query_scalar("show lock_timeout")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(shown, "1ms");
    // Two at once: the second has to wait for the first's advisory lock, for more than a millisecond.
    let (one, other) = tokio::join!(migrate(&pool), migrate(&pool));
    one.unwrap();
    other.unwrap();
}

#[tokio::test]
async fn a_database_that_is_not_utf8_is_refused() {
    let url = bare_database("SQL_ASCII").await;
    let refused = connect(&url, &DbSettings::default()).await.unwrap_err();
    assert!(
        matches!(&refused, DbError::NotUtf8 { found } if found == "SQL_ASCII"),
        "{refused}"
    );
    assert!(refused.hint().is_some());
}

#[tokio::test]
async fn sessions_carry_the_settings_of_the_protocol() {
    let db = TestDb::new().await;
    for (name, value) in [
        ("default_transaction_isolation", "read committed"),
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("jit", "off"),
        ("statement_timeout", "30s"),
        ("lock_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("application_name", "pgcrawl"),
    ] {
        let found: String = sqlx::query_scalar("select current_setting($1)")
            .bind(name)
            .fetch_one(&db.pool)
            .await
            .unwrap();
        assert_eq!(found, value, "{name}");
    }
}

#[tokio::test]
async fn refusals_name_the_place_and_never_the_password() {
    let db = TestDb::new().await;
    let wrong = db
        .url
        .expose_secret()
        .replace("postgres://pgcrawl:", "postgres://pgcrawl:not-");
    let refused = connect(&SecretString::from(wrong), &DbSettings::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, DbError::Refused { code, .. } if code == "28P01"),
        "{refused}"
    );
    let nobody = SecretString::from("postgres://u:geheim@127.0.0.1:1/d".to_owned());
    let refused = connect(&nobody, &DbSettings::default()).await.unwrap_err();
    assert!(
        matches!(&refused, DbError::Unreachable { at, .. } if at == "127.0.0.1:1"),
        "{refused}"
    );
    assert!(!format!("{refused:?} {refused}").contains("geheim"));
}

/// Runs a statement, and joins the values of its answer by `|`.
async fn ask(
    url: &SecretString,
    access: Access,
    statement: &str,
) -> Result<Vec<String>, QueryError> {
    let mut rows = Vec::new();
    let mut receive = |part: Part<'_>| {
        if let Part::Row(values) = part {
            rows.push(
                values
                    .iter()
                    .map(|value| value.unwrap_or("NULL"))
                    .collect::<Vec<_>>()
                    .join("|"),
            );
        }
        Ok(())
    };
    query_text(
        url,
        access,
        statement,
        Duration::from_secs(30),
        &mut receive,
    )
    .await?;
    Ok(rows)
}

#[tokio::test]
async fn every_type_of_column_is_printed() {
    let db = TestDb::new().await;
    let types =
        "create type mood as enum ('sad', 'glad'); create domain small as int check (value < 10);
                 create type pair as (a int, b text)";
    sqlx::raw_sql(types).execute(&db.pool).await.unwrap();
    let statement = r#"select null, array['a', null], 'glad'::mood, array['sad'::mood], 7::small, row(1, 'x')::pair,
        'infinity'::timestamptz, '{"a": [1]}'::jsonb, '\x00ff'::bytea, 'NaN'::float8, 1.50::numeric, true,
        '127.0.0.1/8'::inet, int4range(1, 5), '1 day 2 hours'::interval, 'a b'::tsvector, '-infinity'::date"#;
    let rows = ask(&db.reader_url, Access::Read, statement).await.unwrap();
    let expected = r#"NULL|{a,NULL}|glad|{sad}|7|(1,x)|infinity|{"a": [1]}|\x00ff|NaN|1.50|t|127.0.0.1/8|[1,5)|1 day 02:00:00|'a' 'b'|-infinity"#;
    assert_eq!(rows, [expected]);
}

#[tokio::test]
async fn reading_does_not_write_whoever_asks_and_a_call_is_one_statement() {
    let db = TestDb::new().await;
    ask(&db.url, Access::Write, "create table t (x int)")
        .await
        .unwrap();
    for url in [&db.url, &db.reader_url] {
        for statement in [
            "insert into t values (1)",
            "select 1; insert into t values (1)",
            "rollback; insert into t values (1)",
            "select set_config('transaction_read_only', 'off', false)",
            "copy t to stdout",
        ] {
            assert!(
                ask(url, Access::Read, statement).await.is_err(),
                "{statement}"
            );
        }
        assert_eq!(
            ask(url, Access::Read, "select count(*) from t")
                .await
                .unwrap(),
            ["0"]
        );
    }
    assert_eq!(
        ask(
            &db.url,
            Access::Write,
            "insert into t values (1) returning x"
        )
        .await
        .unwrap(),
        ["1"]
    );
    ask(&db.url, Access::Write, "vacuum t").await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended_by_the_server() {
    let db = TestDb::new().await;
    let mut ignore = |_: Part<'_>| Ok(());
    let ended = query_text(
        &db.url,
        Access::Read,
        "select pg_sleep(60)",
        Duration::from_millis(50),
        &mut ignore,
    )
    .await;
    let Err(QueryError::Db(DbError::Query { source, .. })) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(source.as_database_error().unwrap().code().unwrap(), "57014");
}
