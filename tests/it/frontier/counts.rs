//! How many tasks stand at each status: exact whatever changed them.

use super::{Ground, done};

/// Fails unless `progress` tells what counting tells.
async fn assert_exact(ground: &Ground, after: &str) {
    let told = ground
        .column("select new, claimed, done, failed, excluded, tasks from progress")
        .await;
    let counted = ground
        .column(
            "select count(*) filter (where status = 'new'), count(*) filter (where status = 'claimed'),
                    count(*) filter (where status = 'done'), count(*) filter (where status = 'failed'),
                    count(*) filter (where status = 'excluded'), count(*) from tasks",
        )
        .await;
    assert_eq!(told, counted, "after {after}");
}

#[tokio::test]
async fn the_counts_are_exact_after_whatever_is_typed() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    let seeds: Vec<String> = (0..20)
        .map(|page| format!("https://a.example/{page}"))
        .collect();
    ground
        .seed(me, &seeds.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    assert_exact(&ground, "seeding").await;
    let host = ground.claim_host(me).await;
    assert_exact(&ground, "a claim").await;
    ground
        .finish(me, &host.tasks[..10].iter().map(done).collect::<Vec<_>>())
        .await;
    assert_exact(&ground, "a finish").await;
    for typed in [
        "update tasks set status = 'excluded' where id in (select id from tasks order by id limit 3)",
        "update tasks set status = 'new' where status = 'claimed'",
        "update tasks set priority = 3",
        "update tasks set status = 'failed' where id = 7",
        "delete from tasks where id = 8",
        "delete from tasks where id = 8",
    ] {
        ground.typed(typed).await;
        assert_exact(&ground, typed).await;
        ground.frontier.fold_counts().await.unwrap();
        assert_exact(&ground, "folding").await;
    }
    ground
        .typed("update tasks set status = 'new' where status = 'done'")
        .await;
    ground.typed("truncate tasks").await;
    assert_exact(&ground, "truncate").await;
    ground.frontier.fold_counts().await.unwrap();
    ground.seed(me, &["https://a.example/"]).await;
    assert_exact(&ground, "a new beginning").await;
}

#[tokio::test]
async fn a_change_that_is_rolled_back_is_not_counted() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let mut transaction = ground.db.pool.begin().await.unwrap();
    sqlx::query("delete from tasks")
        .execute(&mut *transaction)
        .await
        .unwrap();
    ground.frontier.fold_counts().await.unwrap();
    transaction.rollback().await.unwrap();
    assert_exact(&ground, "a rollback").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folding_by_several_at_once_loses_and_doubles_nothing() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    let folding: Vec<_> = (0..3)
        .map(|_| {
            let frontier = ground.frontier.clone();
            tokio::spawn(async move {
                for _ in 0..60 {
                    frontier.fold_counts().await.unwrap();
                }
            })
        })
        .collect();
    for page in 0..60 {
        ground
            .seed(me, &[&format!("https://a.example/{page}")])
            .await;
        if page % 3 == 0 {
            ground.claim(me).await;
        }
    }
    for folder in folding {
        folder.await.unwrap();
    }
    assert_exact(&ground, "folding at once").await;
    ground.frontier.fold_counts().await.unwrap();
    assert_eq!(
        ground
            .number("select count(*) from task_count_changes")
            .await,
        0
    );
    assert_exact(&ground, "the last fold").await;
}
