//! The finish: fenced, whole, and never waiting for another that knows the same URL.

use std::time::Duration;

use pgcrawl::frontier::{Edge, Finish, NewLink, Outcome, Seed};

use super::protocol::{FINISH, replaced};
use super::{Ground, done, edge, failed, link, page, protocol, url};

#[tokio::test]
async fn a_lost_lease_cannot_finish_a_task() {
    let ground = Ground::new().await;
    let (late, other) = (ground.worker("late").await, ground.worker("other").await);
    ground.seed(late, &["https://a.example/"]).await;
    let task = ground.claim_task(late).await;
    ground.leases_end().await;
    assert_eq!(ground.frontier.recycle().await.unwrap(), 1);
    let host = ground.host("https://a.example/").await;
    let mut visit = Finish {
        links: vec![link(host, "https://a.example/found")],
        edges: vec![
            edge(host, "https://a.example/found"),
            edge(host, "https://a.example/"),
        ],
        ..done(&task)
    };
    if let Some(page) = &mut visit.page {
        page.body = Some(b"text".to_vec());
    }
    // Nobody has it, then another has it, then it is done.
    assert_eq!(
        ground.finish(late, std::slice::from_ref(&visit)).await,
        [false]
    );
    let again = ground.claim_task(other).await;
    assert_eq!(
        ground.finish(late, std::slice::from_ref(&visit)).await,
        [false]
    );
    assert_eq!(ground.number("select count(*) from pages").await, 0);
    assert_eq!(ground.number("select count(*) from bodies").await, 0);
    assert_eq!(ground.number("select count(*) from links").await, 0);
    assert_eq!(ground.number("select count(*) from tasks").await, 1);
    assert_eq!(ground.finish(other, &[done(&again)]).await, [true]);
    assert_eq!(ground.finish(late, &[visit]).await, [false]);
    assert_eq!(ground.number("select claim_version from pages").await, 2);
    assert_eq!(
        ground
            .column("select done, refused from worker_counts order by worker_id")
            .await,
        ["0,3", "1,0"]
    );
}

/// A task lost and claimed anew, both visits in one batch. Answers by position; with a changed statement too.
async fn both_visits(statement: &str) -> Vec<bool> {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let lost = ground.claim_task(me).await;
    ground.leases_end().await;
    ground.frontier.recycle().await.unwrap();
    let anew = ground.claim_task(me).await;
    let accepted = protocol::finish(&ground.db.pool, statement, me, &[done(&lost), done(&anew)])
        .await
        .unwrap();
    assert_eq!(ground.number("select claim_version from pages").await, 2);
    accepted
}

#[tokio::test]
async fn a_task_lost_and_claimed_anew_in_one_batch_is_answered_by_position() {
    assert_eq!(both_visits(FINISH).await, [false, true]);
}

#[tokio::test]
async fn each_body_goes_to_the_task_of_its_visit_and_a_refused_one_nowhere() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let lost = ground.claim_task(me).await;
    ground.leases_end().await;
    ground.frontier.recycle().await.unwrap();
    let mut claimed = vec![ground.claim_task(me).await];
    for host in ["b", "c", "d"] {
        ground
            .seed(me, &[&format!("https://{host}.example/")])
            .await;
        claimed.push(ground.claim_task(me).await);
    }
    let with = |task: &_, body: Option<&str>| {
        let mut visit = done(task);
        let page = visit.page.as_mut().unwrap();
        page.body = body.map(|body| body.as_bytes().to_vec());
        visit
    };
    // Not in the order of the tasks; one has no body, and one an empty one.
    let batch = [
        with(&claimed[3], Some("d")),
        with(&lost, Some("lost")),
        with(&claimed[2], None),
        with(&claimed[0], Some("a")),
        with(&claimed[1], Some("")),
    ];
    assert_eq!(
        ground.finish(me, &batch).await,
        [true, false, true, true, true]
    );
    let bodies = "select url, b.claim_version, convert_from(body, 'UTF8') from bodies b join tasks t on t.id = task_id order by url";
    assert_eq!(
        ground.column(bodies).await,
        [
            "https://a.example/,2,a",
            "https://b.example/,1,\"\"",
            "https://d.example/,1,d"
        ]
    );
}

#[tokio::test]
async fn answered_by_task_both_visits_of_a_task_would_seem_accepted() {
    let by_task = replaced(FINISH, "on a.position = v.position", "on a.id = v.task_id");
    assert_eq!(both_visits(&by_task).await, [true, true]);
}

/// Finishes a visit that links to a page whose row somebody is just updating, as a claim does; answers whether it went through.
async fn finishes_beside_a_claim_of_what_it_links_to(statement: &str) -> bool {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground
        .seed(me, &["https://a.example/", "https://b.example/"])
        .await;
    let claim = ground.claim(me).await;
    let (a, b) = (&claim.hosts[0], &claim.hosts[1]);
    let mut other = ground.db.pool.begin().await.unwrap();
    sqlx::query("update tasks set claimed_at = now() where url like '%b.example%'")
        .execute(&mut *other)
        .await
        .unwrap();
    let visit = Finish {
        links: vec![
            link(b.id, "https://b.example/"),
            link(a.id, "https://a.example/new"),
        ],
        ..done(&a.tasks[0])
    };
    // A connection that gives up on locks soon.
    let mut mine = ground.db.pool.acquire().await.unwrap();
    sqlx::query("set lock_timeout = '300ms'")
        .execute(&mut *mine)
        .await
        .unwrap();
    mine.close_on_drop();
    let answer = protocol::finish(&mut *mine, statement, me, &[visit]).await;
    other.rollback().await.unwrap();
    match answer {
        Ok(accepted) => accepted == [true],
        Err(error) => {
            let code = error
                .as_database_error()
                .and_then(sqlx::error::DatabaseError::code);
            assert_eq!(code.as_deref(), Some("55P03"), "{error}");
            false
        }
    }
}

/// Two visits that link to each other's pages, the second of which became a task, was claimed and visited while the finish of the first was
/// under way: it waits for a new key of a third. Answers the codes of those that failed.
async fn finishes_that_link_to_each_other(statement: &str) -> Vec<String> {
    let ground = Ground::new().await;
    let (one, two) = (ground.worker("one").await, ground.worker("two").await);
    ground.seed(one, &["https://a.example/"]).await;
    let first = ground.claim_task(one).await;
    let host = ground.host("https://a.example/").await;
    // In the order in which they are inserted.
    let mut links: Vec<NewLink> = (1..=3)
        .map(|n| link(host, &format!("https://a.example/{n}")))
        .collect();
    links.sort_by_key(|link| *link.digest.as_bytes());
    let mut third = ground.db.pool.begin().await.unwrap();
    insert(&mut third, &links[1]).await;
    let visit = Finish {
        edges: edges(&links),
        links: links.clone(),
        ..done(&first)
    };
    let (pool, text) = (ground.db.pool.clone(), statement.to_owned());
    let ours = tokio::spawn(async move { protocol::finish(&pool, &text, one, &[visit]).await });
    ground.somebody_waits().await;

    let mut fourth = ground.db.pool.acquire().await.unwrap();
    insert(&mut fourth, &links[2]).await;
    drop(fourth);
    let second = ground.claim_task(two).await;
    let visit = Finish {
        edges: edges(&links[..1]),
        links: links[..1].to_vec(),
        ..done(&second)
    };
    let (pool, text) = (ground.db.pool.clone(), statement.to_owned());
    let theirs = tokio::spawn(async move { protocol::finish(&pool, &text, two, &[visit]).await });
    ground.two_wait().await;
    third.rollback().await.unwrap();
    let ended = [ours.await.unwrap(), theirs.await.unwrap()];
    let failed = ended.into_iter().filter_map(Result::err);
    failed
        .map(|error| {
            let code = error
                .as_database_error()
                .and_then(sqlx::error::DatabaseError::code);
            code.unwrap_or_default().into_owned()
        })
        .collect()
}

/// The same links for the link graph.
fn edges(links: &[NewLink]) -> Vec<Edge> {
    links
        .iter()
        .map(|link| edge(link.host, &link.url))
        .collect()
}

async fn insert(db: &mut sqlx::PgConnection, link: &NewLink) {
    sqlx::query("insert into tasks (host_id, url, url_digest) values ($1, $2, $3)")
        .bind(link.host.0)
        .bind(&link.url)
        .bind(uuid::Uuid::from(link.digest))
        .execute(db)
        .await
        .unwrap();
}

#[tokio::test]
async fn two_finishes_do_not_deadlock_over_a_page_that_became_a_task_between() {
    assert_eq!(
        finishes_that_link_to_each_other(FINISH).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn if_tasks_were_done_before_links_are_inserted_two_finishes_would_deadlock() {
    let statement = replaced(FINISH, "(select n from inserted) >= 0", "true");
    assert_eq!(
        finishes_that_link_to_each_other(&statement).await,
        ["40P01"]
    );
}

#[tokio::test]
async fn a_finish_does_not_wait_for_a_claim_of_a_page_it_links_to() {
    assert!(finishes_beside_a_claim_of_what_it_links_to(FINISH).await);
}

#[tokio::test]
async fn without_the_anti_join_a_finish_waits_for_a_claim_of_a_page_it_links_to() {
    let statement = replaced(FINISH, "    where k.known is null\n", "");
    assert!(!finishes_beside_a_claim_of_what_it_links_to(&statement).await);
}

#[tokio::test]
async fn a_url_becomes_a_task_once_however_often_it_is_found() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    assert_eq!(
        ground
            .seed(me, &["https://a.example/1", "https://a.example/2"])
            .await,
        2
    );
    assert_eq!(
        ground
            .seed(me, &["https://a.example/2", "https://a.example/2#x"])
            .await,
        0
    );
    let host = ground.claim_host(me).await;
    let found = |url: &str, depth| NewLink {
        depth,
        ..link(host.id, url)
    };
    let visits = [
        Finish {
            links: vec![
                found("https://a.example/1", 1),
                found("https://a.example/new", 3),
                found("https://a.example/new", 2),
            ],
            ..done(&host.tasks[0])
        },
        Finish {
            links: vec![found("https://a.example/new", 4)],
            ..done(&host.tasks[1])
        },
    ];
    assert_eq!(ground.finish(me, &visits).await, [true, true]);
    assert_eq!(
        ground
            .column("select url, depth, via from tasks where via is not null")
            .await,
        [format!("https://a.example/new,2,{}", host.tasks[0].id.0)]
    );
    assert_eq!(
        ground
            .column("select seeded, discovered from worker_counts")
            .await,
        ["2,1"]
    );
}

#[tokio::test]
async fn links_become_tasks_in_the_order_in_which_they_were_found() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.claim_host(me).await;
    let paths: Vec<String> = (0..40)
        .map(|n| format!("https://a.example/{}", (n * 17) % 40))
        .collect();
    let mut links: Vec<NewLink> = paths.iter().map(|url| link(host.id, url)).collect();
    // Found once more, with a better place: that counts.
    links.push(NewLink {
        priority: -1,
        label: Some("twice".into()),
        ..link(host.id, &paths[7])
    });
    let visit = Finish {
        links,
        ..done(&host.tasks[0])
    };
    assert_eq!(ground.finish(me, &[visit]).await, [true]);
    let found = "select url from tasks where via is not null order by id";
    let mut expected = paths.clone();
    let twice = expected.remove(7);
    expected.push(twice.clone());
    assert_eq!(ground.column(found).await, expected);
    let labelled = "select url, priority from tasks where label = 'twice'";
    assert_eq!(ground.column(labelled).await, [format!("{twice},-1")]);
}

#[tokio::test]
async fn a_label_and_a_priority_go_from_seed_to_claim_and_from_link_to_task() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    let seed = |path: &str, priority, depth, label: Option<&str>| Seed {
        priority,
        depth,
        label: label.map(Into::into),
        ..Seed::from(url(path))
    };
    let seeds = [
        seed("https://a.example/late", 5, 0, None),
        seed("https://a.example/soon", -3, 2, Some("north")),
        // Of the same URL twice the first counts.
        seed("https://a.example/soon#again", 9, 0, Some("south")),
    ];
    assert_eq!(ground.frontier.enqueue_seeds(me, &seeds).await.unwrap(), 2);
    let host = ground.claim_host(me).await;
    let soon = &host.tasks[0];
    assert_eq!(
        (
            soon.url.as_str(),
            soon.priority,
            soon.depth,
            soon.label.as_deref()
        ),
        ("https://a.example/soon", -3, 2, Some("north"))
    );
    let late = &host.tasks[1];
    assert_eq!((late.priority, late.label.as_deref()), (5, None));
    let found = NewLink {
        priority: -2,
        label: soon.label.clone(),
        ..link(host.id, "https://a.example/found")
    };
    let visit = Finish {
        links: vec![found],
        ..done(soon)
    };
    assert_eq!(ground.finish(me, &[visit]).await, [true]);
    assert_eq!(
        ground
            .column("select url, priority, label from tasks where via is not null")
            .await,
        ["https://a.example/found,-2,north"]
    );
}

#[tokio::test]
async fn a_link_that_is_excluded_from_the_start_keeps_its_reason() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let host = ground.claim_host(me).await;
    let excluded = NewLink {
        excluded: Some(("robots", "disallow: /private/".to_owned())),
        ..link(host.id, "https://a.example/private/")
    };
    ground
        .finish(
            me,
            &[Finish {
                links: vec![excluded],
                ..done(&host.tasks[0])
            }],
        )
        .await;
    assert_eq!(
        ground.column("select status, reason, (detail = 'disallow: /private/') from tasks where via is not null").await,
        ["excluded,robots,t"]
    );
    assert!(ground.frontier.finished().await.unwrap());
}

#[tokio::test]
async fn an_accepted_finish_forgets_the_leases_lost_before() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    ground.claim_task(me).await;
    ground.leases_end().await;
    ground.frontier.recycle().await.unwrap();
    assert_eq!(ground.number("select expiries from tasks").await, 1);
    let task = ground.claim_task(me).await;
    ground
        .finish(me, &[failed(&task, Some(Duration::ZERO), true)])
        .await;
    assert_eq!(ground.number("select expiries from tasks").await, 0);
}

#[tokio::test]
async fn patience_that_the_server_asked_for_is_not_charged() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    for deferrals in 0..3 {
        let task = ground.claim_task(me).await;
        assert_eq!((task.attempt, task.deferrals), (1, deferrals));
        ground
            .finish(me, &[failed(&task, Some(Duration::from_secs(60)), false)])
            .await;
        assert!(ground.claim(me).await.hosts.is_empty());
        ground.waits_end().await;
        assert_eq!(ground.frontier.promote().await.unwrap(), 1);
    }
    let task = ground.claim_task(me).await;
    ground
        .finish(me, &[failed(&task, Some(Duration::from_secs(60)), true)])
        .await;
    ground.waits_end().await;
    ground.frontier.promote().await.unwrap();
    assert_eq!(ground.claim_task(me).await.attempt, 2);
}

/// Finishes three visits of which the middle one cannot be stored; the others must not suffer.
async fn loses_one_of_three(what: &str, schema: Option<&str>, spoil: impl Fn(&mut Finish)) {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground
        .seed(
            me,
            &[
                "https://a.example/1",
                "https://a.example/2",
                "https://a.example/3",
            ],
        )
        .await;
    if let Some(schema) = schema {
        ground.typed(schema).await;
    }
    let host = ground.claim_host(me).await;
    let mut visits: Vec<Finish> = host
        .tasks
        .iter()
        .map(|task| Finish {
            links: vec![link(host.id, &format!("{}/found", task.url))],
            ..done(task)
        })
        .collect();
    spoil(&mut visits[1]);
    assert_eq!(
        ground.finish(me, &visits).await,
        [true, true, true],
        "{what}"
    );
    assert_eq!(
        ground
            .column("select status, reason from tasks where via is null order by id")
            .await,
        ["done,", "failed,unstorable", "done,"],
        "{what}"
    );
    assert_eq!(
        ground
            .number("select count(*) from tasks where detail <> ''")
            .await,
        1,
        "{what}"
    );
    assert_eq!(
        ground.number("select count(*) from pages").await,
        2,
        "{what}"
    );
    assert_eq!(
        ground
            .column("select via from tasks where via is not null order by via")
            .await,
        [
            host.tasks[0].id.0.to_string(),
            host.tasks[2].id.0.to_string()
        ],
        "{what}"
    );
    assert_eq!(
        ground
            .column("select done, failed from worker_counts")
            .await,
        ["2,1"],
        "{what}"
    );
}

#[tokio::test]
async fn a_visit_that_cannot_be_stored_takes_no_other_along() {
    loses_one_of_three("a NUL", None, |visit| {
        page_of(visit).title = Some("a\0b".to_owned());
    })
    .await;
    loses_one_of_three("no JSON", None, |visit| {
        page_of(visit).headers = Some("{no json".to_owned());
    })
    .await;
    loses_one_of_three("a link without a host", None, |visit| {
        visit.links[0].host = pgcrawl::frontier::HostId(999);
    })
    .await;
    let check = "alter table pages add constraint short check (length(title) < 100)";
    loses_one_of_three("too long for a rule", Some(check), |visit| {
        page_of(visit).title = Some("x".repeat(100));
    })
    .await;
}

fn page_of(visit: &mut Finish) -> &mut pgcrawl::pages::PageRow {
    visit.page.get_or_insert_with(page)
}

#[tokio::test]
async fn a_revisit_replaces_the_page_and_counts_its_attempts_anew() {
    let ground = Ground::new().await;
    let me = ground.worker("me").await;
    ground.seed(me, &["https://a.example/"]).await;
    let task = ground.claim_task(me).await;
    ground.finish(me, &[done(&task)]).await;
    ground.typed("update tasks set available_at = now()").await;
    assert!(
        ground.frontier.finished().await.unwrap(),
        "a revisit does not keep a crawl open"
    );
    ground.frontier.promote().await.unwrap();
    let again = ground.claim_task(me).await;
    assert_eq!(again.attempt, 1);
    let mut visit = done(&again);
    page_of(&mut visit).title = Some("another".to_owned());
    visit.outcome = Outcome::Done {
        reason: Some("loop"),
    };
    ground.finish(me, &[visit]).await;
    assert_eq!(
        ground
            .column("select title, claim_version from pages")
            .await,
        ["another,2"]
    );
    assert_eq!(
        ground.column("select status, reason from tasks").await,
        ["done,loop"]
    );
}
