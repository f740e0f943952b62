//! The schema is upgraded while a crawl runs.

use std::path::Path;
use std::time::Duration;

use pgcrawl::db::{DbError, DbSettings, connect, migrate, migrate_within};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use tokio::time::Instant;

use crate::support::db::bare_database;

/// A database that lacks the migrations from the one on that makes the counts, which wants locks on `tasks` that its writers are in the way of.
async fn of_an_earlier_version() -> PgPool {
    let url = bare_database("UTF8").await;
    let pool = connect(&url, &DbSettings::default()).await.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let all = Migrator::new(folder).await.unwrap();
    let first = all.iter().filter(|migration| migration.version <= 3);
    let mut db = pool.acquire().await.unwrap();
    Migrator::with_migrations(first.cloned().collect())
        .run_direct(None, &mut *db, false)
        .await
        .unwrap();
    db.execute(
        "insert into hosts (authority) values ('https://a.example');
         insert into tasks (host_id, url, url_digest) select 1, 'https://a.example/' || n, md5(n::text)::uuid from generate_series(1, 2) n",
    )
    .await
    .unwrap();
    db.close().await.unwrap();
    pool
}

async fn is_migrated(pool: &PgPool) -> bool {
    sqlx::query_scalar("select to_regclass('task_counts') is not null")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_upgrade_waits_for_its_locks_in_short_steps_and_the_crawl_goes_on_between_them() {
    let pool = of_an_earlier_version().await;
    let mut report = pool.acquire().await.unwrap();
    report.execute("begin").await.unwrap();
    report
        .execute("update tasks set depth = 1 where id = 1")
        .await
        .unwrap();
    // The server ends transactions that idle, and the crawl's pool asks for that.
    report
        .execute("set idle_in_transaction_session_timeout = 0")
        .await
        .unwrap();
    let upgrade = tokio::spawn({
        let pool = pool.clone();
        async move { migrate(&pool).await }
    });
    let (mut waited, mut longest) = (0, Duration::ZERO);
    while waited < 2 {
        // As each statement of the crawl: it stands behind the upgrade, by its lock timeout of 5 s at most.
        let began = Instant::now();
        pool.execute("update tasks set depth = 1 where id = 2")
            .await
            .unwrap();
        longest = longest.max(began.elapsed());
        if began.elapsed() > Duration::from_millis(500) {
            waited += 1;
        }
        assert!(!upgrade.is_finished());
        tokio::task::yield_now().await;
    }
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    assert!(!is_migrated(&pool).await);
    report.execute("commit").await.unwrap();
    upgrade.await.unwrap().unwrap();
    assert!(is_migrated(&pool).await);
}

#[tokio::test]
async fn an_upgrade_that_never_gets_its_locks_ends_and_leaves_all_as_it_was() {
    let pool = of_an_earlier_version().await;
    let mut report = pool.acquire().await.unwrap();
    report
        .execute(AssertSqlSafe(
            "begin; lock table tasks in row exclusive mode; set local idle_in_transaction_session_timeout = 0".to_owned(),
        ))
        .await
        .unwrap();
    let refused = migrate_within(&pool, Duration::from_millis(10))
        .await
        .unwrap_err();
    assert!(matches!(refused, DbError::Locked { .. }), "{refused}");
    assert!(refused.hint().unwrap().contains("blocked"));
    assert!(!is_migrated(&pool).await);
    report.execute("rollback").await.unwrap();
    migrate(&pool).await.unwrap();
}
