//! Section b: how many tasks to take at once, and what one death strands.

use std::sync::Arc;
use std::time::Duration;

use sqlx::AssertSqlSafe;
use tokio::time::Instant;

use super::crew::crew;
use super::error::Doing;
use super::jobs::{self, Taken};
use super::report::{Cell, SectionReport, Table, counted, grouped, rounded};
use super::rules::{Facts, magnitude};
use super::session::Session;
use super::times::Times;
use super::{Lab, Result, Section};

/// Settings of section b.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchSettings {
    /// Workers. Default 8.
    pub workers: usize,
    /// Tasks in the queue. Default 20,000.
    pub tasks: u64,
    /// Batch sizes; the first is what the others are compared with. Default 1, 5, 20, 50, 100, 500.
    pub sizes: Vec<u32>,
}

impl Default for BatchSettings {
    fn default() -> BatchSettings {
        BatchSettings {
            workers: 8,
            tasks: 20_000,
            sizes: vec![1, 5, 20, 50, 100, 500],
        }
    }
}

#[derive(Debug)]
struct Trial {
    size: u32,
    taken: Taken,
    claims: Times,
    wall: Duration,
    stranded: u64,
}

impl Trial {
    fn rate(&self) -> f64 {
        self.taken.claims() as f64 / self.wall.as_secs_f64()
    }
}

pub(super) async fn run(lab: &Lab, facts: &mut Facts) -> Result<SectionReport> {
    let settings = &lab.settings.batches;
    let mut trials = Vec::new();
    for size in &settings.sizes {
        trials.push(trial(lab, *size).await?);
    }
    let mut report = SectionReport::new(
        Section::B,
        "Batch size",
        "one raw table with a partial index",
    );
    report.tables.push(table(settings, &trials));
    let best = trials.iter().max_by(|a, b| a.rate().total_cmp(&b.rate()));
    if let (Some(first), Some(best)) = (trials.first(), best) {
        report.observe(format!(
            "one at a time (batch {}) the table passes {} tasks/s, {}; batches of {} pass {}, {}x as many",
            first.size,
            rounded(first.rate()),
            magnitude(first.rate()),
            best.size,
            rounded(best.rate()),
            rounded(best.rate() / first.rate())
        ));
        facts.one_by_one = Some((first.size, first.rate()));
        facts.batched = Some((best.size, best.rate()));
    }
    if let (Some(first), Some(last)) = (trials.first(), trials.last()) {
        report.observe(format!(
            "one death strands {} of batches of {} and {} of batches of {}, until their lease ends; the busiest worker took {}x and {}x its share",
            counted(first.stranded, "task"),
            first.size,
            counted(last.stranded, "task"),
            last.size,
            rounded(first.taken.unevenness()),
            rounded(last.taken.unevenness()),
        ));
    }
    let duplicates: u64 = trials.iter().map(|trial| trial.taken.duplicates()).sum();
    report.observe(format!(
        "of {} claims in all sizes together, {} were duplicates",
        grouped(trials.iter().map(|trial| trial.taken.claims()).sum()),
        grouped(duplicates)
    ));
    Ok(report)
}

fn table(settings: &BatchSettings, trials: &[Trial]) -> Table {
    let mut table = Table::new(
        format!(
            "{} workers claim and finish {} tasks",
            settings.workers,
            grouped(settings.tasks)
        ),
        &[
            ("batch", "batch"),
            ("tasks_per_s", "tasks"),
            ("rate_ratio", "to the first"),
            ("claims", "claims"),
            ("claim_p50_ms", "claim p50"),
            ("claim_p99_ms", "claim p99"),
            ("split", "split per worker"),
            ("stranded", "stranded by one death"),
            ("wall_s", "wall time"),
        ],
    );
    let first = trials.first().map_or(0.0, Trial::rate);
    for trial in trials {
        table.row([
            Cell::Count(trial.size.into()),
            Cell::Rate(trial.rate()),
            Cell::ratio(trial.rate(), first),
            Cell::Count(trial.claims.len()),
            Cell::ms(trial.claims.p50()),
            Cell::ms(trial.claims.p99()),
            Cell::text(trial.taken.split()),
            Cell::Count(trial.stranded),
            Cell::seconds(trial.wall),
        ]);
    }
    table.note("a claim is one statement, update … where id = any (array(select … for update skip locked)) returning id; a finish another, which sets the batch done. Both are committed.");
    table.note("stranded: a session claims one batch, commits, and is ended with pg_terminate_backend; what is still claimed then.");
    table
}

async fn trial(lab: &Lab, size: u32) -> Result<Trial> {
    let settings = &lab.settings.batches;
    let mut session = lab.session().await?;
    jobs::make(&mut session, settings.tasks).await?;
    let workers = jobs::sessions(lab, settings.workers).await?;
    let claim: Arc<str> = claim_sql(size).into();
    let (outcomes, wall) = crew(workers, |number, session| {
        drain(session, number, Arc::clone(&claim))
    })
    .await?;
    let (by_worker, times): (Vec<_>, Vec<_>) = outcomes.into_iter().unzip();
    let mut claims = Times::default();
    claims.extend(times);
    jobs::make(&mut session, u64::from(size) * 2).await?;
    let mut dying = lab.session().await?;
    take(&mut dying, 1, &claim).await?;
    session.kill(dying.pid).await?;
    let stranded = session
        .number("select count(*) from lab_jobs where status = 'claimed' and claimed_by = 1")
        .await?;
    jobs::drop(&mut session).await?;
    session.close().await;
    Ok(Trial {
        size,
        taken: Taken { by_worker },
        claims,
        wall,
        stranded: stranded.unsigned_abs(),
    })
}

fn claim_sql(size: u32) -> String {
    format!(
        "update lab_jobs
         set status = 'claimed', claimed_by = $1
         where id = any (array(select id from lab_jobs where status = 'new' order by id limit {size} for update skip locked))
         returning id"
    )
}

async fn take(session: &mut Session, worker: i32, claim: &str) -> Result<Vec<i64>> {
    sqlx::query_scalar(AssertSqlSafe(claim))
        .bind(worker)
        .fetch_all(session.db())
        .await
        .doing("claiming a batch")
}

async fn drain(mut session: Session, number: usize, claim: Arc<str>) -> Result<(Vec<i64>, Times)> {
    let worker = i32::try_from(number).unwrap_or(i32::MAX);
    let (mut taken, mut times) = (Vec::new(), Times::default());
    loop {
        let began = Instant::now();
        let ids = take(&mut session, worker, &claim).await?;
        if ids.is_empty() {
            session.close().await;
            return Ok((taken, times));
        }
        times.push(began.elapsed());
        sqlx::query("update lab_jobs set status = 'done', claimed_by = null where id = any ($1)")
            .bind(&ids)
            .execute(session.db())
            .await
            .doing("finishing a batch")?;
        taken.extend(ids);
    }
}
