//! The same open tasks behind more and more that are done: a crawl late in its life.

use super::drive::{Drive, Until, drive};
use super::load::{self, Fill};
use super::{GOAL_RATIO, frontier, ms};
use crate::lab::report::{Cell, SectionReport, Table, counted, grouped, rounded};
use crate::lab::rules::Facts;
use crate::lab::{Lab, Result};

use std::time::Duration;

/// What was measured behind so many tasks that are done.
struct Behind {
    done: u64,
    drive: Drive,
    tasks_bytes: u64,
}

/// Claims and finishes the same open tasks, with nothing and with millions behind them.
pub(super) async fn run(lab: &Lab, facts: &mut Facts, report: &mut SectionReport) -> Result {
    let settings = &lab.settings.scale;
    let mut measured = Vec::new();
    for &done in &settings.done {
        tracing::info!(done, "claims by what is done");
        measured.push(behind(lab, done).await?);
    }
    let mut table = Table::new(
        format!(
            "{} open, {}, claims of up to {} tasks of {} hosts",
            settings.open,
            counted(settings.dataset_workers as u64, "worker"),
            settings.batch,
            settings.hosts_per_claim
        ),
        &[
            ("done", "done beside them"),
            ("claim_p50_ms", "claim p50"),
            ("claim_p99_ms", "claim p99"),
            ("done_ratio", "p50 to the first"),
            ("finish_p50_ms", "finish p50"),
            ("wal_bytes", "WAL a visit"),
            ("tasks_bytes", "tasks"),
        ],
    );
    let first = measured
        .first()
        .map_or(0.0, |first| ms(first.drive.claims.p50()));
    for behind in &measured {
        table.row([
            Cell::Count(behind.done),
            Cell::ms(behind.drive.claims.p50()),
            Cell::ms(behind.drive.claims.p99()),
            Cell::ratio(ms(behind.drive.claims.p50()), first),
            Cell::ms(behind.drive.finishes.p50()),
            Cell::Bytes(behind.drive.wal_a_visit()),
            Cell::Bytes(behind.tasks_bytes),
        ]);
    }
    table.note("what is done was discovered first, as in a crawl; the open tasks are dealt to the same hosts in turn. They are drained and opened again until there were enough claims, with a checkpoint before each round, after which the first change of a page is logged whole.");
    report.tables.push(table);
    if let [first, .., last] = &measured[..] {
        let ratio = ms(last.drive.claims.p50()) / ms(first.drive.claims.p50());
        report.goal(
            ratio < GOAL_RATIO,
            format!(
                "what is done costs less than {GOAL_RATIO}x: with {} done beside {} the median claim takes {}x that with {}",
                grouped(last.done),
                counted(settings.open.tasks, "open task"),
                rounded(ratio),
                grouped(first.done),
            ),
        );
        facts.done = Some((first.done, last.done, ratio));
    }
    Ok(())
}

async fn behind(lab: &Lab, done: u64) -> Result<Behind> {
    let settings = &lab.settings.scale;
    let mut session = lab.session().await?;
    let fill = Fill {
        open: settings.open,
        done,
    };
    load::load(&mut session, fill).await?;
    load::analyze(&mut session).await?;
    let tasks_bytes = super::bytes(&mut session, "tasks").await?;
    let mut all = Drive::default();
    loop {
        // Left out where the server does not let us: it is only for a fair first round.
        session.ask("checkpoint").await?;
        let drive = drive(
            lab,
            settings.dataset_workers,
            settings.appetite(settings.open),
            &frontier(Duration::ZERO),
            Until::Claims(settings.claims - all.claims.len().min(settings.claims - 1)),
        )
        .await?;
        all.add(drive);
        if all.claims.len() >= settings.claims {
            break;
        }
        load::reopen(&mut session, fill).await?;
    }
    session.close().await;
    Ok(Behind {
        done,
        drive: all,
        tasks_bytes,
    })
}
