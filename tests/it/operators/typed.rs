//! SQL as an operator types it, while a crawl runs: the triggers make it as safe as the commands.

use std::time::Duration;

use axum::response::{Html, IntoResponse as _};
use pgcrawl::crawl::{End, Stop};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::{
    crawl::{Setup, broken_invariants, number, urls},
    db::TestDb,
    site::Site,
};

/// Typed one after the other, again and again. Each is a thing that people do.
const TYPED: [&str; 16] = [
    "update tasks set status = 'new' where status = 'done' and url like '%/1_'",
    "update tasks set status = 'excluded', reason = 'operator' where status in ('new', 'claimed') and url like '%/3_'",
    "update tasks set priority = -1 where url like '%5'",
    "update tasks set status = 'failed', reason = 'by hand' where status = 'claimed' and url like '%/2_'",
    "update tasks set status = 'new', priority = 3 where status = 'failed'",
    "update hosts set deferred_until = 'infinity', note = 'parked by hand' where id = 1",
    "update hosts set priority = 0 where id = 2",
    "update hosts set parked_at = now() where id = 3",
    "update tasks set status = 'new', attempts = 0 where status = 'excluded' and url like '%/31'",
    "update crawl set paused_at = now()",
    "update hosts set deferred_until = null where id = 1",
    "update hosts set delay_ms = 1 where id = 3",
    "update hosts set parked_at = null where id = 3",
    "update crawl set paused_at = null",
    "update tasks set status = 'new', available_at = null where available_at is not null",
    "update hosts set delay_ms = null, priority = 2",
];

#[tokio::test]
async fn statements_typed_beside_a_running_crawl_lose_and_double_nothing() {
    let all: String = (0..60).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let mut sites = Vec::new();
    for _ in 0..3 {
        let all = all.clone();
        let site = Site::builder()
            .otherwise(move |_| {
                let all = all.clone();
                async move {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    Html(all).into_response()
                }
            })
            .start();
        sites.push(site.await);
    }
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.per_host = 4;
    let (one, two) = (setup.join(&db).await, setup.join(&db).await);
    let seeds: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    one.add_seeds(&urls(&seeds)).await.unwrap();
    let typing = async {
        sites[2].wait_for(|log| log.len() > 3).await;
        for _ in 0..4 {
            for sql in TYPED {
                type_in(&db, sql).await;
            }
        }
    };
    let (first, second, ()) =
        tokio::join!(one.run(Stop::default()), two.run(Stop::default()), typing);
    one.leave().await;
    two.leave().await;
    // What was typed after the end.
    setup.crawl(&db, &[]).await;
    assert_eq!(
        (first.unwrap().end, second.unwrap().end),
        (End::Finished, End::Finished)
    );
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
    assert_eq!(
        number(&db.pool, "select count(*) from tasks where status in ('new', 'claimed') or available_at is not null").await,
        0
    );
    assert_eq!(number(&db.pool, "select count(*) from tasks").await, 3 * 61);
}

/// As a person does, who types it again when it met a deadlock.
async fn type_in(db: &TestDb, sql: &str) {
    loop {
        match db.pool.execute(AssertSqlSafe(sql.to_owned())).await {
            Ok(_) => return,
            Err(error)
                if error
                    .as_database_error()
                    .and_then(sqlx::error::DatabaseError::code)
                    .as_deref()
                    == Some("40P01") => {}
            Err(error) => panic!("{sql}: {error}"),
        }
    }
}
