//! A claim whose answer was lost: what it took comes back at once, and nothing else does.

use pgcrawl::frontier::Appetite;

use super::{ALL, Stage};
use crate::support::crawl::{broken_invariants, column, number};
use crate::support::wire::Cut;

const CLAIM: &str = include_str!("../../../src/frontier/sql/claim.sql");
const STRAY: &str = include_str!("../../../src/frontier/sql/stray.sql");
const ONE: Appetite = Appetite { hosts: 1, ..ALL };

#[tokio::test]
async fn what_a_lost_claim_took_is_claimed_by_the_next_try_and_no_attempt_is_counted() {
    let stage = Stage::new().await;
    let me = stage.worker(1).await;
    stage
        .seed(me, &["https://a.example/1", "https://a.example/2"])
        .await;
    stage.wire.arm(CLAIM, Cut::BeforeAnswered);
    let claim = stage.frontier.claim(me, ALL).await.unwrap();
    assert_eq!(claim.hosts[0].tasks.len(), 2);
    for task in &claim.hosts[0].tasks {
        assert_eq!((task.attempt, task.claim_version), (1, 2));
    }
    assert_eq!(claim.hosts[0].hold, Some(2), "the lost one held it before");
    assert_eq!(
        broken_invariants(&stage.db.pool).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn what_answered_claims_took_and_what_others_claimed_stays_claimed() {
    let stage = Stage::new().await;
    let (me, other) = (stage.worker(1).await, stage.worker(2).await);
    stage
        .seed(
            me,
            &[
                "https://a.example/",
                "https://b.example/",
                "https://c.example/",
                "https://d.example/",
            ],
        )
        .await;
    let mine = stage.frontier.claim(me, ONE).await.unwrap();
    let theirs = stage.frontier.claim(other, ONE).await.unwrap();
    let holds = "select id, hold_version, held_by, polite_at from hosts where held_by is not null order by id";
    let before = column(&stage.db.pool, holds).await;
    stage.wire.arm(CLAIM, Cut::BeforeAnswered);
    let next = stage.frontier.claim(me, ONE).await.unwrap();
    let after = column(&stage.db.pool, holds).await;
    for hold in before {
        assert!(after.contains(&hold), "{hold} is not among {after:?}");
    }
    for (worker, claim) in [(me, &mine), (other, &theirs), (me, &next)] {
        let task = &claim.hosts[0].tasks[0];
        let claimed = format!(
            "select count(*) from tasks where id = {} and claimed_by = {} and claim_version = {}",
            task.id.0, worker.0, task.claim_version
        );
        assert_eq!(number(&stage.db.pool, &claimed).await, 1, "{claimed}");
    }
    let others = "select count(*) from tasks where status = 'new' and attempts = 0";
    assert_eq!(number(&stage.db.pool, others).await, 1);
}

#[tokio::test]
async fn a_host_of_a_lost_claim_is_ready_again_and_keeps_its_other_waits() {
    let stage = Stage::new().await;
    let me = stage.worker(1).await;
    stage.seed(me, &["https://a.example/"]).await;
    stage.wire.arm(CLAIM, Cut::BeforeAnswered);
    // The next try finds nothing: an operator's pause comes between the lost one and the giving back.
    sqlx::raw_sql(
        "create function pause() returns trigger language plpgsql as
         $$ begin new.deferred_until := now() + interval '1 hour'; return new; end $$;
         create trigger pause before update on hosts for each row when (old.held_by is not null) execute function pause()",
    )
    .execute(&stage.db.pool)
    .await
    .unwrap();
    let claim = stage.frontier.claim(me, ALL).await.unwrap();
    assert!(claim.hosts.is_empty(), "{claim:?}");
    let waits = "select held_by is null, polite_at <= now(), deferred_until > now() from hosts";
    assert_eq!(column(&stage.db.pool, waits).await, ["t,t,t"]);
}

#[tokio::test]
async fn giving_back_what_a_lost_claim_took_survives_cuts_itself() {
    for cut in [Cut::BeforeSent, Cut::BeforeAnswered] {
        let stage = Stage::new().await;
        let me = stage.worker(1).await;
        stage.seed(me, &["https://a.example/"]).await;
        stage.wire.arm(CLAIM, Cut::BeforeAnswered);
        let claiming = stage.frontier.claim(me, ALL);
        let arming = async {
            while stage.wire.is_armed() {
                tokio::task::yield_now().await;
            }
            stage.wire.arm(STRAY, cut);
        };
        let (claim, ()) = tokio::join!(claiming, arming);
        assert!(!stage.wire.is_armed());
        let claim = claim.unwrap();
        assert_eq!(claim.hosts[0].tasks[0].attempt, 1, "{cut:?}");
        assert_eq!(claim.hosts[0].hold, Some(2), "{cut:?}");
    }
}
