//! The same workers on larger and larger frontiers.

use super::drive::{Drive, Until, drive};
use super::{Dataset, GOAL_P99, bytes, frontier, load, ms};
use crate::frontier::FrontierSettings;
use crate::lab::report::{Cell, SectionReport, Table, rounded};
use crate::lab::rules::Facts;
use crate::lab::session::Session;
use crate::lab::{Lab, Result};

use std::time::Duration;

/// A size, measured in three states.
struct Sized {
    dataset: Dataset,
    fresh: Drive,
    analyzed: Drive,
    held: Drive,
    tasks_bytes: u64,
    index_bytes: u64,
}

pub(super) async fn run(lab: &Lab, facts: &mut Facts, report: &mut SectionReport) -> Result {
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
            ("wal_bytes", "WAL a visit"),
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
            Cell::Bytes(size.analyzed.wal_a_visit()),
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
        report.observe(format!(
            "size: the median claim at {}, all of them new, takes {}x that at {}, which is the worst of its size",
            size.dataset,
            rounded(ratio),
            small.dataset
        ));
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
