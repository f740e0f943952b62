//! A snapshot that is held open, as a backup or a forgotten transaction does, and what a long run leaves behind.

use std::time::Duration;

use tokio::time::Instant;

use super::drive::{Drive, Until, drive};
use super::{GOAL_RATIO, frontier, load, ms};
use crate::lab::error::Doing;
use crate::lab::report::{Cell, SectionReport, Table, rounded};
use crate::lab::rules::Facts;
use crate::lab::session::Session;
use crate::lab::times::Times;
use crate::lab::{Lab, LabError, Result};

/// What stands in the tables at a moment.
#[derive(Clone, Debug)]
struct Standing {
    at: Duration,
    dead_tasks: u64,
    dead_hosts: u64,
    tasks_bytes: u64,
    indexes_bytes: u64,
    hosts_bytes: u64,
    vacuums: u64,
    /// The walk over the index of ready hosts to the first that is ready, which is a claim's first step.
    walk: Duration,
}

/// A run with its line of time.
struct Long {
    held: bool,
    drive: Drive,
    standings: Vec<Standing>,
}

impl Long {
    /// Times of the claims that ended in an interval.
    fn claims(&self, from: Duration, to: Duration) -> Times {
        self.drive
            .at
            .iter()
            .filter(|(at, _)| *at >= from && *at < to)
            .map(|(_, took)| *took)
            .collect()
    }

    /// Those of the last interval: what a long run comes to.
    fn in_the_end(&self) -> Times {
        let from = self
            .standings
            .len()
            .checked_sub(2)
            .map_or(Duration::ZERO, |before| self.standings[before].at);
        self.claims(from, Duration::MAX)
    }
}

pub(super) async fn run(lab: &Lab, facts: &mut Facts, report: &mut SectionReport) -> Result {
    let settings = &lab.settings.scale;
    let free = long(lab, false).await?;
    let held = long(lab, true).await?;
    let mut table = Table::new(
        format!(
            "{}, {} workers for {} s: without a snapshot, and with one held open from the start",
            settings.long,
            settings.dataset_workers,
            settings.snapshot.as_secs()
        ),
        &[
            ("snapshot_held", "snapshot"),
            ("until_s", "until"),
            ("visits_per_s", "visits"),
            ("claim_p50_ms", "claim p50"),
            ("claim_p99_ms", "claim p99"),
            ("claim_ratio", "p50 to without"),
            ("walk_ms", "walk to a ready host"),
            ("dead_tasks", "dead tasks"),
            ("dead_hosts", "dead hosts"),
            ("tasks_bytes", "tasks"),
            ("task_indexes_bytes", "their indexes"),
            ("hosts_bytes", "hosts, indexes included"),
            ("vacuums", "vacuums so far"),
        ],
    );
    for run in [&free, &held] {
        let mut from = Duration::ZERO;
        for (number, standing) in run.standings.iter().enumerate() {
            let claims = run.claims(from, standing.at);
            let without = free.standings.get(number).map(|same| {
                let since = number
                    .checked_sub(1)
                    .map_or(Duration::ZERO, |before| free.standings[before].at);
                ms(free.claims(since, same.at).p50())
            });
            table.row([
                Cell::text(if run.held { "held" } else { "none" }),
                Cell::seconds(standing.at),
                // Claims are of one size, but for the last of a host.
                Cell::Rate(
                    run.drive.visits as f64 / run.drive.claims.len().max(1) as f64
                        * claims.len() as f64
                        / (standing.at - from).as_secs_f64(),
                ),
                Cell::ms(claims.p50()),
                Cell::ms(claims.p99()),
                Cell::ratio(ms(claims.p50()), without.unwrap_or_default()),
                Cell::ms(standing.walk),
                Cell::Count(standing.dead_tasks),
                Cell::Count(standing.dead_hosts),
                Cell::Bytes(standing.tasks_bytes),
                Cell::Bytes(standing.indexes_bytes),
                Cell::Bytes(standing.hosts_bytes),
                Cell::Count(standing.vacuums),
            ]);
            from = standing.at;
        }
    }
    table.note("dead rows: n_dead_tup of pg_stat_user_tables, an estimate that lags by a second; sizes by pg_relation_size. Autovacuum does what it does on this server (autovacuum_naptime), with the crawl's own settings per table.");
    table.note("the walk: select … from hosts where has_new and priority = 1 and ready_at <= now() order by ready_at limit 1, the median of three. It passes the dead entries of all hosts claimed since a vacuum could remove them; a claim takes that walk every few seconds, and begins in between where the last one found something.");
    table.note("the snapshot: another session in REPEATABLE READ that has read one row. The counts by status are folded every second, as in a crawl.");
    report.tables.push(table);

    let (without, with) = (free.in_the_end(), held.in_the_end());
    let ratio = ms(with.p50()) / ms(without.p50());
    report.goal(
        ratio < GOAL_RATIO,
        format!(
            "an open snapshot costs less than {GOAL_RATIO}x: in the last interval of {} s the median claim takes {} ms with it and {} ms without, {}x (p99 {} ms and {} ms)",
            lab.settings.scale.snapshot.as_secs(),
            rounded(ms(with.p50())),
            rounded(ms(without.p50())),
            rounded(ratio),
            rounded(ms(with.p99())),
            rounded(ms(without.p99()))
        ),
    );
    facts.snapshot = Some(ratio);
    if let (Some(free), Some(held)) = (free.standings.last(), held.standings.last()) {
        let words = |standing: &Standing| {
            format!(
                "{} dead tasks, {} dead hosts, {} for the indexes of tasks, and {} ms to walk to the first ready host",
                Cell::Count(standing.dead_tasks),
                Cell::Count(standing.dead_hosts),
                Cell::Bytes(standing.indexes_bytes),
                rounded(ms(standing.walk))
            )
        };
        report.observe(format!(
            "at the end of the run without the snapshot there are {}; with it {}",
            words(free),
            words(held)
        ));
    }
    Ok(())
}

async fn long(lab: &Lab, held: bool) -> Result<Long> {
    let settings = &lab.settings.scale;
    tracing::info!(held, "a long run, with or without a snapshot");
    let mut session = lab.session().await?;
    load::load(&mut session, settings.long).await?;
    load::analyze(&mut session).await?;
    let mut snapshot = lab.session().await?;
    if held {
        snapshot
            .run("begin isolation level repeatable read; select from hosts limit 1")
            .await?;
    }
    let upkeep = lab.worker(&frontier(Duration::ZERO)).await?;
    let folding = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if upkeep.frontier.fold_counts().await.is_err() {
                return;
            }
        }
    });
    let _end = AbortOnDrop(folding);
    let (span, intervals) = (settings.snapshot, settings.intervals.max(1));
    let watching = tokio::spawn(async move {
        let began = Instant::now();
        let before = vacuums(&mut session).await?;
        // As the pool's connections have it.
        session
            .run("set enable_seqscan = off; set enable_bitmapscan = off")
            .await?;
        let mut standings = Vec::new();
        for interval in 1..=intervals {
            tokio::time::sleep_until(
                began + span.mul_f64(f64::from(interval) / f64::from(intervals)),
            )
            .await;
            standings.push(standing(&mut session, began, before).await?);
        }
        session.close().await;
        Ok::<_, LabError>(standings)
    });
    let mut watching = AbortOnDrop(watching);
    let drive = drive(
        lab,
        settings.dataset_workers,
        settings.appetite(settings.long),
        &frontier(Duration::ZERO),
        Until::Over(span),
    )
    .await?;
    let standings = (&mut watching.0).await.map_err(LabError::Panicked)??;
    snapshot.close().await;
    Ok(Long {
        held,
        drive,
        standings,
    })
}

async fn vacuums(session: &mut Session) -> Result<u64> {
    let vacuums = session
        .number(
            "select coalesce(sum(vacuum_count + autovacuum_count), 0)::bigint
             from pg_stat_user_tables where relid in ('tasks'::regclass, 'hosts'::regclass)",
        )
        .await?;
    Ok(vacuums.unsigned_abs())
}

async fn standing(session: &mut Session, began: Instant, vacuums_before: u64) -> Result<Standing> {
    let (dead_tasks, dead_hosts, tasks, indexes, hosts): (i64, i64, i64, i64, i64) =
        sqlx::query_as(
            "select coalesce(max(n_dead_tup) filter (where relid = 'tasks'::regclass), 0),
                coalesce(max(n_dead_tup) filter (where relid = 'hosts'::regclass), 0),
                pg_relation_size('tasks'), pg_indexes_size('tasks'), pg_total_relation_size('hosts')
         from pg_stat_user_tables
         where relid in ('tasks'::regclass, 'hosts'::regclass)",
        )
        .fetch_one(session.db())
        .await
        .doing("asking for sizes and dead rows")?;
    let at = began.elapsed();
    let mut walks = Times::default();
    for _ in 0..3 {
        let (_, took) = session
            .timed("select id::bigint from hosts where has_new and priority = 1 and ready_at <= now() order by ready_at limit 1")
            .await?;
        walks.push(took);
    }
    Ok(Standing {
        at,
        walk: walks.p50(),
        dead_tasks: dead_tasks.unsigned_abs(),
        dead_hosts: dead_hosts.unsigned_abs(),
        tasks_bytes: tasks.unsigned_abs(),
        indexes_bytes: indexes.unsigned_abs(),
        hosts_bytes: hosts.unsigned_abs(),
        vacuums: vacuums(session).await?.saturating_sub(vacuums_before),
    })
}

/// A task that ends with whoever started it.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
