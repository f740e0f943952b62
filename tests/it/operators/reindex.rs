//! Indexes anew, and what the health of the queue says.

use std::time::Duration;

use pgcrawl::frontier::operate::{Indexes, OperateError, Patience};
use sqlx::{Connection as _, Executor as _};
use tokio_util::sync::CancellationToken;

use super::{Ground, until};

/// Old enough to be waited for.
const AT_ONCE: Patience = Patience::Refuse(Duration::ZERO);
/// No test takes so long.
const NEVER: Patience = Patience::Refuse(Duration::from_secs(3600));

/// Lets the index of new tasks grow, and everything in it go.
async fn bloat(ground: &Ground) {
    ground.seed(&["http://a.example/"]).await;
    ground
        .typed("insert into tasks (host_id, url, url_digest) select 1, 'http://a.example/' || n, md5(n::text)::uuid from generate_series(1, 20000) n")
        .await;
    ground
        .typed("update tasks set status = 'excluded', reason = 'operator'")
        .await;
}

#[tokio::test]
async fn a_reindex_makes_a_grown_index_small_and_says_so() {
    let ground = Ground::new().await;
    bloat(&ground).await;
    let mut heard = Vec::new();
    let rebuilt = ground
        .operator
        .reindex(Indexes::Hot, NEVER, &CancellationToken::new(), &mut |one| {
            heard.push(one.clone());
        })
        .await
        .unwrap();
    assert_eq!(heard, rebuilt);
    let new = rebuilt.iter().find(|one| one.name == "tasks_new").unwrap();
    assert!(new.after_bytes * 10 < new.before_bytes, "{new:?}");
    let names: Vec<&str> = rebuilt.iter().map(|one| one.name.as_str()).collect();
    assert!(names.contains(&"hosts_ready"), "{names:?}");
    let bytes = "select tasks_new_bytes from queue_health";
    assert_eq!(ground.number(bytes).await, new.after_bytes as i64);
    let all = ground.operator.indexes(Indexes::All).await.unwrap();
    assert!(all.len() > rebuilt.len() + 5, "{all:?}");
    assert_eq!(
        ground
            .number("select count(*) from pg_index where not indisvalid")
            .await,
        0
    );
}

/// A session with a snapshot that keeps others waiting.
async fn old_session(ground: &Ground) -> (sqlx::PgConnection, i32) {
    let options = ground.db.pool.connect_options();
    let options = sqlx::postgres::PgConnectOptions::clone(&options)
        .application_name("a report")
        .options([("idle_in_transaction_session_timeout", "0")]);
    let mut session = sqlx::PgConnection::connect_with(&options).await.unwrap();
    session
        .execute("begin transaction isolation level repeatable read")
        .await
        .unwrap();
    session.execute("select count(*) from hosts").await.unwrap();
    let pid = sqlx::query_scalar("select pg_backend_pid()")
        .fetch_one(&mut session)
        .await
        .unwrap();
    (session, pid)
}

#[tokio::test]
async fn the_oldest_snapshot_is_named_with_its_session_and_its_age() {
    let ground = Ground::new().await;
    let (session, pid) = old_session(&ground).await;
    // Others come and go after it.
    ground.typed("update crawl set created_at = now()").await;
    let health = "select oldest_snapshot_kind, oldest_snapshot_pid, oldest_snapshot_name, oldest_snapshot_age > interval '0 s', oldest_snapshot_age < now() - oldest_snapshot_at + interval '1 s', vacuum_behind from queue_health";
    assert_eq!(
        ground.column(health).await,
        [format!("session,{pid},\"a report\",t,t,f")]
    );
    drop(session);
}

#[tokio::test]
async fn a_transaction_that_only_wrote_is_seen_as_well() {
    let ground = Ground::new().await;
    let mut session = ground.db.pool.begin().await.unwrap();
    session
        .execute("insert into robots (host_id) values (-1)")
        .await
        .unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()")
        .fetch_one(&mut *session)
        .await
        .unwrap();
    ground.typed("update crawl set created_at = now()").await;
    assert_eq!(
        ground
            .column(
                "select pid, state from snapshots where kind = 'session' order by xids desc limit 1"
            )
            .await,
        [format!("{pid},\"idle in transaction\"")]
    );
}

#[tokio::test]
async fn dead_rows_that_nobody_removes_are_a_vacuum_that_falls_behind() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/"]).await;
    for table in ["tasks", "hosts"] {
        ground
            .typed(&format!(
                "alter table {table} set (autovacuum_enabled = false)"
            ))
            .await;
    }
    ground
        .typed(
            "insert into hosts (authority) select 'http://h' || n from generate_series(1, 25000) n",
        )
        .await;
    ground.typed("update hosts set note = 'x'").await;
    ground
        .typed("update workers set started_at = now() - interval '1 hour'")
        .await;
    // A session reports its counts when it is idle; one that ends at once.
    let mut session = sqlx::PgConnection::connect_with(&ground.db.pool.connect_options())
        .await
        .unwrap();
    session
        .execute("update hosts set note = 'y'")
        .await
        .unwrap();
    session.close().await.unwrap();
    until(
        &ground.db,
        "select (dead_hosts > 20000)::int from queue_health",
    )
    .await;
    let health = "select vacuum_behind, dead_hosts_ratio >= 0.8 from queue_health";
    assert_eq!(ground.column(health).await, ["t,t"]);
    ground.typed("vacuum hosts").await;
    until(&ground.db, "select (dead_hosts = 0)::int from queue_health").await;
    let health =
        "select vacuum_behind, hosts_vacuumed_at > now() - interval '1 hour' from queue_health";
    assert_eq!(ground.column(health).await, ["f,t"]);
}

#[tokio::test]
async fn a_reindex_that_would_wait_for_an_old_transaction_names_it_and_does_nothing() {
    let ground = Ground::new().await;
    let (session, pid) = old_session(&ground).await;
    let stop = CancellationToken::new();
    let error = ground
        .operator
        .reindex(Indexes::Hot, AT_ONCE, &stop, &mut |_| {
            panic!("it is not waited for")
        })
        .await
        .unwrap_err();
    let words = error.to_string();
    assert!(
        matches!(error, OperateError::OldTransaction { .. })
            && words.contains(&pid.to_string())
            && words.contains("a report"),
        "{words}"
    );
    assert!(error.hint().unwrap().contains("--wait"));
    drop(session);
}

#[tokio::test]
async fn a_reindex_that_waits_can_be_stopped_and_leaves_nothing_half_built() {
    let ground = Ground::new().await;
    bloat(&ground).await;
    let (mut session, _) = old_session(&ground).await;
    let stop = CancellationToken::new();
    let mut each = |_: &_| {};
    let reindex = ground
        .operator
        .reindex(Indexes::Hot, Patience::Wait, &stop, &mut each);
    let interrupt = async {
        let half_built = "select count(*) from pg_index where not indisvalid";
        until(&ground.db, half_built).await;
        until(&ground.db, "select count(*) from blocked").await;
        stop.cancel();
        session.execute("commit").await.unwrap();
    };
    let (rebuilt, ()) = tokio::join!(reindex, interrupt);
    assert!(rebuilt.unwrap().len() < 6);
    assert_eq!(
        ground
            .number("select count(*) from pg_index where not indisvalid")
            .await,
        0
    );
}

#[tokio::test]
async fn what_an_interrupted_reindex_left_behind_is_removed_by_the_next_one() {
    let ground = Ground::new().await;
    let (mut old, _) = old_session(&ground).await;
    let pool = ground.db.pool.clone();
    let half = tokio::spawn(async move {
        let mut db = pool.acquire().await.unwrap();
        let _ = db.execute("set statement_timeout = 0").await;
        let ended = db.execute("reindex index concurrently tasks_new").await;
        db.close_on_drop();
        ended.is_err()
    });
    until(
        &ground.db,
        "select count(*) from pg_index where not indisvalid",
    )
    .await;
    ground
        .typed("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like 'reindex%'")
        .await;
    assert!(half.await.unwrap());
    old.execute("commit").await.unwrap();
    assert!(
        ground
            .number("select count(*) from pg_index where not indisvalid")
            .await
            > 0
    );
    ground
        .operator
        .reindex(Indexes::Hot, NEVER, &CancellationToken::new(), &mut |_| {})
        .await
        .unwrap();
    assert_eq!(
        ground
            .number("select count(*) from pg_index where not indisvalid")
            .await,
        0
    );
}
