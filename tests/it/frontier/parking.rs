//! Hosts fall asleep without new tasks and are woken by them, by whichever statement. The races are held in place by an open transaction.

use pgcrawl::frontier::HostId;
use sqlx::{AssertSqlSafe, PgConnection};

use super::protocol::Changed;
use super::{Ground, done, identity};

#[tokio::test]
async fn a_host_without_new_tasks_falls_asleep_and_a_link_wakes_it() {
    let ground = Ground::new().await;
    let host = asleep(&ground).await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/new"]).await;
    assert!(is_awake(&ground).await);
    assert_eq!(ground.claim_host(me).await.id, host);
}

#[tokio::test]
async fn a_host_with_a_new_task_does_not_fall_asleep() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.host("https://a.example/").await;
    assert_eq!(ground.frontier.park(&[host]).await.unwrap(), 0);
    assert!(is_awake(&ground).await);
}

#[tokio::test]
async fn parking_finds_what_lies_behind_the_mark() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    ground
        .typed("update hosts set low_priority = 5, low_id = 1000, low_since = now()")
        .await;
    let claim = ground.claim(me).await;
    assert_eq!((claim.hosts.len(), claim.empty.len()), (0, 1));
    assert_eq!(ground.frontier.park(&claim.empty).await.unwrap(), 0);
    assert_eq!(ground.claim_host(me).await.tasks.len(), 1);
}

#[tokio::test]
async fn a_status_that_an_operator_types_wakes_the_host_and_clears_the_columns_of_the_old_one() {
    let ground = Ground::new().await;
    asleep(&ground).await;
    ground
        .typed("update tasks set available_at = now() + interval '1 day'")
        .await;
    ground.typed("update tasks set status = 'new'").await;
    assert!(is_awake(&ground).await);
    let me = ground.worker("me").await;
    let task = ground.claim_task(me).await;
    assert_eq!(
        ground
            .number("select count(*) from tasks where available_at is null")
            .await,
        1
    );
    // Also in the middle of a claim.
    ground.typed("update tasks set status = 'excluded'").await;
    assert_eq!(
        ground
            .number("select count(*) from tasks where claimed_by is null and claimed_at is null")
            .await,
        1
    );
    assert_eq!(ground.finish(me, &[done(&task)]).await, [false]);
}

#[tokio::test]
async fn a_better_priority_that_an_operator_types_is_found_behind_the_mark() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground
        .seed(me, &["https://a.example/1", "https://a.example/2"])
        .await;
    ground
        .typed("update hosts set low_priority = 0, low_id = 1, low_since = now()")
        .await;
    ground
        .typed("update tasks set priority = -5 where url like '%2'")
        .await;
    let urls: Vec<_> = ground
        .claim_host(me)
        .await
        .tasks
        .into_iter()
        .map(|task| task.url)
        .collect();
    assert_eq!(urls, ["https://a.example/2", "https://a.example/1"]);
}

#[tokio::test]
async fn tasks_are_written_under_read_committed_only() {
    let ground = Ground::new().await;
    asleep(&ground).await;
    for (isolation, sql) in [
        ("repeatable read", "update tasks set status = 'new'"),
        ("serializable", "select park_hosts('{1}')"),
    ] {
        let mut transaction = ground
            .db
            .pool
            .begin_with(AssertSqlSafe(format!("begin isolation level {isolation}")))
            .await
            .unwrap();
        let error = sqlx::query(sql)
            .execute(&mut *transaction)
            .await
            .unwrap_err();
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        assert_eq!(code.as_deref(), Some("25000"), "{error}");
        transaction.rollback().await.unwrap();
    }
}

/// An uncommitted statement makes a task of an awake host new while the host is parked; then it commits.
/// Answers whether the host is awake, as it must be.
async fn is_awake_after_the_race(changed: &Changed, makes_new: &str) -> bool {
    let ground = Ground::new().await;
    changed.apply(&ground.db.pool).await;
    let host = asleep(&ground).await;
    // Awake for nothing: a claim finds it empty, and would park it.
    ground.typed("update hosts set has_new = true").await;
    let claim = ground.claim(ground.worker("parker").await).await;
    assert_eq!(claim.empty, [host]);
    let mut transaction = ground.db.pool.begin().await.unwrap();
    write(&mut transaction, makes_new).await;
    ground.frontier.park(&claim.empty).await.unwrap();
    transaction.commit().await.unwrap();
    is_awake(&ground).await
}

async fn write(connection: &mut PgConnection, sql: &str) {
    sqlx::query(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
        .expect(sql);
}

const INSERTS: &str = "insert into tasks (host_id, url, url_digest) select id, authority || '/new', gen_random_uuid() from hosts";
const UPDATES: &str = "update tasks set status = 'new'";

fn without_key_share() -> Changed {
    Changed {
        functions: vec![("wake_hosts", vec![("    for key share;", "    ;")])],
        ..Changed::default()
    }
}

#[tokio::test]
async fn a_host_is_not_parked_while_a_task_of_it_becomes_new() {
    for makes_new in [INSERTS, UPDATES] {
        assert!(
            is_awake_after_the_race(&Changed::default(), makes_new).await,
            "{makes_new}"
        );
    }
}

#[tokio::test]
async fn without_the_foreign_key_the_key_share_of_waking_keeps_a_host_awake() {
    let changed = Changed {
        schema: vec!["alter table tasks drop constraint tasks_host_id_fkey".to_owned()],
        ..Changed::default()
    };
    assert!(is_awake_after_the_race(&changed, INSERTS).await);
}

#[tokio::test]
async fn without_the_key_share_of_waking_a_typed_status_would_leave_the_host_asleep() {
    assert!(!is_awake_after_the_race(&without_key_share(), UPDATES).await);
}

#[tokio::test]
async fn without_the_key_share_of_waking_the_foreign_key_alone_keeps_a_host_awake_for_a_link() {
    assert!(is_awake_after_the_race(&without_key_share(), INSERTS).await);
}

#[tokio::test]
async fn parked_without_a_lock_a_host_would_stay_asleep() {
    let changed = Changed {
        functions: vec![(
            "park_hosts",
            vec![("          for update skip locked) s;", "          ) s;")],
        )],
        ..Changed::default()
    };
    assert!(!is_awake_after_the_race(&changed, UPDATES).await);
}

#[tokio::test]
async fn who_inserts_while_a_host_is_being_parked_waits_and_wakes_it() {
    let ground = Ground::new().await;
    let host = asleep(&ground).await;
    ground.typed("update hosts set has_new = true").await;
    let mut parking = ground.db.pool.begin().await.unwrap();
    let parked: i32 = sqlx::query_scalar("select park_hosts(array[$1])")
        .bind(host.0)
        .fetch_one(&mut *parking)
        .await
        .unwrap();
    assert_eq!(parked, 1);
    let pool = ground.db.pool.clone();
    let inserting = tokio::spawn(async move { sqlx::query(INSERTS).execute(&pool).await });
    until_blocked_by(&ground, &mut parking, &inserting).await;
    assert!(!inserting.is_finished(), "it did not wait");
    parking.commit().await.unwrap();
    inserting.await.unwrap().unwrap();
    assert!(is_awake(&ground).await);
}

/// A host whose one task is done, parked.
async fn asleep(ground: &Ground) -> HostId {
    let worker = ground.frontier.join(&identity("before")).await.unwrap();
    ground.seed(worker, &["https://a.example/"]).await;
    let host = ground.claim_host(worker).await;
    ground.finish(worker, &[done(&host.tasks[0])]).await;
    let claim = ground.claim(worker).await;
    assert_eq!(claim.empty, [host.id]);
    assert_eq!(ground.frontier.park(&claim.empty).await.unwrap(), 1);
    assert!(!is_awake(ground).await);
    host.id
}

async fn is_awake(ground: &Ground) -> bool {
    ground
        .number("select count(*) from hosts where has_new")
        .await
        == 1
}

/// A statement with new tasks of both hosts waits for the second, to wake it; meanwhile a claim moves the mark of the first past its task.
/// Then another, who has locked the first, wants the second.
#[tokio::test]
async fn waking_keeps_the_order_of_hosts_also_when_a_mark_moves_meanwhile() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground
        .seed(me, &["https://h1.example/", "https://h2.example/"])
        .await;
    let ids = ground.column("select id from hosts order by id").await;
    let (one, two) = (ids[0].as_str(), ids[1].as_str());
    ground
        .typed(&format!(
            "update hosts set has_new = false where id = {two}"
        ))
        .await;
    let lock = |id: &str| format!("select from hosts where id = {id} for no key update");
    let mut first = ground.db.pool.begin().await.unwrap();
    write(&mut first, &lock(two)).await;
    let pool = ground.db.pool.clone();
    let waking = tokio::spawn(async move { sqlx::query(INSERTS).execute(&pool).await });
    until_blocked_by(&ground, &mut first, &waking).await;
    ground
        .typed(&format!(
            "update hosts set low_priority = 0, low_id = 1000000 where id = {one}"
        ))
        .await;
    let mut other = ground.db.pool.begin().await.unwrap();
    write(&mut other, &lock(one)).await;
    first.commit().await.unwrap();
    until_blocked_by(&ground, &mut other, &waking).await;
    write(&mut other, &lock(two)).await;
    other.commit().await.unwrap();
    waking.await.unwrap().expect("no deadlock");
}

/// Waits until somebody waits for a transaction, or the statement that might has ended.
async fn until_blocked_by<T>(
    ground: &Ground,
    transaction: &mut PgConnection,
    statement: &tokio::task::JoinHandle<T>,
) {
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()")
        .fetch_one(transaction)
        .await
        .unwrap();
    let blocked = format!(
        "select count(*) from pg_stat_activity where datname = current_database() and {pid} = any (pg_blocking_pids(pid))"
    );
    while !statement.is_finished() && ground.number(&blocked).await == 0 {
        tokio::task::yield_now().await;
    }
}
