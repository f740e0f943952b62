//! Section e: size. Workers, tasks, hosts, an open snapshot, and how work is learnt of.
//!
//! The schema is that of a crawl, and every statement the frontier's own: claim, park, finish with a page row a visit, release. Only the
//! filling of the tables is not, since ten million links would take longer to find than to measure.

mod drive;
mod load;
mod snapshot;
mod wake;

use std::time::Duration;

use super::report::{Cell, SectionReport, Table, counted, grouped, rounded};
use super::rules::Facts;
use super::session::Session;
use super::{Lab, Result, Section};
use crate::frontier::{Appetite, FrontierSettings};

use drive::{Drive, Until, drive};
pub(super) use load::empty_crawl;

/// A frontier of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Tasks, all new.
    pub tasks: u64,
    /// Hosts, to which they are dealt in turn. At most as many as tasks.
    pub hosts: u64,
}

impl std::fmt::Display for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {}",
            counted(self.tasks, "task"),
            counted(self.hosts, "host")
        )
    }
}

/// Settings of section e.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleSettings {
    /// Frontiers to be compared; each with the smallest one that has as many hosts, or, where there is none, with the smallest at all.
    /// Default 10 k and 1 M tasks of 1 and 1 k hosts, and 1 M of 100 k.
    pub datasets: Vec<Dataset>,
    /// Workers on each of them, and where a snapshot is held. The server needs cores as well: with more workers they wait for the processor, and
    /// not for Postgres. Default half as many as there are cores, at least 1.
    pub dataset_workers: usize,
    /// The frontier on which the number of workers is varied. Default 1 M tasks of 1 k hosts.
    pub crowd: Dataset,
    /// Numbers of workers; the first is what the others are compared with. Default 1, 2, 4, 8, 16, 32.
    pub workers: Vec<usize>,
    /// Tasks that a claim takes at most. Default 100.
    pub batch: u32,
    /// Hosts that a claim takes them from at most. Default 20.
    pub hosts_per_claim: u32,
    /// Claims a measurement. Default 200.
    pub claims: u64,
    /// Delay of the hosts where holds are measured. Default 250 ms, so that small frontiers are not all asleep.
    pub delay: Duration,
    /// The frontier on which a snapshot is held open. Default 1 M tasks of 100 k hosts.
    pub long: Dataset,
    /// How long it is worked on, without a snapshot and with one. Default 20 s each.
    pub snapshot: Duration,
    /// Parts of that time that have a line of their own. Default 4.
    pub intervals: u32,
    /// Intervals of polling that NOTIFY is compared with. Default 10 ms, 100 ms and 1 s.
    pub polls: Vec<Duration>,
    /// Wake-ups of each kind. Default 20.
    pub wakes: u32,
    /// How long commits with and without a NOTIFY are counted. Default 2 s.
    pub notifying: Duration,
    /// Workers that commit then. Default 8.
    pub notifiers: usize,
}

impl Default for ScaleSettings {
    fn default() -> ScaleSettings {
        ScaleSettings {
            datasets: grid(&[10_000, 1_000_000], &[1, 1_000, 100_000]),
            dataset_workers: std::thread::available_parallelism()
                .map_or(1, |cores| cores.get() / 2)
                .max(1),
            crowd: Dataset {
                tasks: 1_000_000,
                hosts: 1_000,
            },
            workers: vec![1, 2, 4, 8, 16, 32],
            batch: 100,
            hosts_per_claim: 20,
            claims: 200,
            delay: Duration::from_millis(250),
            long: Dataset {
                tasks: 1_000_000,
                hosts: 100_000,
            },
            snapshot: Duration::from_secs(20),
            intervals: 4,
            polls: vec![
                Duration::from_millis(10),
                Duration::from_millis(100),
                Duration::from_secs(1),
            ],
            wakes: 20,
            notifying: Duration::from_secs(2),
            notifiers: 8,
        }
    }
}

impl ScaleSettings {
    /// Ten million tasks, a million hosts, a snapshot held for two minutes.
    pub fn full() -> ScaleSettings {
        ScaleSettings {
            datasets: grid(&[10_000, 1_000_000, 10_000_000], &[1, 1_000, 1_000_000]),
            claims: 600,
            long: Dataset {
                tasks: 10_000_000,
                hosts: 1_000_000,
            },
            snapshot: Duration::from_secs(120),
            intervals: 4,
            wakes: 100,
            notifying: Duration::from_secs(10),
            ..ScaleSettings::default()
        }
    }
}

/// Every size with every number of hosts, but for those with fewer than ten tasks a host: a claim would find fewer of each, and cost less.
fn grid(tasks: &[u64], hosts: &[u64]) -> Vec<Dataset> {
    let mut datasets = Vec::new();
    for &tasks in tasks {
        for &hosts in hosts {
            let dataset = Dataset {
                tasks,
                hosts: hosts.min(tasks / 10).max(1),
            };
            if !datasets.contains(&dataset) {
                datasets.push(dataset);
            }
        }
    }
    datasets
}

/// The goals of the frontier (docs/BENCHMARKS.md): a claim's 99th percentile, and how much slower size or a snapshot may make its median.
const GOAL_P99: Duration = Duration::from_millis(20);
const GOAL_RATIO: f64 = 2.0;

pub(super) async fn run(lab: &Lab, facts: &mut Facts) -> Result<SectionReport> {
    let mut report = SectionReport::new(
        Section::E,
        "Workers, sizes, an open snapshot, wake-ups",
        "the schema of a crawl and the frontier's statements; wake-ups: one raw table",
    );
    crowd(lab, facts, &mut report).await?;
    sizes(lab, facts, &mut report).await?;
    snapshot::run(lab, facts, &mut report).await?;
    wake::run(lab, facts, &mut report).await?;
    let mut session = lab.session().await?;
    empty_crawl(&mut session).await?;
    session.close().await;
    Ok(report)
}

impl ScaleSettings {
    fn appetite(&self, dataset: Dataset) -> Appetite {
        let hosts = u64::from(self.hosts_per_claim).min(dataset.hosts).max(1);
        Appetite {
            hosts: u32::try_from(hosts).unwrap_or(u32::MAX),
            tasks: self.batch,
            tasks_per_host: self
                .batch
                .div_ceil(u32::try_from(hosts).unwrap_or(u32::MAX)),
        }
    }
}

/// Settings of a crawl that obeys no robots.txt: nobody fetches one here, and a host whose file is due is held.
fn frontier(delay: Duration) -> FrontierSettings {
    FrontierSettings {
        delay,
        obey_robots: false,
        patience: Duration::from_secs(30),
        ..FrontierSettings::default()
    }
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}

/// More and more workers on one frontier.
async fn crowd(lab: &Lab, facts: &mut Facts, report: &mut SectionReport) -> Result {
    let settings = &lab.settings.scale;
    let mut session = lab.session().await?;
    let needed = settings.claims * u64::from(settings.batch);
    // The first finds it full, and so shall the last, more or less.
    let mut left = 0;
    let mut drives = Vec::new();
    for &workers in &settings.workers {
        tracing::info!(workers, "claims by number of workers");
        if left < needed.max(settings.crowd.tasks / 2) {
            load::load(&mut session, settings.crowd).await?;
            load::analyze(&mut session).await?;
            left = settings.crowd.tasks;
        }
        left = left.saturating_sub(needed);
        let drive = drive(
            lab,
            workers,
            settings.appetite(settings.crowd),
            &frontier(Duration::ZERO),
            Until::Claims(settings.claims),
        )
        .await?;
        drives.push((workers, drive));
    }
    session.close().await;
    let mut table = Table::new(
        format!(
            "{}: claims of up to {} tasks of {} hosts, each finished with its page row",
            settings.crowd, settings.batch, settings.hosts_per_claim
        ),
        &[
            ("workers", "workers"),
            ("visits_per_s", "visits"),
            ("visits_ratio", "to the first"),
            ("claim_p50_ms", "claim p50"),
            ("claim_p99_ms", "claim p99"),
            ("claim_ratio", "p50 to the first"),
            ("finish_p50_ms", "finish p50"),
            ("finish_p99_ms", "finish p99"),
            ("empty", "empty claims"),
        ],
    );
    let first = drives.first().map(|(_, drive)| drive);
    for (workers, drive) in &drives {
        table.row([
            Cell::Count(*workers as u64),
            Cell::Rate(drive.rate()),
            Cell::ratio(drive.rate(), first.map_or(0.0, Drive::rate)),
            Cell::ms(drive.claims.p50()),
            Cell::ms(drive.claims.p99()),
            Cell::ratio(
                ms(drive.claims.p50()),
                first.map_or(0.0, |first| ms(first.claims.p50())),
            ),
            Cell::ms(drive.finishes.p50()),
            Cell::ms(drive.finishes.p99()),
            Cell::Count(drive.empty),
        ]);
    }
    table.note("workers claim and finish without a pause, as no crawl does that waits for the network: beyond one worker a core the times are those of the queue for the processor.");
    table.note("claim: as the worker sees it, the check of its connection included; empty ones are not among the times. One tiny claim before the start, so that the statement is prepared.");
    report.tables.push(table);
    if let (Some((few, first)), Some((many, last))) = (drives.first(), drives.last()) {
        report.observe(format!(
            "{} visits/s with {} and {} with {many}: {}x; the median claim takes {} ms and {} ms, {} claims came back empty",
            rounded(first.rate()),
            counted(*few as u64, "worker"),
            rounded(last.rate()),
            rounded(last.rate() / first.rate()),
            rounded(ms(first.claims.p50())),
            rounded(ms(last.claims.p50())),
            grouped(drives.iter().map(|(_, drive)| drive.empty).sum())
        ));
        facts.workers = Some(((*few, first.rate()), (*many, last.rate())));
    }
    let refused: u64 = drives.iter().map(|(_, drive)| drive.refused).sum();
    report.goal(
        refused == 0,
        format!("no visit is handed out twice: {refused} finishes were refused"),
    );
    facts.frontier = drives
        .iter()
        .map(|(_, drive)| drive.rate())
        .max_by(f64::total_cmp);
    Ok(())
}

/// A size, measured in three states.
struct Sized {
    dataset: Dataset,
    fresh: Drive,
    analyzed: Drive,
    held: Drive,
    tasks_bytes: u64,
    index_bytes: u64,
}

/// The same workers on larger and larger frontiers.
async fn sizes(lab: &Lab, facts: &mut Facts, report: &mut SectionReport) -> Result {
    let settings = &lab.settings.scale;
    let mut measured = Vec::new();
    for &dataset in &settings.datasets {
        tracing::info!(%dataset, "claims by size");
        measured.push(size(lab, dataset).await?);
    }
    let mut table = Table::new(
        format!(
            "{} workers, claims of up to {} tasks of {} hosts",
            settings.dataset_workers, settings.batch, settings.hosts_per_claim
        ),
        &[
            ("tasks", "tasks"),
            ("hosts", "hosts"),
            ("claim_p50_ms", "claim p50"),
            ("claim_p99_ms", "claim p99"),
            ("size_ratio", "p50 to the small one"),
            ("unanalyzed_p50_ms", "p50 before ANALYZE"),
            ("held_p50_ms", "p50, hosts held"),
            ("held_p99_ms", "p99, hosts held"),
            ("visits_per_s", "visits"),
            ("tasks_bytes", "tasks"),
            ("new_index_bytes", "index of new tasks"),
        ],
    );
    for size in &measured {
        table.row([
            Cell::Count(size.dataset.tasks),
            Cell::Count(size.dataset.hosts),
            Cell::ms(size.analyzed.claims.p50()),
            Cell::ms(size.analyzed.claims.p99()),
            small(&measured, size).map_or(Cell::Nothing, |small| {
                Cell::ratio(
                    ms(size.analyzed.claims.p50()),
                    ms(small.analyzed.claims.p50()),
                )
            }),
            Cell::ms(size.fresh.claims.p50()),
            Cell::ms(size.held.claims.p50()),
            Cell::ms(size.held.claims.p99()),
            Cell::Rate(size.analyzed.rate()),
            Cell::Bytes(size.tasks_bytes),
            Cell::Bytes(size.index_bytes),
        ]);
    }
    table.note("tasks are dealt to the hosts in turn, so those of one host lie scattered over the table, as if discovered over weeks. A frontier that is drained before the claims are through is filled anew.");
    table.note(format!(
        "the small one: the fewest tasks with as many hosts, else the fewest at all with most hosts. Hosts held: with a delay of {} ms, each claim takes holds and each batch ends with a release.",
        settings.delay.as_millis()
    ));
    report.tables.push(table);

    let Some(largest) = measured
        .iter()
        .max_by_key(|size| (size.dataset.tasks, size.dataset.hosts))
    else {
        return Ok(());
    };
    for (what, drive) in [
        ("without holds", &largest.analyzed),
        ("with holds", &largest.held),
    ] {
        report.goal(
            drive.claims.p99() < GOAL_P99,
            format!(
                "claim p99 under {} ms at {}, {what}: {} ms",
                GOAL_P99.as_millis(),
                largest.dataset,
                rounded(ms(drive.claims.p99()))
            ),
        );
    }
    let worst = measured
        .iter()
        .filter(|size| size.dataset.tasks == largest.dataset.tasks)
        .filter_map(|size| {
            let small = small(&measured, size)?;
            let ratio = ms(size.analyzed.claims.p50()) / ms(small.analyzed.claims.p50());
            Some((size, small, ratio))
        })
        .max_by(|a, b| a.2.total_cmp(&b.2));
    if let Some((size, small, ratio)) = worst {
        report.goal(
            ratio < GOAL_RATIO,
            format!(
                "size costs less than {GOAL_RATIO}x: the median claim at {} takes {}x that at {}, which is the worst of its size",
                size.dataset,
                rounded(ratio),
                small.dataset
            ),
        );
        facts.size = Some((small.dataset.tasks, size.dataset.tasks, ratio));
    }
    report.observe(format!(
        "at {} the table takes {} and the index of its new tasks {}; before ANALYZE the median claim takes {}x that after it",
        largest.dataset,
        Cell::Bytes(largest.tasks_bytes),
        Cell::Bytes(largest.index_bytes),
        rounded(ms(largest.fresh.claims.p50()) / ms(largest.analyzed.claims.p50()))
    ));
    Ok(())
}

/// What a size is compared with.
fn small<'a>(all: &'a [Sized], size: &Sized) -> Option<&'a Sized> {
    let fewest = all.iter().map(|other| other.dataset.tasks).min()?;
    let smallest = || all.iter().filter(|other| other.dataset.tasks == fewest);
    smallest()
        .find(|other| other.dataset.hosts == size.dataset.hosts)
        .or_else(|| smallest().max_by_key(|other| other.dataset.hosts))
}

async fn size(lab: &Lab, dataset: Dataset) -> Result<Sized> {
    let settings = &lab.settings.scale;
    let mut session = lab.session().await?;
    load::load(&mut session, dataset).await?;
    let tasks_bytes = bytes(&mut session, "tasks").await?;
    let index_bytes = bytes(&mut session, "tasks_new").await?;
    let free = frontier(Duration::ZERO);
    let fresh = measure(lab, &mut session, dataset, &free, settings.claims / 2).await?;
    load::analyze(&mut session).await?;
    let analyzed = measure(lab, &mut session, dataset, &free, settings.claims).await?;
    let polite = frontier(settings.delay);
    // Claims without a hold say until when somebody may be fetching; here nobody is, and a delay need not wait for that.
    session.run("update hosts set unheld_until = null").await?;
    let held = measure(lab, &mut session, dataset, &polite, settings.claims).await?;
    session.close().await;
    Ok(Sized {
        dataset,
        fresh,
        analyzed,
        held,
        tasks_bytes,
        index_bytes,
    })
}

async fn bytes(session: &mut Session, relation: &str) -> Result<u64> {
    let bytes = session
        .number(format!("select pg_relation_size('{relation}')"))
        .await?;
    Ok(bytes.unsigned_abs())
}

/// Drives until there were so many claims, filling a frontier anew that is drained before.
async fn measure(
    lab: &Lab,
    session: &mut Session,
    dataset: Dataset,
    frontier: &FrontierSettings,
    claims: u64,
) -> Result<Drive> {
    let settings = &lab.settings.scale;
    let mut all = Drive::default();
    // With a delay one host gives one claim a second, however long one asks.
    let claims = if frontier.delay.is_zero() || dataset.hosts > u64::from(settings.hosts_per_claim)
    {
        claims.max(1)
    } else {
        settings.dataset_workers as u64
    };
    loop {
        all.add(
            drive(
                lab,
                settings.dataset_workers,
                settings.appetite(dataset),
                frontier,
                Until::Claims(claims - all.claims.len().min(claims - 1)),
            )
            .await?,
        );
        if all.claims.len() >= claims {
            return Ok(all);
        }
        load::load(session, dataset).await?;
        load::analyze(session).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_at_least_ten_tasks_a_host_and_nothing_twice() {
        let grid = grid(&[10_000, 1_000_000], &[1, 1_000, 100_000]);
        let pairs: Vec<_> = grid.iter().map(|size| (size.tasks, size.hosts)).collect();
        assert_eq!(
            pairs,
            [
                (10_000, 1),
                (10_000, 1_000),
                (1_000_000, 1),
                (1_000_000, 1_000),
                (1_000_000, 100_000)
            ]
        );
    }

    #[test]
    fn the_full_run_reaches_ten_million_tasks_of_a_million_hosts() {
        let full = ScaleSettings::full();
        let largest = Dataset {
            tasks: 10_000_000,
            hosts: 1_000_000,
        };
        assert!(full.datasets.contains(&largest), "{full:?}");
        assert_eq!(full.long, largest);
        // What is claimed of a million before and after ANALYZE and with holds must be there.
        assert!(full.claims * u64::from(full.batch) * 5 / 2 < 1_000_000);
    }
}
