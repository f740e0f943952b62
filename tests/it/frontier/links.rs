//! The link graph and repeated pages, as the finish writes them: links are those of the page's row, of the same visit.

use pgcrawl::frontier::{
    ClaimedTask, Edge, Finish, Finished, FrontierSettings, HostId, Outcome, Target, TaskId,
    WorkerId,
};
use pgcrawl::pages::PageRow;

use super::{Ground, done, edge, failed, link, page, settings, url};

const LINKS: &str = "select v.url, l.place, coalesce(t.url, l.to_url), l.kind, l.nofollow, l.rel, l.anchor
    from links l join tasks v on v.id = l.from_task left join tasks t on t.id = l.to_task order by v.id, l.place";

/// A frontier with these seeds, all of them claimed by one worker.
async fn claimed(
    settings: FrontierSettings,
    seeds: &[&str],
) -> (Ground, WorkerId, HostId, Vec<ClaimedTask>) {
    let ground = Ground::with(settings).await;
    let me = ground.worker("me").await;
    ground.seed(me, seeds).await;
    let mut host = ground.claim_host(me).await;
    host.tasks.sort_by(|one, other| one.url.cmp(&other.url));
    (ground, me, host.id, host.tasks)
}

/// A visit whose links lead to these URLs, each a task if it was none.
fn linking(task: &ClaimedTask, host: HostId, to: &[&str]) -> Finish {
    Finish {
        links: to.iter().map(|to| link(host, to)).collect(),
        edges: to.iter().map(|to| edge(host, to)).collect(),
        ..done(task)
    }
}

impl Ground {
    async fn tell(&self, worker: WorkerId, batch: &[Finish]) -> Vec<Finished> {
        self.frontier.finish_and_tell(worker, batch).await.unwrap()
    }

    /// Claims once more what was done.
    async fn claim_again(&self, worker: WorkerId, like: &str) -> ClaimedTask {
        self.typed(&format!("update tasks set status = 'excluded' where status = 'new'; update tasks set status = 'new' where url like '{like}'"))
            .await;
        self.claim_task(worker).await
    }
}

#[tokio::test]
async fn a_link_leads_to_the_task_that_the_same_batch_makes_or_another_made_before() {
    let (ground, me, host, tasks) =
        claimed(settings(), &["https://a.example/1", "https://a.example/2"]).await;
    let told = ground
        .tell(
            me,
            &[
                linking(
                    &tasks[0],
                    host,
                    &["https://a.example/2", "https://a.example/new"],
                ),
                linking(
                    &tasks[1],
                    host,
                    &["https://a.example/new", "https://a.example/2"],
                ),
            ],
        )
        .await;
    let new = TaskId(
        ground
            .number("select id from tasks where url like '%new'")
            .await,
    );
    assert_eq!(told[0].tasks, [Some(tasks[1].id), Some(new)]);
    assert_eq!(told[1].tasks, [Some(new), Some(tasks[1].id)]);
    assert_eq!(
        ground
            .column("select from_task, place, to_task from links order by 1, 2")
            .await,
        [
            format!("{},1,{}", tasks[0].id.0, tasks[1].id.0),
            format!("{},2,{}", tasks[0].id.0, new.0),
            format!("{},1,{}", tasks[1].id.0, new.0),
            format!("{},2,{}", tasks[1].id.0, tasks[1].id.0),
        ]
    );
}

#[tokio::test]
async fn a_link_to_no_task_is_kept_with_its_url_or_not_at_all() {
    let (ground, me, host, tasks) = claimed(settings(), &["https://a.example/"]).await;
    let unknown = |keep: bool| Edge {
        target: Target::Url {
            host,
            digest: url("https://a.example/withheld").digest(&pgcrawl::canon::BASE),
            url: keep.then(|| "https://a.example/withheld".to_owned()),
        },
        nofollow: true,
        ..edge(host, "https://a.example/withheld")
    };
    let elsewhere = Edge {
        target: Target::Elsewhere("https://other.example/".to_owned()),
        rel: Some("external".into()),
        ..edge(host, "https://a.example/")
    };
    let known = Edge {
        target: Target::Task(tasks[0].id),
        kind: "canonical",
        anchor: None,
        ..edge(host, "https://a.example/")
    };
    let visit = Finish {
        edges: vec![unknown(false), unknown(true), elsewhere, known],
        ..done(&tasks[0])
    };
    let told = ground.tell(me, &[visit]).await;
    assert_eq!(told[0].tasks, [None; 4]);
    assert_eq!(
        ground.column(LINKS).await,
        [
            "https://a.example/,1,https://a.example/withheld,a,t,,\"a text\"",
            "https://a.example/,2,https://other.example/,a,f,external,\"a text\"",
            "https://a.example/,3,https://a.example/,canonical,f,,",
        ]
    );
}

#[tokio::test]
async fn a_revisit_replaces_the_links_of_its_page_alone_and_writes_what_changed() {
    let (ground, me, host, tasks) =
        claimed(settings(), &["https://a.example/1", "https://a.example/2"]).await;
    let before = [
        "https://a.example/a",
        "https://a.example/b",
        "https://a.example/c",
    ];
    ground
        .finish(
            me,
            &[
                linking(&tasks[0], host, &before),
                linking(&tasks[1], host, &before),
            ],
        )
        .await;
    let rows = "select place, ctid, xmin from links where from_task = (select min(id) from tasks) order by place";
    let other = "select place, to_task, xmin from links where from_task = (select min(id) + 1 from tasks) order by place";
    let (first, others) = (ground.column(rows).await, ground.column(other).await);

    let again = ground.claim_again(me, "%/1").await;
    ground
        .finish(
            me,
            &[linking(
                &again,
                host,
                &["https://a.example/a", "https://a.example/d"],
            )],
        )
        .await;
    let second = ground.column(rows).await;
    assert_eq!(second.len(), 2);
    assert_eq!(second[0], first[0], "an unchanged link was written anew");
    assert_ne!(second[1], first[1]);
    assert_eq!(
        ground.column("select t.url from links l join tasks t on t.id = l.to_task where from_task = (select min(id) from tasks) order by place").await,
        ["https://a.example/a", "https://a.example/d"]
    );
    assert_eq!(ground.column(other).await, others);

    let again = ground.claim_again(me, "%/1").await;
    ground.finish(me, &[done(&again)]).await;
    assert_eq!(ground.column(rows).await, Vec::<String>::new());
    assert_eq!(ground.column(other).await, others);
}

#[tokio::test]
async fn links_stay_with_the_row_of_their_page() {
    let (ground, me, host, tasks) = claimed(settings(), &["https://a.example/"]).await;
    let visit = linking(
        &tasks[0],
        host,
        &["https://a.example/", "https://a.example/a"],
    );
    ground.finish(me, &[visit]).await;
    let links = "select count(*) from links";

    // 304: as it was.
    let again = ground.claim_again(me, "%/").await;
    let unmodified = Finish {
        page: Some(PageRow {
            http_status: Some(304),
            headers: Some("{}".to_owned()),
            ..page()
        }),
        ..done(&again)
    };
    ground.finish(me, &[unmodified]).await;
    assert_eq!(ground.number(links).await, 2);

    // Not asked for.
    let again = ground.claim_again(me, "%/").await;
    let excluded = Finish {
        outcome: Outcome::Excluded {
            reason: "robots".to_owned(),
            detail: None,
        },
        page: None,
        ..done(&again)
    };
    ground.finish(me, &[excluded]).await;
    assert_eq!(ground.number(links).await, 2);

    // Refused.
    let again = ground.claim_again(me, "%/").await;
    let stale = ClaimedTask {
        claim_version: again.claim_version - 1,
        ..again.clone()
    };
    assert_eq!(
        ground
            .finish(me, &[linking(&stale, host, &["https://a.example/b"])])
            .await,
        [false]
    );
    assert_eq!(ground.number(links).await, 2);
    assert_eq!(ground.number("select count(*) from tasks").await, 2);

    // No answer: the row of the page is gone as well.
    ground.finish(me, &[failed(&again, None, true)]).await;
    assert_eq!(ground.number(links).await, 0);
}

/// Finishes a visit while somebody makes a task of what it links to; answers where the link leads.
async fn linked_while_somebody_else_makes_the_task(change: Option<&str>) -> Vec<String> {
    let (ground, me, host, tasks) = claimed(settings(), &["https://a.example/"]).await;
    if let Some(change) = change {
        ground.typed(change).await;
    }
    let mut other = ground.db.pool.begin().await.unwrap();
    sqlx::query("insert into tasks (host_id, url, url_digest) values ($1, $2, $3)")
        .bind(host.0)
        .bind("https://a.example/found")
        .bind(uuid::Uuid::from(
            url("https://a.example/found").digest(&pgcrawl::canon::BASE),
        ))
        .execute(&mut *other)
        .await
        .unwrap();
    let visit = linking(&tasks[0], host, &["https://a.example/found"]);
    let frontier = ground.frontier.clone();
    let ours = tokio::spawn(async move { frontier.finish(me, &[visit]).await });
    ground.somebody_waits().await;
    other.commit().await.unwrap();
    assert_eq!(ours.await.unwrap().unwrap(), [true]);
    ground
        .column("select t.url from links l join tasks t on t.id = l.to_task")
        .await
}

#[tokio::test]
async fn a_link_leads_to_a_task_that_another_made_while_the_finish_waited_for_it() {
    assert_eq!(
        linked_while_somebody_else_makes_the_task(None).await,
        ["https://a.example/found"]
    );
}

#[tokio::test]
async fn looked_up_in_the_snapshot_of_the_finish_that_task_would_be_missed() {
    let change = "alter function task_ids stable";
    assert_eq!(
        linked_while_somebody_else_makes_the_task(Some(change)).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn five_thousand_links_of_one_page_are_kept_in_their_order() {
    let (ground, me, host, tasks) = claimed(settings(), &["https://a.example/"]).await;
    let to: Vec<String> = (0..5_000)
        .map(|n| format!("https://a.example/{n}"))
        .collect();
    let to: Vec<&str> = to.iter().map(String::as_str).collect();
    ground.finish(me, &[linking(&tasks[0], host, &to)]).await;
    let wrong = "select count(*) from links l join tasks t on t.id = l.to_task where t.url <> 'https://a.example/' || l.place - 1";
    assert_eq!(ground.number("select count(*) from links").await, 5_000);
    assert_eq!(ground.number(wrong).await, 0);
}

/// A visit whose page has this payload.
fn with_payload(payload: u8, visit: Finish) -> Finish {
    Finish {
        page: Some(PageRow {
            digest: Some([payload; 32]),
            ..page()
        }),
        ..visit
    }
}

fn skipping() -> FrontierSettings {
    FrontierSettings {
        skip_duplicate_links: true,
        ..settings()
    }
}

const COPIES: &str = "select t.url, o.url from pages p join tasks t on t.id = p.task_id left join tasks o on o.id = p.duplicate_of order by t.url";

#[tokio::test]
async fn a_page_whose_own_links_are_withheld_is_no_reason_to_leave_out_those_of_its_copies() {
    let seeds = [
        "https://a.example/1",
        "https://a.example/2",
        "https://a.example/3",
        "https://a.example/4",
    ];
    let (ground, me, host, tasks) = claimed(skipping(), &seeds).await;
    let visit = |n: usize, withheld| {
        let to = format!("https://a.example/from{n}");
        let mut visit = with_payload(1, linking(&tasks[n], host, &[&to]));
        visit.page.as_mut().unwrap().links_withheld = withheld;
        visit
    };
    let told = ground.tell(me, &[visit(0, true)]).await;
    assert!(!told[0].repeats);
    // Neither one that is committed nor one of the same batch: the first that is followed is the original of all that come after.
    let told = ground.tell(me, &[visit(1, true), visit(2, false)]).await;
    assert_eq!((told[0].repeats, told[1].repeats), (true, false));
    assert!(ground.tell(me, &[visit(3, false)]).await[0].repeats);
    assert_eq!(
        ground.column(COPIES).await,
        [
            "https://a.example/1,",
            "https://a.example/2,https://a.example/3",
            "https://a.example/3,",
            "https://a.example/4,https://a.example/3",
        ]
    );
}

#[tokio::test]
async fn the_links_of_a_page_that_repeats_another_are_not_followed() {
    let seeds = [
        "https://a.example/1",
        "https://a.example/2",
        "https://a.example/3",
        "https://a.example/4",
    ];
    let (ground, me, host, tasks) = claimed(skipping(), &seeds).await;
    let visit = |n: usize, payload| {
        let to = format!("https://a.example/from{n}");
        with_payload(
            payload,
            linking(&tasks[n], host, &[&to, "https://a.example/1"]),
        )
    };
    // Two in a batch, then one more, then another page.
    let told = ground.tell(me, &[visit(0, 1), visit(1, 1)]).await;
    assert_eq!((told[0].repeats, told[1].repeats), (false, true));
    let told = ground.tell(me, &[visit(2, 1)]).await;
    assert!(told[0].accepted && told[0].repeats);
    assert!(!ground.tell(me, &[visit(3, 2)]).await[0].repeats);
    assert_eq!(
        ground
            .column("select url from tasks where via is not null order by url")
            .await,
        ["https://a.example/from0", "https://a.example/from3"]
    );
    assert_eq!(
        ground.column(COPIES).await,
        [
            "https://a.example/1,",
            "https://a.example/2,https://a.example/1",
            "https://a.example/3,https://a.example/1",
            "https://a.example/4,",
        ]
    );
    // The graph has them as far as they lead to tasks.
    assert_eq!(
        ground
            .column("select count(*) from links l join tasks t on t.id = l.from_task group by t.url order by t.url")
            .await,
        ["2", "1", "1", "2"]
    );
}

#[tokio::test]
async fn a_page_that_was_followed_does_not_become_a_copy_of_its_copies() {
    let (ground, me, host, tasks) =
        claimed(skipping(), &["https://a.example/1", "https://a.example/2"]).await;
    let both = [
        with_payload(1, linking(&tasks[0], host, &[])),
        with_payload(1, linking(&tasks[1], host, &[])),
    ];
    ground.finish(me, &both).await;
    let visit = |task: &ClaimedTask, payload, to| with_payload(payload, linking(task, host, &[to]));

    let first = ground.claim_again(me, "%/1").await;
    let told = ground
        .tell(me, &[visit(&first, 1, "https://a.example/x")])
        .await;
    assert!(!told[0].repeats, "a revisit is its own copy");
    let copy = ground.claim_again(me, "%/2").await;
    assert!(
        ground
            .tell(me, &[visit(&copy, 1, "https://a.example/y")])
            .await[0]
            .repeats
    );
    // The copy before the original, in one batch.
    ground.typed("update tasks set status = 'excluded' where status = 'new'; update tasks set status = 'new' where via is null").await;
    let again = ground.claim_host(me).await.tasks;
    let told = ground
        .tell(
            me,
            &[
                visit(&again[1], 1, "https://a.example/z"),
                visit(&again[0], 1, "https://a.example/z"),
            ],
        )
        .await;
    assert_eq!((told[0].repeats, told[1].repeats), (true, false));
    // The original says something else now: the copy is the first of its content.
    let first = ground.claim_again(me, "%/1").await;
    ground
        .finish(me, &[visit(&first, 2, "https://a.example/x")])
        .await;
    let copy = ground.claim_again(me, "%/2").await;
    assert!(
        !ground
            .tell(me, &[visit(&copy, 1, "https://a.example/y")])
            .await[0]
            .repeats
    );
}

#[tokio::test]
async fn answers_that_are_no_pages_and_crawls_that_do_not_ask_have_no_copies() {
    let (ground, me, host, tasks) =
        claimed(skipping(), &["https://a.example/1", "https://a.example/2"]).await;
    let missing = |task, to: &str| {
        let mut visit = with_payload(1, linking(task, host, &[to]));
        visit.page.get_or_insert_with(page).http_status = Some(404);
        visit
    };
    let both = [
        missing(&tasks[0], "https://a.example/x"),
        missing(&tasks[1], "https://a.example/y"),
    ];
    let told = ground.tell(me, &both).await;
    assert!(told.iter().all(|told| told.accepted && !told.repeats));

    let (ground, me, host, tasks) =
        claimed(settings(), &["https://a.example/1", "https://a.example/2"]).await;
    let both = [
        with_payload(1, linking(&tasks[0], host, &["https://a.example/x"])),
        with_payload(1, linking(&tasks[1], host, &["https://a.example/y"])),
    ];
    assert!(
        ground
            .tell(me, &both)
            .await
            .iter()
            .all(|told| !told.repeats)
    );
    assert_eq!(
        ground
            .number("select count(*) from tasks where via is not null")
            .await,
        2
    );
    assert_eq!(
        ground
            .column("select pages, url from duplicate_groups")
            .await,
        ["2,https://a.example/1"]
    );
}

#[tokio::test]
async fn near_duplicates_are_the_pairs_within_three_bits_and_no_others() {
    let ground = Ground::new().await;
    ground
        .typed(
            "insert into pages (task_id, claim_version, http_status, simhash)
             select n, 1, 200, ('x' || substr(md5((n / 2)::text), 1, 16))::bit(64)::bigint
                               # case when n % 2 = 0 then 0::bigint else (1::bigint << (n / 2 % 62)) | (1::bigint << (n / 2 * 7 % 63)) | (1::bigint << 63) end
             from generate_series(0, 1999) n",
        )
        .await;
    // Each with each, one by one.
    let slowly = "select a.task_id, b.task_id, bit_count((a.simhash # b.simhash)::bit(64)) from pages a join pages b on b.task_id > a.task_id
                  where bit_count((a.simhash # b.simhash)::bit(64)) <= 3 order by 1, 2";
    let pairs = ground.column(slowly).await;
    assert_eq!(pairs.len(), 1_000);
    assert_eq!(
        ground
            .column("select one, other, bits from near_duplicates() order by 1, 2")
            .await,
        pairs
    );
    ground.typed("insert into pages (task_id, claim_version, http_status, simhash) select 5000 + n, 1, 200, (select simhash from pages where task_id = 0) from generate_series(1, 3) n").await;
    assert_eq!(
        ground
            .column("select one, bits, pages from near_duplicates(0)")
            .await,
        ["0,0,4"]
    );
}

#[tokio::test]
async fn a_late_finish_of_a_lost_lease_leaves_the_links_of_the_other() {
    let ground = Ground::new().await;
    let (late, other) = (ground.worker("late").await, ground.worker("other").await);
    ground.seed(late, &["https://a.example/"]).await;
    let lost = ground.claim_task(late).await;
    ground.leases_end().await;
    ground.frontier.recycle().await.unwrap();
    ground.waits_end().await;
    ground.frontier.promote().await.unwrap();
    let anew = ground.claim_task(other).await;
    let host = ground.host("https://a.example/").await;
    ground
        .finish(other, &[linking(&anew, host, &["https://a.example/new"])])
        .await;
    let kept = ground.column(LINKS).await;
    let refused = ground
        .finish(
            late,
            &[linking(
                &lost,
                host,
                &["https://a.example/old", "https://a.example/older"],
            )],
        )
        .await;
    assert_eq!(refused, [false]);
    assert_eq!(ground.column(LINKS).await, kept);
    assert_eq!(kept.len(), 1);
}

#[tokio::test]
async fn clicks_are_counted_on_the_shortest_way_over_redirects_and_not_over_nofollow() {
    let ground = Ground::new().await;
    // 1 is the seed; 1 > 2 > 3 > 4, 1 > 5, which redirects to 6 and on to 7; 7 > 4; 7 > 8 by nofollow only; 8 > 9; 4 > 1.
    ground
        .typed(
            "insert into hosts (authority) values ('https://a.example');
             insert into tasks (host_id, url, url_digest, via)
             select 1, 'https://a.example/' || n, md5(n::text)::uuid, nullif(n - 1, 0) from generate_series(1, 9) n;
             insert into links (from_task, to_task, place, nofollow, kind)
             select a, b, row_number() over (partition by a), k = 'n', case k when 'r' then 'redirect' else 'a' end
             from (values (1, 2, 'a'), (2, 3, 'a'), (3, 4, 'a'), (1, 5, 'a'), (5, 6, 'r'), (6, 7, 'r'), (7, 5, 'r'), (7, 4, 'a'), (7, 8, 'n'), (8, 9, 'a'), (4, 1, 'a')) v (a, b, k)",
        )
        .await;
    assert_eq!(
        ground
            .column("select task_id, clicks, via from click_depths() order by 1")
            .await,
        ["1,0,", "2,1,1", "3,2,2", "4,2,7", "5,1,1", "6,1,5", "7,1,6"]
    );
    assert_eq!(
        ground.number("select count(*) from click_depths(1)").await,
        5
    );
}
