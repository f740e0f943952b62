//! Through pgbouncer in transaction mode.

use std::time::Duration;

use pgcrawl::canon::PageUrl;
use pgcrawl::db::{DbError, DbSettings, Session, connect};
use pgcrawl::frontier::{Frontier, FrontierSettings};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::AssertSqlSafe;

use super::{identity, settings, web};
use crate::support::crawl::{broken_invariants, number};
use crate::support::db::{TestDb, server};
use crate::support::pooler::Pooler;
use crate::support::program::{ended, pgcrawl};

/// Connections that the pooler has to the server, for all of its clients.
const POOL: u32 = 2;

fn pooled() -> DbSettings {
    DbSettings {
        through_pooler: true,
        statement_timeout: Duration::from_secs(20),
        ..DbSettings::default()
    }
}

async fn direct_url(db: &TestDb) -> SecretString {
    server().await.tcp_url(db.name.trim_start_matches("crawl_"))
}

/// Parsing and executing must reach the same connection: each client's answer depends on its own values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_get_the_answers_to_their_own_statements_over_few_connections() {
    let Some(pooler) = Pooler::start(POOL, "").await else {
        return;
    };
    let db = TestDb::new().await;
    let url = pooler.url(&db, &direct_url(&db).await);
    let mut clients = Vec::new();
    for client in 0..8 {
        let pool = connect(&url, &pooled()).await.unwrap();
        let frontier = Frontier::new(
            pool,
            FrontierSettings {
                route: pooled().route(),
                ..settings()
            },
        );
        clients.push(tokio::spawn(async move {
            let me = frontier.join(&identity(client)).await.unwrap();
            for round in 0..25 {
                let seed = PageUrl::parse(&format!("https://h{client}-{round}.example/")).unwrap();
                let key = seed.host().clone();
                let hosts = frontier.hosts(std::slice::from_ref(&key)).await.unwrap();
                assert_eq!(hosts.len(), 1);
                assert_eq!(frontier.enqueue_seeds(me, &[seed.into()]).await.unwrap(), 1);
                let claim = frontier.claim(me, super::ALL).await.unwrap();
                for host in claim.hosts {
                    for task in host.tasks {
                        assert!(frontier.begin(me, &task).await.unwrap());
                        assert_eq!(task.url, format!("{}/", host.authority));
                    }
                }
                assert!(frontier.beat(me).await.unwrap());
                frontier.rules_after(client).await.unwrap();
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    let claimed = "select count(*) from tasks where status = 'claimed' and attempts = 1";
    assert_eq!(number(&db.pool, claimed).await, 8 * 25);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
    let left_open = format!(
        "select count(*) from pg_stat_activity where datname = '{}' and state like 'idle in transaction%'",
        db.name
    );
    assert_eq!(number(&db.pool, &left_open).await, 0);
}

#[tokio::test]
async fn a_transaction_has_the_settings_of_a_session_and_leaves_none_behind() {
    let Some(pooler) = Pooler::start(1, "").await else {
        return;
    };
    let db = TestDb::new().await;
    let serializable = format!(
        "alter database \"{}\" set default_transaction_isolation = 'serializable'",
        db.name
    );
    sqlx::raw_sql(AssertSqlSafe(serializable))
        .execute(&db.pool)
        .await
        .unwrap();
    let pool = connect(&pooler.url(&db, &direct_url(&db).await), &pooled())
        .await
        .unwrap();
    let mut session = Session::take(&pool, &pooled().route()).await.unwrap();
    for (name, value) in [
        ("transaction_isolation", "read committed"),
        ("default_transaction_isolation", "read committed"),
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("jit", "off"),
        ("statement_timeout", "20s"),
        ("lock_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "10s"),
    ] {
        let found: String = sqlx::query_scalar("select current_setting($1)")
            .bind(name)
            .fetch_one(&mut session)
            .await
            .unwrap();
        assert_eq!(found, value, "{name}");
    }
    // An error ends its transaction, too.
    sqlx::query("select 1 / $1::int")
        .bind(0)
        .execute(&mut session)
        .await
        .unwrap_err();
    session.put_back();
    let plain: String = sqlx::query_scalar("select current_setting('enable_seqscan')")
        .persistent(false)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(plain, "on");
}

#[tokio::test]
async fn a_pooler_that_is_taken_for_a_server_is_refused_and_the_hint_names_the_key() {
    let db = TestDb::new().await;
    let direct = direct_url(&db).await;
    // As Debian has it, and with the option that hides what it drops.
    for options in ["", "ignore_startup_parameters = extra_float_digits,options"] {
        let Some(pooler) = Pooler::start(POOL, options).await else {
            return;
        };
        let refused = connect(&pooler.url(&db, &direct), &DbSettings::default())
            .await
            .unwrap_err();
        assert!(
            matches!(refused, DbError::Refused { .. } | DbError::Setting { .. }),
            "{refused}"
        );
        assert!(refused.hint().unwrap().contains("database.direct_url"));
    }
}

#[tokio::test]
async fn processes_crawl_a_site_through_a_pooler_that_is_killed_meanwhile() {
    let Some(mut pooler) = Pooler::start(POOL, "").await else {
        return;
    };
    let db = TestDb::new().await;
    let site = web(150, Duration::from_millis(10)).start().await;
    let direct = direct_url(&db).await;
    let url = pooler.url(&db, &direct);
    let seed = site.url("/");
    let crawl = || {
        pgcrawl(&db, &["crawl", &seed, "--delay", "0s", "--per-host", "4"])
            .env("DATABASE_URL", url.expose_secret())
            .env("PGCRAWL_DATABASE_DIRECT_URL", direct.expose_secret())
            .env("PGCRAWL_DATABASE_PATIENCE", "40s")
            .spawn()
            .unwrap()
    };
    let children = [crawl(), crawl()];
    site.wait_for(|log| log.len() > 60).await;
    pooler.kill();
    pooler.run().await;
    for child in children {
        let (code, said) = ended(&child.wait_with_output().await.unwrap());
        assert_eq!(code, 0, "{said}");
        assert!(!said.contains(direct.expose_secret()), "{said}");
    }
    let stored = "select count(*) from pages where http_status = 200";
    assert_eq!(number(&db.pool, stored).await, 151);
    assert_eq!(site.requests().len(), 152);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}
