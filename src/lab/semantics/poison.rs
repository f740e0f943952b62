//! A job at the head of the queue that kills whoever works on it.

use std::time::Duration;

use tokio::time::Instant;

use crate::canon::PageUrl;
use crate::frontier::{Appetite, Finish, FrontierSettings, Outcome, Seed};
use crate::lab::error::Doing;
use crate::lab::jobs;
use crate::lab::report::{Cell, SectionReport, Table, grouped};
use crate::lab::scale::empty_crawl;
use crate::lab::session::{Session, patience};
use crate::lab::{Lab, Member, Result};
use crate::pages::PageRow;

/// How a queue came through.
struct Came {
    queue: &'static str,
    deaths: u32,
    done: u64,
    poison: String,
}

pub(super) async fn run(lab: &Lab, report: &mut SectionReport) -> Result {
    let settings = &lab.settings.semantics;
    let queues = [naive(lab).await?, ours(lab).await?];
    let others = u64::from(settings.poisoned.saturating_sub(1));
    let mut table = Table::new(
        format!(
            "A job that kills its worker, at the head of {}, batches of {}",
            grouped(settings.poisoned.into()),
            settings.batch
        ),
        &[
            ("queue", "queue"),
            ("deaths", "workers that died"),
            ("done", "others done"),
            ("others", "of"),
            ("poison", "the job itself"),
        ],
    );
    for came in &queues {
        table.row([
            Cell::text(came.queue),
            Cell::Count(came.deaths.into()),
            Cell::Count(came.done),
            Cell::Count(others),
            Cell::text(came.poison.clone()),
        ]);
        report.observe(format!(
            "{}: after {} deaths {} of the {} other jobs are done, the poison is {}",
            came.queue,
            came.deaths,
            grouped(came.done),
            grouped(others),
            came.poison
        ));
    }
    table.note(format!(
        "the naive queue works inside the transaction of its claim and has no limit of attempts; it was given {} workers. The frontier's died until nothing was open.",
        settings.lives
    ));
    report.tables.push(table);
    Ok(())
}

/// Claim, work and delete in one transaction, as tutorials have it.
async fn naive(lab: &Lab) -> Result<Came> {
    let settings = &lab.settings.semantics;
    let mut session = lab.session().await?;
    jobs::make(&mut session, settings.poisoned.into()).await?;
    let mut deaths = 0;
    for _ in 0..settings.lives {
        let mut worker = lab.session().await?;
        if live_naively(&mut worker, settings.batch).await? {
            session.kill(worker.pid).await?;
            deaths += 1;
        } else {
            worker.close().await;
        }
    }
    let done = session
        .number("select count(*) from lab_jobs where status = 'done'")
        .await?;
    let poison = session
        .words("select status from lab_jobs where id = 1")
        .await?;
    jobs::drop(&mut session).await?;
    session.close().await;
    Ok(Came {
        queue: "a naive queue",
        deaths,
        done: done.unsigned_abs(),
        poison,
    })
}

/// Answers whether it met the poison.
async fn live_naively(worker: &mut Session, batch: u32) -> Result<bool> {
    loop {
        worker.run("begin").await?;
        let answer = worker
            .ask(format!(
                "select id from lab_jobs where status = 'new' order by id limit {batch} for update skip locked"
            ))
            .await?;
        if answer.ids().is_empty() {
            worker.run("commit").await?;
            return Ok(false);
        }
        for id in answer.ids() {
            if *id == 1 {
                return Ok(true);
            }
            worker
                .run(format!(
                    "update lab_jobs set status = 'done' where id = {id}"
                ))
                .await?;
        }
        worker.run("commit").await?;
    }
}

const POISON: &str = "https://poison.test/0";

/// The frontier: claims are committed, deaths counted for what had begun, and the poison comes back apart from the others.
async fn ours(lab: &Lab) -> Result<Came> {
    let settings = &lab.settings.semantics;
    let mut session = lab.session().await?;
    empty_crawl(&mut session).await?;
    let frontier = FrontierSettings {
        delay: Duration::ZERO,
        obey_robots: false,
        patience: Duration::from_secs(10),
        spread: Duration::from_millis(5),
        ..FrontierSettings::default()
    };
    let keeper = lab.worker(&frontier).await?;
    let seeds: Vec<Seed> = (0..settings.poisoned)
        .filter_map(|n| PageUrl::parse(&format!("https://poison.test/{n}")).ok())
        .map(Seed::from)
        .collect();
    // One by one, so that the poison has the first id.
    for seed in &seeds {
        keeper
            .frontier
            .enqueue_seeds(keeper.id, std::slice::from_ref(seed))
            .await?;
    }
    let (mut deaths, began) = (0, Instant::now());
    while !keeper.frontier.finished().await? {
        keeper.frontier.recycle().await?;
        keeper.frontier.promote().await?;
        if live(lab, &frontier, &mut session, &keeper).await? {
            deaths += 1;
        }
        patience(began, "the end of a queue with a poison page").await?;
    }
    keeper.close().await;
    let done = session
        .number("select count(*) from tasks where status = 'done'")
        .await?;
    let poison = session
        .words(format!(
            "select concat_ws(', ', status, reason) from tasks where url = '{POISON}'"
        ))
        .await?;
    empty_crawl(&mut session).await?;
    session.close().await;
    Ok(Came {
        queue: "the frontier",
        deaths,
        done: done.unsigned_abs(),
        poison,
    })
}

/// One worker, until it finds nothing or meets the poison; answers whether it died of it.
async fn live(
    lab: &Lab,
    frontier: &FrontierSettings,
    session: &mut Session,
    keeper: &Member,
) -> Result<bool> {
    let batch = lab.settings.semantics.batch;
    let worker = lab.worker(frontier).await?;
    let appetite = Appetite {
        hosts: 1,
        tasks: batch,
        tasks_per_host: batch,
    };
    loop {
        let claim = worker.frontier.claim(worker.id, appetite).await?;
        worker.frontier.park(&claim.empty).await?;
        if claim.hosts.is_empty() {
            worker
                .frontier
                .leave(worker.id)
                .await
                .doing("leaving the crawl")?;
            worker.close().await;
            return Ok(false);
        }
        for task in claim.hosts.iter().flat_map(|host| &host.tasks) {
            // As the crawl does before a fetch, where a lease was lost before.
            if task.expiries > 0 && !worker.frontier.begin(worker.id, task).await? {
                continue;
            }
            if task.url == POISON {
                worker.kill(session).await?;
                keeper.frontier.bury(&[worker.id]).await?;
                worker.close().await;
                return Ok(true);
            }
            let finish = Finish {
                task: task.id,
                claim_version: task.claim_version,
                outcome: Outcome::Done { reason: None },
                page: Some(PageRow::without_answer("none", "", Duration::ZERO, None)),
                links: Vec::new(),
                edges: Vec::new(),
            };
            worker.frontier.finish(worker.id, &[finish]).await?;
        }
    }
}
