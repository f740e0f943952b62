//! Section a: how workers keep out of each other's way.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::crew::crew;
use super::jobs::{self, Taken};
use super::report::{Cell, SectionReport, Table, grouped, rounded};
use super::rules::Facts;
use super::session::{Answer, Session};
use super::{Lab, LabError, Result, Section};

/// Settings of section a.
#[derive(Clone, Debug, PartialEq)]
pub struct LockingSettings {
    /// Workers. Default 4.
    pub workers: usize,
    /// Tasks in the queue. Default 400.
    pub tasks: u64,
    /// Tasks that a worker asks for at once. Default 10.
    pub batch: u32,
    /// What a batch takes to work off. Default 50 ms.
    pub work: Duration,
}

impl Default for LockingSettings {
    fn default() -> LockingSettings {
        LockingSettings {
            workers: 4,
            tasks: 400,
            batch: 10,
            work: Duration::from_millis(50),
        }
    }
}

/// How a worker chooses its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    Plain,
    ForUpdate,
    SkipLocked,
}

impl Lock {
    const ALL: [Lock; 3] = [Lock::Plain, Lock::ForUpdate, Lock::SkipLocked];

    fn name(self) -> &'static str {
        match self {
            Lock::Plain => "plain SELECT",
            Lock::ForUpdate => "FOR UPDATE",
            Lock::SkipLocked => "SKIP LOCKED",
        }
    }

    fn clause(self) -> &'static str {
        match self {
            Lock::Plain => "",
            Lock::ForUpdate => "for update",
            Lock::SkipLocked => "for update skip locked",
        }
    }
}

/// When a worker works: after its transaction, or within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Outside,
    Inside,
}

#[derive(Debug)]
struct Trial {
    lock: Lock,
    work: Work,
    taken: Taken,
    deadlocks: u64,
    waited: Duration,
    wall: Duration,
}

pub(super) async fn run(lab: &Lab, facts: &mut Facts) -> Result<SectionReport> {
    let settings = &lab.settings.locking;
    let mut trials = Vec::new();
    for work in [Work::Outside, Work::Inside] {
        for lock in Lock::ALL {
            trials.push(trial(lab, lock, work).await?);
        }
    }
    let mut report = SectionReport::new(
        Section::A,
        "Plain SELECT, FOR UPDATE, SKIP LOCKED",
        "one raw table with a partial index",
    );
    report.tables.push(table(settings, &trials));
    for trial in &trials {
        report.observe(finding(trial, settings));
    }
    facts.duplicates = trials
        .iter()
        .find(|trial| trial.lock == Lock::SkipLocked && trial.work == Work::Outside)
        .map(|trial| trial.taken.duplicates());
    Ok(report)
}

fn table(settings: &LockingSettings, trials: &[Trial]) -> Table {
    let mut table = Table::new(
        format!(
            "{} workers, {} tasks, batches of {}, {} ms of work a batch",
            settings.workers,
            grouped(settings.tasks),
            settings.batch,
            settings.work.as_millis()
        ),
        &[
            ("lock", "claim"),
            ("work", "work in the transaction"),
            ("claims", "handed out"),
            ("duplicates", "duplicates"),
            ("split", "split per worker"),
            ("lock_wait_s", "total lock wait"),
            ("wall_s", "wall time"),
            ("wall_ratio", "to SKIP LOCKED"),
        ],
    );
    for trial in trials {
        let skip = trials
            .iter()
            .find(|other| other.lock == Lock::SkipLocked && other.work == trial.work);
        table.row([
            Cell::text(trial.lock.name()),
            Cell::Is(trial.work == Work::Inside),
            Cell::Count(trial.taken.claims()),
            Cell::Count(trial.taken.duplicates()),
            Cell::text(trial.taken.split()),
            Cell::seconds(trial.waited),
            Cell::seconds(trial.wall),
            Cell::ratio(
                trial.wall.as_secs_f64(),
                skip.map_or(0.0, |skip| skip.wall.as_secs_f64()),
            ),
        ]);
    }
    table.note("each batch: begin; select … limit n; update … set status = 'claimed'; commit. Handed out: ids that the SELECTs returned.");
    table.note("lock wait: pg_stat_activity looked at every 5 ms, sessions with wait_event_type = 'Lock' times the time since the last look, summed over the workers.");
    let deadlocks: u64 = trials.iter().map(|trial| trial.deadlocks).sum();
    if deadlocks > 0 {
        table.note(format!(
            "{deadlocks} batches ended in a deadlock (40P01) and were begun again."
        ));
    }
    table
}

fn finding(trial: &Trial, settings: &LockingSettings) -> String {
    let where_ = match trial.work {
        Work::Outside => "with the work after the commit".to_owned(),
        Work::Inside => format!(
            "with {} ms of work inside the transaction",
            settings.work.as_millis()
        ),
    };
    let duplicates = match trial.taken.duplicates() {
        0 => "no duplicate".to_owned(),
        n => format!("{} duplicates", grouped(n)),
    };
    format!(
        "{} {where_}: {duplicates} among {} claims, {} s of lock wait, the busiest worker took {}x its share, {} s in all",
        trial.lock.name(),
        grouped(trial.taken.claims()),
        rounded(trial.waited.as_secs_f64()),
        rounded(trial.taken.unevenness()),
        rounded(trial.wall.as_secs_f64()),
    )
}

async fn trial(lab: &Lab, lock: Lock, work: Work) -> Result<Trial> {
    let settings = &lab.settings.locking;
    let mut session = lab.session().await?;
    jobs::make(&mut session, settings.tasks).await?;
    let workers = jobs::sessions(lab, settings.workers).await?;
    let sampler = Sampler::start(lab).await?;
    let (outcomes, wall) = crew(workers, |number, session| {
        drain(session, number, lock, work, settings.clone())
    })
    .await?;
    let waited = sampler.stop().await?;
    jobs::drop(&mut session).await?;
    session.close().await;
    let deadlocks = outcomes.iter().map(|(_, deadlocks)| deadlocks).sum();
    Ok(Trial {
        lock,
        work,
        taken: Taken {
            by_worker: outcomes.into_iter().map(|(ids, _)| ids).collect(),
        },
        deadlocks,
        waited,
        wall,
    })
}

/// One worker, until it sees no new task. Answers the ids it was given, and its deadlocks.
async fn drain(
    mut session: Session,
    number: usize,
    lock: Lock,
    work: Work,
    settings: LockingSettings,
) -> Result<(Vec<i64>, u64)> {
    let (mut taken, mut deadlocks) = (Vec::new(), 0);
    let select = format!(
        "select id from lab_jobs where status = 'new' order by id limit {} {}",
        settings.batch,
        lock.clause()
    );
    loop {
        session.run("begin").await?;
        let ids = match session.ask(select.clone()).await? {
            Answer::Ids(ids) => ids,
            Answer::Refused(_) => {
                session.run("rollback").await?;
                deadlocks += 1;
                continue;
            }
        };
        if ids.is_empty() {
            session.run("commit").await?;
            session.close().await;
            return Ok((taken, deadlocks));
        }
        if work == Work::Inside {
            tokio::time::sleep(settings.work).await;
        }
        let list: Vec<String> = ids.iter().map(i64::to_string).collect();
        let update = format!(
            "update lab_jobs set status = 'claimed', claimed_by = {number} where id = any (array[{}]::bigint[]) returning id",
            list.join(",")
        );
        if let Answer::Refused(_) = session.ask(update).await? {
            session.run("rollback").await?;
            deadlocks += 1;
            continue;
        }
        session.run("commit").await?;
        taken.extend(ids);
        if work == Work::Outside {
            tokio::time::sleep(settings.work).await;
        }
    }
}

/// Looks again and again who waits for a lock, in a session of its own.
pub(super) struct Sampler {
    looking: JoinHandle<Result<Duration>>,
    stop: CancellationToken,
    /// Ends it also where a trial ends with an error.
    _guard: DropGuard,
}

impl Sampler {
    const EVERY: Duration = Duration::from_millis(5);

    pub(super) async fn start(lab: &Lab) -> Result<Sampler> {
        let mut session = lab.session().await?;
        let look = format!(
            "select count(*) from pg_stat_activity where application_name = '{}' and wait_event_type = 'Lock'",
            lab.scratch.name()
        );
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let looking = tokio::spawn(async move {
            let (mut waited, mut last) = (Duration::ZERO, Instant::now());
            while !stopped.is_cancelled() {
                let waiting = session.number(look.clone()).await?;
                let now = Instant::now();
                waited += (now - last).mul_f64(waiting as f64);
                last = now;
                tokio::time::sleep(Self::EVERY).await;
            }
            session.close().await;
            Ok(waited)
        });
        Ok(Sampler {
            looking,
            _guard: stop.clone().drop_guard(),
            stop,
        })
    }

    /// The time that sessions waited since the start, summed over them.
    pub(super) async fn stop(self) -> Result<Duration> {
        self.stop.cancel();
        self.looking.await.map_err(LabError::Panicked)?
    }
}
