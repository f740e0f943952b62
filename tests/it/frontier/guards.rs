//! The protocol without one of its guards: the trials of [`super::chaos`] must notice, or they would notice nothing.
//!
//! What rests on a race of two statements that can be held in place is tried in [`super::parking`] and [`super::finish`].

use super::crawlers::Trial;
use super::protocol::{CLAIM, Changed, FINISH, RELEASE, replaced};
use super::web::Delays;

/// How often a trial may miss what it is to find: its races are left to chance. Most find it in the first round; three were too few once.
const ROUNDS: usize = 12;

/// Runs a changed protocol until something of `what` is broken.
async fn assert_breaks(what: &'static [&'static str], trial: impl Fn() -> Trial) {
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let mut trial = trial();
        trial.expected = what;
        let findings = trial.run().await;
        if what.iter().any(|what| findings.broken.contains_key(*what)) {
            return;
        }
        seen.push(findings);
    }
    panic!("none of {what:?} in {seen:#?}");
}

/// A trial of which only the beginning counts.
fn brief(hosts: u32, pages: u32, delays: Delays, changed: Changed) -> Trial {
    let mut trial = Trial::new(hosts, pages, delays);
    trial.changed = changed;
    trial.limit = std::time::Duration::from_secs(8);
    trial
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_fence_of_the_finish_a_task_is_finished_twice() {
    let finish = replaced(FINISH, "and claimed_by = $1::int", "");
    let finish = replaced(&finish, "and claim_version = v.claim_version", "");
    let changed = Changed {
        finish: Some(finish),
        ..Changed::default()
    };
    assert_breaks(&["a task finished more than once"], || {
        let mut trial = brief(1, 10_000, Delays::None, changed.clone());
        trial.rough = trial.limit;
        trial
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_hold_two_fetch_from_a_host_at_once() {
    let claim = replaced(
        CLAIM,
        "case when l.n > 0 and l.hold then now() + make_interval(secs => ($6::int + l.delay) / 1000.0)\n                            else now() end",
        "now()",
    );
    let changed = Changed {
        claim: Some(claim),
        ..Changed::default()
    };
    assert_breaks(&["two fetches too close on a host"], || {
        brief(20, 800, Delays::All, changed.clone())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_fence_of_the_release_two_fetch_from_a_host_at_once() {
    let release = replaced(
        RELEASE,
        "        and x.held_by = $1::int\n        and x.hold_version = r.hold_version\n",
        "",
    );
    let changed = Changed {
        release: Some(release),
        ..Changed::default()
    };
    assert_breaks(&["two fetches too close on a host"], || {
        let mut trial = brief(20, 4_000, Delays::All, changed.clone());
        trial.rough = trial.limit;
        trial
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_reset_of_the_low_water_mark_the_crawl_does_not_end() {
    let changed = Changed {
        functions: vec![
            (
                "wake_hosts",
                vec![
                    (
                        "(not h.has_new or (w.priority, w.task_id) <= (h.low_priority, h.low_id))",
                        "not h.has_new",
                    ),
                    (
                        "case when (w.priority, w.task_id) <= (h.low_priority, h.low_id) then w.priority else h.low_priority end",
                        "h.low_priority",
                    ),
                    (
                        "case when (w.priority, w.task_id) <= (h.low_priority, h.low_id) then w.task_id - 1 else h.low_id end",
                        "h.low_id",
                    ),
                ],
            ),
            (
                "park_hosts",
                vec![(
                    "    set low_priority = '-32768',\n        low_id       = 0\n    from (select",
                    "    set low_id = h.low_id\n    from (select",
                )],
            ),
        ],
        ..Changed::default()
    };
    assert_breaks(&["a crawl that does not end"], || {
        let mut trial = brief(20, 400, Delays::None, changed.clone());
        // Or the claim itself would look without it after a while.
        trial.mark_age = std::time::Duration::from_secs(3_600);
        trial
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_tasks_done_before_links_are_inserted_finishes_deadlock() {
    // The anti-join makes it rare: a page must become a task and be visited while a finish that links to it is under way.
    let finish = replaced(FINISH, "    where k.known is null\n", "");
    let finish = replaced(&finish, "(select n from inserted) >= 0", "true");
    let changed = Changed {
        finish: Some(finish),
        ..Changed::default()
    };
    assert_breaks(&["a deadlock"], || {
        let mut trial = brief(1, 1_500, Delays::None, changed.clone());
        trial.slow = true;
        trial
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_order_of_insertion_finishes_deadlock() {
    let finish = replaced(
        FINISH,
        "    order by n.host_id, n.url_digest    -- all",
        "    order by md5(n.url || pg_backend_pid())    -- all",
    );
    // Between two insertions of a statement there is time for those of another.
    let slow = "
        create function slow_row() returns trigger language plpgsql as $$
        begin
            perform pg_sleep(0.002);
            return new;
        end $$;
        create trigger slow_row before insert on tasks for each row execute function slow_row()";
    let changed = Changed {
        finish: Some(finish),
        schema: vec![slow.to_owned()],
        ..Changed::default()
    };
    assert_breaks(&["a deadlock"], || {
        brief(1, 2_000, Delays::None, changed.clone())
    })
    .await;
}

/// Small hosts, so that they fall asleep and are woken all the time.
fn sleepy(changed: &Changed) -> Trial {
    let mut trial = brief(400, 4_000, Delays::None, changed.clone());
    trial.slow = true;
    trial
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_lock_on_the_host_of_a_new_task_the_host_stays_asleep() {
    let changed = Changed {
        schema: vec!["alter table tasks drop constraint tasks_host_id_fkey".to_owned()],
        functions: vec![("wake_hosts", vec![("    for key share;", "    ;")])],
        ..Changed::default()
    };
    assert_breaks(&["a host asleep with new tasks"], || sleepy(&changed)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_locks_of_parking_a_host_stays_asleep() {
    let changed = Changed {
        functions: vec![(
            "park_hosts",
            vec![(
                "    select array_agg(id)\n    into locked\n    from (select id\n          from hosts\n          where id = any (host_ids)\n            and has_new\n          order by id\n          for update skip locked) s;",
                "    locked := host_ids;",
            )],
        )],
        ..Changed::default()
    };
    assert_breaks(&["a host asleep with new tasks"], || sleepy(&changed)).await;
}
