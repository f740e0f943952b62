//! More and more workers on one frontier.

use std::time::Duration;

use super::drive::{Drive, Until, drive};
use super::{frontier, load, ms};
use crate::lab::report::{Cell, SectionReport, Table, counted, grouped, rounded};
use crate::lab::rules::Facts;
use crate::lab::{Lab, Result};

pub(super) async fn run(lab: &Lab, facts: &mut Facts, report: &mut SectionReport) -> Result {
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
