//! Changes of tasks, one by one.

use std::{ops::ControlFlow, time::Duration};

use pgcrawl::frontier::{
    Finish,
    operate::{Change, Condition, Ended, Tally},
};

use super::{Ground, done, failed, on, page, until};

/// How a task stands, without its time.
const STANDING: &str = "select status, attempts, expiries, deferrals, reason is null, available_at is null from tasks order by id";

#[tokio::test]
async fn a_retried_task_is_as_if_it_had_never_been_tried() {
    let ground = Ground::new().await;
    ground
        .seed(&[
            "http://a.example/1",
            "http://a.example/2",
            "http://b.example/3",
        ])
        .await;
    ground
        .end_all(|url| match url {
            "http://a.example/1" => failed("timeout", None),
            "http://a.example/2" => failed("http_503", Some(Duration::from_secs(3600))),
            _ => done(),
        })
        .await;
    ground
        .typed("update tasks set expiries = 3, deferrals = 2, detail = 'words' where status = 'failed'")
        .await;
    let tally = ground.change(Change::Retry, "true").await;
    assert_eq!((tally.tasks, tally.hosts), (2, 1));
    assert_eq!(
        ground.column(STANDING).await,
        ["new,0,0,0,t,t", "new,0,0,0,t,t", "done,1,0,0,t,t"]
    );
    assert_eq!(
        ground.claimed_urls().await,
        ["http://a.example/1", "http://a.example/2"]
    );
    ground.assert_sound().await;
}

#[tokio::test]
async fn a_retry_reopens_the_hosts_of_its_tasks_and_no_others() {
    let ground = Ground::new().await;
    ground
        .seed(&[
            "http://a.example/1",
            "http://b.example/1",
            "http://c.example/1",
        ])
        .await;
    ground.end_all(|_| failed("host_down", None)).await;
    ground
        .typed("update hosts set given_up_at = now(), failures = 5, pauses = 3, robots_failures = 2, note = 'silent', deferred_until = now() + interval '1 hour'")
        .await;
    ground
        .typed("update hosts set deferred_until = 'infinity', note = 'asked us to' where authority = 'http://b.example'")
        .await;
    let tally = ground
        .change(Change::Retry, "authority <> 'http://c.example'")
        .await;
    assert_eq!((tally.tasks, tally.reopened), (2, 2));
    let hosts = "select given_up_at is null, failures, pauses, robots_failures, note, deferred_until is null, deferred_until = 'infinity' from hosts order by authority";
    assert_eq!(
        ground.column(hosts).await,
        [
            "t,0,0,0,,t,",
            "t,0,0,0,\"asked us to\",f,t",
            "f,5,3,2,silent,f,f"
        ]
    );
    assert_eq!(ground.claimed_urls().await, ["http://a.example/1"]);
    ground.assert_sound().await;
}

#[tokio::test]
async fn a_retry_or_requeue_forgets_the_breakers_wait_and_keeps_a_server_s() {
    let ground = Ground::new().await;
    ground
        .seed(&["http://a.example/1", "http://b.example/1"])
        .await;
    ground.end_all(|_| failed("http_404", None)).await;
    for change in [Change::Retry, Change::Requeue] {
        ground
            .typed("update hosts set deferred_until = now() + interval '1 hour', note = 'Retry-After', failures = 1")
            .await;
        ground
            .typed(
                "update hosts set pauses = 1, note = 'silent' where authority = 'http://b.example'",
            )
            .await;
        let tally = ground.change(change, "true").await;
        assert_eq!((tally.tasks, tally.reopened), (2, 2));
        let hosts = "select deferred_until > now(), note, failures from hosts order by authority";
        assert_eq!(ground.column(hosts).await, ["t,Retry-After,0", ",,0"]);
        assert_eq!(ground.claimed_urls().await, ["http://b.example/1"]);
        ground
            .typed("update tasks set status = 'failed', claimed_by = null, claimed_at = null")
            .await;
    }
}

/// Else the tasks behind the first look, of 50,000, would no longer fit the condition.
#[tokio::test]
async fn a_condition_on_the_hosts_that_a_retry_reopens_holds_for_all_their_tasks() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/"]).await;
    ground.end_all(|_| done()).await;
    ground
        .typed(
            "insert into tasks (host_id, url, url_digest, status, reason)
             select 1, 'http://a.example/' || n, md5(n::text)::uuid, 'failed', 'host_down' from generate_series(1, 60000) n",
        )
        .await;
    ground
        .typed("update hosts set given_up_at = now() where id = 1")
        .await;
    let tally = ground
        .change(
            Change::Retry,
            "host_id in (select id from hosts where given_up_at is not null)",
        )
        .await;
    assert_eq!((tally.tasks, tally.reopened), (60_000, 1));
    assert_eq!(
        ground
            .number("select count(*) from tasks where status = 'new'")
            .await,
        60_000
    );
}

#[tokio::test]
async fn told_to_stop_between_two_batches_it_leaves_the_rest_and_the_same_order_does_it() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/"]).await;
    ground.end_all(|_| done()).await;
    ground
        .typed(
            "insert into tasks (host_id, url, url_digest, status, reason)
             select 1, 'http://a.example/' || n, md5(n::text)::uuid, 'failed', 'host_down' from generate_series(1, 25000) n",
        )
        .await;
    let stop = |tally: &Tally| match tally.tasks {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    for which in [Condition::every(), ground.condition("depth = 0").await] {
        let mut stop = stop;
        let tally = ground
            .operator
            .change(Change::Retry, &which, &mut stop)
            .await
            .unwrap();
        assert_eq!((tally.tasks, tally.ended), (10_000, Ended::CutOff));
    }
    let rest = ground.change(Change::Retry, "true").await;
    assert_eq!((rest.tasks, rest.ended), (5_000, Ended::Whole));
    let counts = "select new, done, failed from progress";
    assert_eq!(ground.column(counts).await, ["25000,1,0"]);
}

#[tokio::test]
async fn what_is_done_failed_or_excluded_is_visited_again_by_a_requeue() {
    let ground = Ground::new().await;
    ground
        .seed(&[
            "http://a.example/1",
            "http://a.example/2",
            "http://a.example/3",
        ])
        .await;
    ground
        .typed("update tasks set status = 'excluded', reason = 'operator' where url like '%3'")
        .await;
    ground
        .end_all(|url| match url {
            "http://a.example/1" => failed("timeout", None),
            _ => done(),
        })
        .await;
    let tally = ground.change(Change::Requeue, "http_status is null").await;
    assert_eq!(tally.tasks, 1);
    let tally = ground.change(Change::Requeue, "http_status = 503").await;
    assert_eq!(tally.tasks, 2);
    assert_eq!(ground.claimed_urls().await.len(), 3);
    ground.assert_sound().await;
}

#[tokio::test]
async fn what_is_open_is_excluded_and_the_late_finish_of_a_claimed_one_is_refused() {
    let ground = Ground::new().await;
    ground
        .seed(&["http://a.example/1", "http://a.example/2"])
        .await;
    ground
        .end_all(|url| match url {
            "http://a.example/1" => failed("timeout", Some(Duration::from_secs(3600))),
            _ => failed("timeout", None),
        })
        .await;
    ground.seed(&["http://a.example/3"]).await;
    let mut claim = ground.claim().await;
    let task = claim.hosts.remove(0).tasks.remove(0);
    ground.seed(&["http://a.example/4"]).await;
    let tally = ground.change(Change::Exclude, "url like '%/_'").await;
    assert_eq!(tally.tasks, 3);
    let late = Finish {
        task: task.id,
        claim_version: task.claim_version,
        outcome: done(),
        page: Some(page()),
        links: Vec::new(),
        edges: Vec::new(),
    };
    assert_eq!(
        ground
            .frontier()
            .finish(ground.worker, &[late])
            .await
            .unwrap(),
        [false]
    );
    assert_eq!(
        ground
            .column("select status, reason, detail from tasks order by url")
            .await,
        [
            "excluded,operator,\"url like '%/_'\"",
            "failed,timeout,",
            "excluded,operator,\"url like '%/_'\"",
            "excluded,operator,\"url like '%/_'\""
        ]
    );
    ground.assert_sound().await;
}

#[tokio::test]
async fn a_better_priority_comes_first_within_its_host_also_behind_the_mark() {
    let ground = Ground::new().await;
    let urls: Vec<String> = (1..=6).map(|n| format!("http://a.example/{n}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    ground.seed(&urls).await;
    // The mark passes the first two, which come back behind it.
    ground
        .typed("update hosts set low_id = 2, low_priority = 0")
        .await;
    let tally = ground
        .change(Change::Reprioritise(-5), "url like '%/2' or url like '%/5'")
        .await;
    assert_eq!(tally.tasks, 2);
    ground
        .change(Change::Reprioritise(7), "url like '%/3'")
        .await;
    let again = ground
        .change(Change::Reprioritise(7), "url like '%/3'")
        .await;
    assert_eq!(again.tasks, 0, "it has that priority already");
    let best = ground
        .column("select url from tasks order by priority, id")
        .await;
    assert!(best[5].ends_with("/3"), "{best:?}");
    assert_eq!(ground.claimed_urls().await, best);
    ground.assert_sound().await;
}

#[tokio::test]
async fn what_is_closed_for_good_gets_no_other_priority() {
    let ground = Ground::new().await;
    ground
        .seed(&[
            "http://a.example/done",
            "http://a.example/failed",
            "http://a.example/waits",
        ])
        .await;
    ground
        .end_all(|url| match url {
            "http://a.example/failed" => failed("http_404", None),
            "http://a.example/waits" => failed("http_503", Some(Duration::from_secs(3600))),
            _ => done(),
        })
        .await;
    ground.seed(&["http://a.example/new"]).await;
    let tally = ground.change(Change::Reprioritise(3), "true").await;
    assert_eq!(tally.tasks, 2);
    let moved = "select url from tasks where priority = 3 order by id";
    assert_eq!(
        ground.column(moved).await,
        ["http://a.example/waits", "http://a.example/new"]
    );
}

/// What is locked is waited for, and not left out.
#[tokio::test]
async fn a_task_that_a_finish_has_locked_is_changed_after_it() {
    let ground = Ground::new().await;
    ground
        .seed(&["http://a.example/1", "http://a.example/2"])
        .await;
    let mut other = ground.db.pool.begin().await.unwrap();
    sqlx::query("update tasks set depth = 1 where url like '%/1'")
        .execute(&mut *other)
        .await
        .unwrap();
    let which = Condition::every();
    let mut between = on;
    let change = ground
        .operator
        .change(Change::Exclude, &which, &mut between);
    let release = async {
        until(&ground.db, "select count(*) from blocked").await;
        other.commit().await.unwrap();
    };
    let (tally, ()) = tokio::join!(change, release);
    assert_eq!(tally.unwrap().tasks, 2);
}

#[tokio::test]
async fn what_was_finished_meanwhile_is_left_alone() {
    let ground = Ground::new().await;
    ground
        .seed(&["http://a.example/1", "http://a.example/2"])
        .await;
    let mut other = ground.db.pool.begin().await.unwrap();
    sqlx::query("update tasks set status = 'done', claim_version = 1 where url like '%/1'")
        .execute(&mut *other)
        .await
        .unwrap();
    let which = Condition::every();
    let mut between = on;
    let change = ground
        .operator
        .change(Change::Exclude, &which, &mut between);
    let release = async {
        until(&ground.db, "select count(*) from blocked").await;
        other.commit().await.unwrap();
    };
    let (tally, ()) = tokio::join!(change, release);
    assert_eq!(tally.unwrap().tasks, 1);
    assert_eq!(
        ground.column("select status from tasks order by id").await,
        ["done", "excluded"]
    );
}
