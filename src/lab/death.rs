//! Section d: a worker dies, a lock is held for long, an answer is empty though there are tasks.

use std::time::Duration;

use tokio::time::Instant;

use super::error::Doing;
use super::jobs;
use super::report::{Cell, SectionReport, Table, grouped, rounded};
use super::scale::empty_crawl;
use super::session::{Answer, Session, patience};
use super::{Lab, Member, Result, Section};
use crate::canon::PageUrl;
use crate::frontier::{Appetite, Claim, ClaimedTask, Finish, FrontierSettings, Outcome, Seed};
use crate::pages::PageRow;

/// Settings of section d.
#[derive(Clone, Debug, PartialEq)]
pub struct DeathSettings {
    /// Tasks that the dying worker claims. Default 20.
    pub tasks: u32,
    /// Lease of a claim. Default 1 s here, 2 min in a crawl.
    pub lease: Duration,
    /// `lock_timeout` of the statement that gives up. Default 1 s.
    pub lock_timeout: Duration,
    /// How long a lock is held while somebody waits for it without a limit. Default 1.5 s.
    pub held: Duration,
}

impl Default for DeathSettings {
    fn default() -> DeathSettings {
        DeathSettings {
            tasks: 20,
            lease: Duration::from_secs(1),
            lock_timeout: Duration::from_secs(1),
            held: Duration::from_millis(1_500),
        }
    }
}

/// What became of the tasks of a worker that died.
struct Death {
    case: &'static str,
    /// Tasks that others could claim.
    open: u64,
    /// The claim version that the others got.
    version: i64,
    /// Rows of `tasks` and `pages` that the dead one's late finish changed; none where it had nothing to finish.
    late: Option<u64>,
    after: Duration,
}

pub(super) async fn run(lab: &Lab) -> Result<SectionReport> {
    let settings = &lab.settings.death;
    let mut report = SectionReport::new(
        Section::D,
        "Death, long locks, empty answers",
        "the schema of a crawl and the frontier's statements; the locks: one raw table",
    );
    let mut deaths = Vec::new();
    let (uncommitted, meanwhile) = before_the_commit(lab).await?;
    deaths.push(uncommitted);
    deaths.push(after_the_commit(lab).await?);
    deaths.push(seen_to_be_gone(lab).await?);
    report.tables.push(deaths_table(settings, &deaths));
    for death in &deaths {
        let late = match death.late {
            None => String::new(),
            Some(0) => "; its late finish changes no row".to_owned(),
            Some(n) => format!("; its late finish changes {} rows", grouped(n)),
        };
        report.observe(format!(
            "{}: {} of {} tasks are open again after {} ms, with claim version {}{late}",
            death.case,
            death.open,
            settings.tasks,
            rounded(death.after.as_secs_f64() * 1_000.0),
            death.version
        ));
    }
    report.goal(
        deaths.iter().all(|death| {
            death.open == u64::from(settings.tasks) && death.late.unwrap_or_default() == 0
        }),
        "a death loses no task, and what it claimed cannot be finished twice".to_owned(),
    );
    let locks = locks(lab, meanwhile).await?;
    lock_findings(&mut report, &locks);
    report.tables.push(locks.table);
    Ok(report)
}

fn deaths_table(settings: &DeathSettings, deaths: &[Death]) -> Table {
    let mut table = Table::new(
        format!("A worker that claimed {} tasks is ended", settings.tasks),
        &[
            ("case", "it dies"),
            ("open", "open to others"),
            ("after_ms", "after"),
            ("claim_version", "their claim version"),
            ("late_finish_rows", "rows its late finish changes"),
        ],
    );
    for death in deaths {
        table.row([
            Cell::text(death.case),
            Cell::Count(death.open),
            Cell::ms(death.after),
            Cell::Count(death.version.unsigned_abs()),
            death.late.map_or(Cell::Nothing, Cell::Count),
        ]);
    }
    table.note(format!(
        "its session is ended with pg_terminate_backend; after: from there until another worker has claimed all of them. The lease is {} ms here, 2 min in a crawl.",
        settings.lease.as_millis()
    ));
    table
}

fn frontier_settings(settings: &DeathSettings) -> FrontierSettings {
    FrontierSettings {
        delay: Duration::ZERO,
        lease: settings.lease,
        obey_robots: false,
        patience: Duration::from_secs(10),
        ..FrontierSettings::default()
    }
}

fn appetite(settings: &DeathSettings) -> Appetite {
    Appetite {
        hosts: 20,
        tasks: settings.tasks,
        tasks_per_host: settings.tasks,
    }
}

/// A crawl of one host with these tasks, a worker that will die and one that goes on, and a session beside them.
async fn scene(lab: &Lab) -> Result<(Member, Member, Session)> {
    let settings = &lab.settings.death;
    let mut session = lab.session().await?;
    empty_crawl(&mut session).await?;
    let frontier = frontier_settings(settings);
    let (dying, other) = (lab.worker(&frontier).await?, lab.worker(&frontier).await?);
    let seeds: Vec<Seed> = (0..settings.tasks)
        .filter_map(|n| PageUrl::parse(&format!("https://death.test/page-{n}")).ok())
        .map(Seed::from)
        .collect();
    other.frontier.enqueue_seeds(other.id, &seeds).await?;
    Ok((dying, other, session))
}

impl Member {
    async fn take(&self, settings: &DeathSettings) -> Result<Claim> {
        Ok(self.frontier.claim(self.id, appetite(settings)).await?)
    }

    /// Recycles and claims until all of them are there.
    async fn until_all(
        &self,
        settings: &DeathSettings,
        began: Instant,
    ) -> Result<Vec<ClaimedTask>> {
        let mut tasks = Vec::new();
        loop {
            self.frontier.recycle().await?;
            let claim = self.take(settings).await?;
            self.frontier.park(&claim.empty).await?;
            tasks.extend(claim.hosts.into_iter().flat_map(|host| host.tasks));
            if tasks.len() >= settings.tasks as usize {
                return Ok(tasks);
            }
            patience(began, "the tasks of a worker that died").await?;
        }
    }
}

fn version(tasks: &[ClaimedTask]) -> i64 {
    tasks
        .iter()
        .map(|task| task.claim_version)
        .max()
        .map_or(0, i64::from)
}

/// Answers what became of the tasks, and how many another worker's claim got while the transaction was open.
async fn before_the_commit(lab: &Lab) -> Result<(Death, u64)> {
    let settings = &lab.settings.death;
    let (dying, other, mut session) = scene(lab).await?;
    // Its one connection is in a transaction, and so is the claim that it sends next.
    sqlx::query("begin")
        .execute(dying.frontier.pool())
        .await
        .doing("beginning a transaction")?;
    dying.take(settings).await?;
    let meanwhile = other.take(settings).await?;
    let meanwhile = meanwhile
        .hosts
        .iter()
        .map(|host| host.tasks.len() as u64)
        .sum();
    let began = Instant::now();
    dying.kill(&mut session).await?;
    let tasks = other.until_all(settings, began).await?;
    let death = Death {
        case: "before the commit of its claim",
        open: tasks.len() as u64,
        version: version(&tasks),
        late: None,
        after: began.elapsed(),
    };
    dying.close().await;
    other.close().await;
    session.close().await;
    Ok((death, meanwhile))
}

async fn after_the_commit(lab: &Lab) -> Result<Death> {
    let settings = &lab.settings.death;
    let (dying, other, mut session) = scene(lab).await?;
    let claimed = dying.take(settings).await?;
    let began = Instant::now();
    dying.kill(&mut session).await?;
    let tasks = other.until_all(settings, began).await?;
    let after = began.elapsed();
    let late = late_finish(&dying, &claimed, &mut session).await?;
    dying.close().await;
    other.close().await;
    session.close().await;
    Ok(Death {
        case: "after it",
        open: tasks.len() as u64,
        version: version(&tasks),
        late: Some(late),
        after,
    })
}

async fn seen_to_be_gone(lab: &Lab) -> Result<Death> {
    let settings = &lab.settings.death;
    let (dying, other, mut session) = scene(lab).await?;
    let claimed = dying.take(settings).await?;
    let began = Instant::now();
    dying.kill(&mut session).await?;
    other.frontier.bury(&[dying.id]).await?;
    let tasks = other.until_all(settings, began).await?;
    let after = began.elapsed();
    let late = late_finish(&dying, &claimed, &mut session).await?;
    dying.close().await;
    other.close().await;
    session.close().await;
    Ok(Death {
        case: "after it, and a worker of the same machine sees its process gone",
        open: tasks.len() as u64,
        version: version(&tasks),
        late: Some(late),
        after,
    })
}

/// The dead one comes back and finishes what it claimed. Answers how many rows that changed.
async fn late_finish(dying: &Member, claimed: &Claim, session: &mut Session) -> Result<u64> {
    let batch: Vec<Finish> = claimed
        .hosts
        .iter()
        .flat_map(|host| &host.tasks)
        .map(|task| Finish {
            task: task.id,
            claim_version: task.claim_version,
            outcome: Outcome::Done { reason: None },
            page: Some(PageRow::without_answer("late", "", Duration::ZERO, None)),
            links: Vec::new(),
            edges: Vec::new(),
        })
        .collect();
    session
        .run("create table lab_before as table tasks")
        .await?;
    dying.frontier.finish(dying.id, &batch).await?;
    let changed = session
        .number(
            "select (select count(*) from (table tasks except table lab_before) t) + (select count(*) from pages)",
        )
        .await?;
    session.run("drop table lab_before").await?;
    Ok(changed.unsigned_abs())
}

/// How each way of asking answers while rows are locked.
struct Locks {
    table: Table,
    skipped: Answer,
    timed_out: (Answer, Duration),
    refused: (Answer, Duration),
    waited: (Answer, Duration),
    empty: Answer,
    new_meanwhile: i64,
    frontier_meanwhile: u64,
}

async fn locks(lab: &Lab, frontier_meanwhile: u64) -> Result<Locks> {
    const JOBS: u64 = 10;
    let settings = &lab.settings.death;
    let mut holder = lab.session().await?;
    let mut asking = lab.session().await?;
    let mut watching = lab.session().await?;
    jobs::make(&mut holder, JOBS).await?;
    let select = "select id from lab_jobs where status = 'new' order by id limit 3 for update";
    holder
        .run("begin; select from lab_jobs where id = 1 for update")
        .await?;
    let skipped = asking.timed(format!("{select} skip locked")).await?;
    asking
        .run(format!(
            "set lock_timeout = '{}ms'",
            settings.lock_timeout.as_millis()
        ))
        .await?;
    let timed_out = asking.timed(select).await?;
    asking.run("reset lock_timeout").await?;
    let refused = asking.timed(format!("{select} nowait")).await?;
    let pid = asking.pid;
    let waiting = asking.begin_asking(select);
    watching.until_waiting(pid).await?;
    tokio::time::sleep(settings.held).await;
    holder.run("commit").await?;
    let (mut asking, answer, took) = waiting.end().await?;
    let waited = (answer, took);
    holder
        .run("begin; select from lab_jobs where status = 'new' for update")
        .await?;
    let empty = asking.timed(format!("{select} skip locked")).await?;
    let new_meanwhile = asking
        .number("select count(*) from lab_jobs where status = 'new'")
        .await?;
    holder.run("rollback").await?;
    jobs::drop(&mut holder).await?;
    for session in [holder, asking, watching] {
        session.close().await;
    }

    let mut table = Table::new(
        format!("Another session holds the lock of row 1 of {JOBS}; 3 are asked for"),
        &[
            ("asked", "asked"),
            ("answer", "answer"),
            ("sqlstate", "SQLSTATE"),
            ("took_ms", "after"),
        ],
    );
    let timeout = format!(
        "FOR UPDATE, lock_timeout {} ms",
        settings.lock_timeout.as_millis()
    );
    let held = format!(
        "FOR UPDATE, the lock held {} ms more",
        settings.held.as_millis()
    );
    let lines = [
        ("FOR UPDATE SKIP LOCKED", &skipped),
        (timeout.as_str(), &timed_out),
        ("FOR UPDATE NOWAIT", &refused),
        (held.as_str(), &waited),
        ("FOR UPDATE SKIP LOCKED, all rows locked", &empty),
    ];
    for (asked, (answer, took)) in lines {
        table.row([
            Cell::text(asked),
            match answer {
                Answer::Ids(_) => Cell::text(answer.to_string()),
                Answer::Refused(_) => Cell::text("refused"),
            },
            answer.code().map_or(Cell::Nothing, Cell::text),
            Cell::ms(*took),
        ]);
    }
    table.note("time of the statement, as its session sees it.");
    Ok(Locks {
        table,
        skipped: skipped.0,
        timed_out,
        refused,
        waited,
        empty: empty.0,
        new_meanwhile,
        frontier_meanwhile,
    })
}

fn lock_findings(report: &mut SectionReport, locks: &Locks) {
    let ms = |span: Duration| rounded(span.as_secs_f64() * 1_000.0);
    report.observe(format!(
        "behind a lock that is held, SKIP LOCKED answers {}; FOR UPDATE with a lock_timeout answers {} after {} ms, NOWAIT {} after {} ms, and without a limit it waits {} ms",
        locks.skipped,
        locks.timed_out.0,
        ms(locks.timed_out.1),
        locks.refused.0,
        ms(locks.refused.1),
        ms(locks.waited.1)
    ));
    report.observe(format!(
        "while all rows are locked SKIP LOCKED answers {}, and {} rows are new: {}",
        locks.empty,
        locks.new_meanwhile,
        if locks.empty.ids().is_empty() && locks.new_meanwhile > 0 {
            "an empty answer does not mean an empty queue"
        } else {
            "here the answer told the truth"
        }
    ));
    report.observe(format!(
        "the frontier's own claim got {} tasks while another one of the same host was not committed",
        locks.frontier_meanwhile
    ));
}
