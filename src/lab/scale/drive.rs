//! Workers of the frontier that claim and finish without a pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Boottime;
use crate::frontier::{Appetite, Claim, Finish, FrontierSettings, Outcome, Release};
use crate::lab::crew::crew;
use crate::lab::session::{Session, patience};
use crate::lab::times::Times;
use crate::lab::{Lab, Member, Result};
use crate::pages::PageRow;

/// When the workers stop. They also stop when nothing is left.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// After so many claims that found tasks, of all workers together.
    Claims(u64),
    /// After so long.
    Over(Duration),
}

/// What the workers did.
#[derive(Clone, Debug, Default)]
pub(super) struct Drive {
    /// Claims that found tasks.
    pub(super) claims: Times,
    /// The same with the moment at which each of them ended, since the start.
    pub(super) at: Vec<(Duration, Duration)>,
    pub(super) finishes: Times,
    pub(super) empty: u64,
    pub(super) visits: u64,
    /// Visits whose finish was refused.
    pub(super) refused: u64,
    pub(super) wall: Duration,
    /// What the server logged meanwhile, in bytes: of them, but also of whoever else worked on it.
    pub(super) wal_bytes: i64,
}

impl Drive {
    /// Bytes of WAL a visit.
    pub(super) fn wal_a_visit(&self) -> u64 {
        self.wal_bytes.unsigned_abs() / self.visits.max(1)
    }

    /// Visits a second.
    pub(super) fn rate(&self) -> f64 {
        self.visits as f64 / self.wall.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// What came after it, or beside it: the wall time is the caller's to add up.
    pub(super) fn add(&mut self, other: Drive) {
        self.claims.extend([other.claims]);
        self.finishes.extend([other.finishes]);
        self.at.extend(other.at);
        self.empty += other.empty;
        self.visits += other.visits;
        self.refused += other.refused;
        self.wall += other.wall;
        self.wal_bytes += other.wal_bytes;
    }
}

/// What the workers share.
#[derive(Debug)]
struct Common {
    until: Until,
    claims: AtomicU64,
    began: Instant,
}

impl Common {
    fn is_over(&self) -> bool {
        match self.until {
            Until::Claims(claims) => self.claims.load(Ordering::Relaxed) >= claims,
            Until::Over(span) => self.began.elapsed() >= span,
        }
    }
}

/// Lets so many workers claim and finish, each with a connection of its own.
pub(super) async fn drive(
    lab: &Lab,
    workers: usize,
    appetite: Appetite,
    settings: &FrontierSettings,
    until: Until,
) -> Result<Drive> {
    let mut members = Vec::with_capacity(workers);
    for _ in 0..workers {
        let member = lab.worker(settings).await?;
        // The statements are prepared: a worker does that once, and would do it here for one claim in some dozens.
        let one = Appetite {
            hosts: 1,
            tasks: 1,
            tasks_per_host: 1,
        };
        let claim = member.frontier.claim(member.id, one).await?;
        end(&member, &claim).await?;
        members.push(member);
    }
    let common = Arc::new(Common {
        until,
        claims: AtomicU64::new(0),
        began: Instant::now(),
    });
    let mut session = lab.session().await?;
    let before = wal_position(&mut session).await?;
    let (drives, wall) = crew(members, |_, member| {
        work(member, appetite, Arc::clone(&common))
    })
    .await?;
    let mut all = Drive::default();
    for drive in drives {
        all.add(drive);
    }
    all.wall = wall;
    all.wal_bytes = wal_position(&mut session).await? - before;
    session.close().await;
    Ok(all)
}

/// Bytes of WAL since the beginning.
async fn wal_position(session: &mut Session) -> Result<i64> {
    session
        .number("select (pg_current_wal_insert_lsn() - '0/0')::bigint")
        .await
}

async fn work(member: Member, appetite: Appetite, common: Arc<Common>) -> Result<Drive> {
    let mut mine = Drive::default();
    let mut last = Instant::now();
    while !common.is_over() {
        let claim = member.frontier.claim(member.id, appetite).await?;
        member.frontier.park(&claim.empty).await?;
        if claim.hosts.is_empty() {
            mine.empty += 1;
            if nothing_new(&member).await? {
                break;
            }
            patience(last, "a claim that finds tasks").await?;
            // A crawl looks again after 50 ms and more. To ask without a pause would take the processor from those that work.
            tokio::time::sleep(Duration::from_millis(rand::random_range(5..15))).await;
            continue;
        }
        last = Instant::now();
        mine.claims.push(claim.took);
        mine.at.push((common.began.elapsed(), claim.took));
        common.claims.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let accepted = end(&member, &claim).await?;
        mine.finishes.push(began.elapsed());
        mine.visits += accepted.iter().filter(|accepted| **accepted).count() as u64;
        mine.refused += accepted.iter().filter(|accepted| !**accepted).count() as u64;
    }
    member.close().await;
    Ok(mine)
}

/// Whether all that is left is in other workers' hands.
async fn nothing_new(member: &Member) -> Result<bool> {
    use crate::lab::error::Doing as _;

    sqlx::query_scalar("select not exists (select from hosts where has_new)")
        .fetch_one(member.frontier.pool())
        .await
        .doing("looking for hosts with new tasks")
}

/// Finishes what a claim took, and releases the hosts that it holds.
async fn end(member: &Member, claim: &Claim) -> Result<Vec<bool>> {
    let batch: Vec<Finish> = claim
        .hosts
        .iter()
        .flat_map(|host| &host.tasks)
        .map(|task| Finish {
            task: task.id,
            claim_version: task.claim_version,
            outcome: Outcome::Done { reason: None },
            page: Some(page()),
            links: Vec::new(),
            edges: Vec::new(),
        })
        .collect();
    let accepted = member.frontier.finish(member.id, &batch).await?;
    let holds: Vec<Release> = claim
        .hosts
        .iter()
        .filter_map(|host| {
            Some(Release {
                host: host.id,
                hold: host.hold?,
                last_fetch: Some(Boottime::now()),
                took: Duration::ZERO,
                answered: true,
                goes_on: false,
            })
        })
        .collect();
    member.frontier.release(member.id, &holds).await?;
    Ok(accepted)
}

/// The row of an answer of an ordinary size.
fn page() -> PageRow {
    PageRow {
        http_status: Some(200),
        error: None,
        error_detail: None,
        content_type: Some("text/html; charset=utf-8".to_owned()),
        title: Some("A page of the laboratory, with a title of ordinary length".to_owned()),
        headers: Some(HEADERS.to_owned()),
        wire_bytes: 12_345,
        body_bytes: 54_321,
        ..PageRow::without_answer("", "", Duration::from_millis(80), None)
    }
}

/// Half a kilobyte, as servers send.
const HEADERS: &str = r#"{"date": ["Mon, 02 Feb 2026 08:00:00 GMT"], "server": ["nginx"], "content-type": ["text/html; charset=utf-8"], "content-length": ["12345"], "connection": ["keep-alive"], "vary": ["Accept-Encoding"], "last-modified": ["Sun, 01 Feb 2026 10:11:12 GMT"], "etag": ["\"5f3c-6543210abcdef\""], "cache-control": ["public, max-age=600"], "content-encoding": ["gzip"], "x-content-type-options": ["nosniff"], "strict-transport-security": ["max-age=63072000"]}"#;
