//! The finish of a visit that was answered 304: what was read stays, fenced like any other.

use std::time::Duration;

use pgcrawl::frontier::{ClaimedTask, Finish, TaskId, WorkerId};
use pgcrawl::pages::PageRow;

use super::protocol::{FINISH, replaced};
use super::{Ground, done, failed, page, protocol};

/// The fingerprint under which pages of these tests are read.
const READING: i32 = 7;

const PAGE: &str = "select claim_version, http_status, title, etag, headers, signals, reading, proxy, ip, fetched_at, body_at, fetch_ms from pages";
const VERSIONS: &str = "select p.claim_version, (select b.claim_version from bodies b where b.task_id = p.task_id) from pages p";

/// A visit that read the page.
fn read(task: &ClaimedTask, body: Option<&str>) -> Finish {
    Finish {
        page: Some(PageRow {
            reading: Some(READING),
            etag: Some("\"1\"".to_owned()),
            headers: Some(r#"{"etag": "\"1\"", "x-robots-tag": "noarchive"}"#.to_owned()),
            signals: Some(
                r#"{"noarchive": true, "robots_content_usage": "train-ai=y"}"#.to_owned(),
            ),
            ip: Some([192, 0, 2, 1].into()),
            proxy: Some("here".into()),
            body: body.map(|text| text.as_bytes().to_vec()),
            ..page()
        }),
        ..done(task)
    }
}

/// A visit that found it unchanged, with these headers and signals.
fn unmodified(task: &ClaimedTask, headers: &str, signals: Option<&str>) -> Finish {
    Finish {
        page: Some(PageRow {
            http_status: Some(304),
            title: None,
            headers: Some(headers.to_owned()),
            signals: signals.map(str::to_owned),
            ip: Some([192, 0, 2, 2].into()),
            proxy: Some("there".into()),
            ..page()
        }),
        ..done(task)
    }
}

fn same(task: &ClaimedTask) -> Finish {
    unmodified(task, "{}", None)
}

/// A page that was read, with its body.
async fn ground() -> (Ground, WorkerId) {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let task = ground.claim_task(me).await;
    assert_eq!(
        ground.finish(me, &[read(&task, Some("body"))]).await,
        [true]
    );
    (ground, me)
}

/// Claims the page once more.
async fn again(ground: &Ground, worker: WorkerId) -> ClaimedTask {
    ground
        .typed("update tasks set status = 'new', available_at = null")
        .await;
    ground.claim_task(worker).await
}

/// The body's version beside the page's: read with its body, read without, found unchanged.
async fn after_a_visit_without_body(statement: &str) -> Vec<String> {
    let (ground, me) = ground().await;
    let task = again(&ground, me).await;
    ground.finish(me, &[read(&task, None)]).await;
    assert_eq!(ground.column(VERSIONS).await, ["2,1"]);
    let task = again(&ground, me).await;
    let visit = [same(&task)];
    let accepted = protocol::finish(&ground.db.pool, statement, me, &visit).await;
    assert_eq!(accepted.unwrap(), [true]);
    ground.column(VERSIONS).await
}

#[tokio::test]
async fn a_304_takes_the_body_of_its_page_along() {
    let (ground, me) = ground().await;
    for version in 2..=3 {
        let task = again(&ground, me).await;
        assert_eq!(ground.finish(me, &[same(&task)]).await, [true]);
        let both = format!("{version},{version}");
        assert_eq!(ground.column(VERSIONS).await, [both]);
    }
}

#[tokio::test]
async fn a_304_does_not_take_along_a_body_that_is_older_than_its_page() {
    assert_eq!(after_a_visit_without_body(FINISH).await, ["3,1"]);
}

#[tokio::test]
async fn without_a_look_at_its_version_an_old_body_would_pass_for_that_of_the_page() {
    let statement = replaced(FINISH, "and b.claim_version = before.claim_version", "");
    assert_eq!(after_a_visit_without_body(&statement).await, ["3,3"]);
}

#[tokio::test]
async fn a_304_with_new_words_on_the_use_of_the_page_makes_the_next_visit_a_full_one() {
    let cases = [
        ("{}", true),
        (r#"{"x-robots-tag": "noarchive", "age": "9"}"#, true),
        (r#"{"x-robots-tag": "noindex"}"#, false),
        (r#"{"x-robots-tag": ["noarchive", "noindex"]}"#, false),
        (r#"{"content-usage": "train-ai=n"}"#, false),
        (r#"{"tdm-reservation": "1"}"#, false),
        (r#"{"tdm-policy": "https://a.example/policy"}"#, false),
    ];
    for (headers, stays) in cases {
        let (ground, me) = ground().await;
        let task = again(&ground, me).await;
        let visit = unmodified(&task, headers, None);
        assert_eq!(ground.finish(me, &[visit]).await, [true]);
        let reading = "select count(*) from pages where reading is not null";
        assert_eq!(ground.number(reading).await == 1, stays, "{headers}");
    }
}

#[tokio::test]
async fn a_304_takes_what_robots_txt_says_of_the_use_today() {
    let (ground, me) = ground().await;
    let said = "select coalesce(signals ->> 'robots_content_usage', 'nothing'), signals ->> 'noarchive' from pages";
    for (usage, then) in [
        (
            Some(r#"{"robots_content_usage": "train-ai=n"}"#),
            "train-ai=n,true",
        ),
        (None, "nothing,true"),
    ] {
        let task = again(&ground, me).await;
        ground.finish(me, &[unmodified(&task, "{}", usage)]).await;
        assert_eq!(ground.column(said).await, [then]);
    }
    ground.typed("update pages set signals = null").await;
    let task = again(&ground, me).await;
    ground.finish(me, &[same(&task)]).await;
    assert_eq!(
        ground
            .number("select count(*) from pages where signals is null")
            .await,
        1
    );
}

#[tokio::test]
async fn a_304_leaves_the_way_by_which_the_page_came() {
    let (ground, me) = ground().await;
    let task = again(&ground, me).await;
    ground.finish(me, &[same(&task)]).await;
    assert_eq!(
        ground.column("select proxy, host(ip) from pages").await,
        ["here,192.0.2.1"]
    );
}

#[tokio::test]
async fn a_304_of_a_lost_lease_leaves_no_trace() {
    let (ground, late) = ground().await;
    let other = ground.worker("other").await;
    let task = again(&ground, late).await;
    let (page, bodies) = (
        ground.column(PAGE).await,
        ground.column("select claim_version from bodies").await,
    );
    ground.leases_end().await;
    assert_eq!(ground.frontier.recycle().await.unwrap(), 1);
    // Nobody has it, then another has it.
    for _ in 0..2 {
        let visit = unmodified(&task, r#"{"x-robots-tag": "noindex"}"#, None);
        assert_eq!(ground.finish(late, &[visit]).await, [false]);
        assert_eq!(ground.column(PAGE).await, page);
        assert_eq!(
            ground.column("select claim_version from bodies").await,
            bodies
        );
        ground.claim(other).await;
    }
    assert_eq!(ground.column("select status from tasks").await, ["claimed"]);
}

#[tokio::test]
async fn of_two_visits_of_one_task_in_one_batch_the_fenced_one_counts_whichever_was_304() {
    type Visit = fn(&ClaimedTask) -> Finish;
    let anew: Visit = |task| {
        let mut visit = read(task, Some("new"));
        if let Some(page) = &mut visit.page {
            page.title = Some("new".to_owned());
        }
        visit
    };
    let cases: [(Visit, Visit, &str); 3] = [
        (same, same, "3,200,a title,t,body"),
        (same, anew, "3,200,new,f,new"),
        (anew, same, "3,200,a title,t,body"),
    ];
    for (first, second, then) in cases {
        let (ground, me) = ground().await;
        let lost = again(&ground, me).await;
        ground.leases_end().await;
        ground.frontier.recycle().await.unwrap();
        let held = ground.claim_task(me).await;
        let visits = [first(&lost), second(&held)];
        assert_eq!(ground.finish(me, &visits).await, [false, true]);
        let row = "select p.claim_version, http_status, title, body_at is not null, convert_from(body, 'UTF8') \
                   from pages p join bodies b on b.task_id = p.task_id and b.claim_version = p.claim_version";
        let found: Vec<_> = ground
            .column(row)
            .await
            .iter()
            .map(|row| row.replace('"', ""))
            .collect();
        assert_eq!(found, [then]);
    }
}

#[tokio::test]
async fn a_304_of_a_page_whose_row_was_deleted_is_a_row_that_no_condition_is_made_of() {
    let (ground, me) = ground().await;
    let task = again(&ground, me).await;
    ground.typed("delete from pages").await;
    assert_eq!(ground.finish(me, &[same(&task)]).await, [true]);
    assert_eq!(
        ground.column("select t.status, p.http_status, p.claim_version from tasks t join pages p on p.task_id = t.id").await,
        ["done,304,2"]
    );
    // The body is nobody's now.
    assert_eq!(ground.column(VERSIONS).await, ["2,1"]);
    assert!(!asks_conditionally(&ground, task.id).await);
}

async fn asks_conditionally(ground: &Ground, task: TaskId) -> bool {
    let asked = [(task, READING)];
    let stored = ground.frontier.validators_of(&asked, false).await;
    !stored.unwrap().is_empty()
}

#[tokio::test]
async fn a_visit_that_failed_leaves_nothing_to_confirm() {
    let (ground, me) = ground().await;
    let task = again(&ground, me).await;
    assert!(asks_conditionally(&ground, task.id).await);
    ground.finish(me, &[same(&task)]).await;
    let task = again(&ground, me).await;
    ground
        .finish(me, &[failed(&task, Some(Duration::ZERO), true)])
        .await;
    let task = again(&ground, me).await;
    assert!(!asks_conditionally(&ground, task.id).await);
    assert_eq!(
        ground
            .column("select http_status is null, body_at is null, reading is null from pages")
            .await,
        ["t,t,t"]
    );
    ground.finish(me, &[read(&task, Some("body"))]).await;
    let task = again(&ground, me).await;
    assert!(asks_conditionally(&ground, task.id).await);
    ground.finish(me, &[same(&task)]).await;
    assert_eq!(
        ground
            .column("select http_status, error is null, body_at < fetched_at from pages")
            .await,
        ["200,t,t"]
    );
    assert_eq!(ground.column(VERSIONS).await, ["5,5"]);
}

#[tokio::test]
async fn each_task_is_asked_for_under_its_own_reading() {
    let (ground, me) = ground().await;
    ground.seed(me, &["https://b.example/"]).await;
    let other = ground.claim_task(me).await;
    let mut visit = read(&other, None);
    if let Some(page) = &mut visit.page {
        page.reading = Some(READING + 1);
    }
    ground.finish(me, &[visit]).await;
    let first = id_of(&ground, "https://a.example/").await;
    for (of_first, of_other, found) in [(7, 8, 2), (8, 7, 0), (7, 7, 1), (8, 8, 1)] {
        let asked = [(first, of_first), (other.id, of_other)];
        let stored = ground.frontier.validators_of(&asked, false).await.unwrap();
        assert_eq!(stored.len(), found, "{of_first} {of_other}");
    }
}

async fn id_of(ground: &Ground, url: &str) -> TaskId {
    TaskId(
        ground
            .number(&format!("select id from tasks where url = '{url}'"))
            .await,
    )
}

#[tokio::test]
async fn a_page_that_varies_by_more_than_requests_tell_is_asked_for_in_full() {
    for (vary, asks) in [
        (r#""*""#, false),
        (r#""accept-encoding, *""#, false),
        (r#"["cookie", "*"]"#, false),
        (r#""accept-encoding""#, true),
        ("null", true),
    ] {
        let (ground, me) = ground().await;
        let task = again(&ground, me).await;
        ground
            .typed(&format!(
                "update pages set headers = headers || '{{\"vary\": {vary}}}'"
            ))
            .await;
        assert_eq!(asks_conditionally(&ground, task.id).await, asks, "{vary}");
    }
}
