//! How a worker learns of a new task: by NOTIFY, or by looking again and again; and what a NOTIFY costs whoever sends it.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::time::Instant;

use super::ms;
use crate::db::connect;
use crate::lab::crew::crew;
use crate::lab::error::Doing;
use crate::lab::jobs;
use crate::lab::report::{Cell, SectionReport, Table, rounded};
use crate::lab::rules::Facts;
use crate::lab::session::Session;
use crate::lab::times::Times;
use crate::lab::{Lab, Result};

struct Way {
    name: String,
    times: Times,
    /// Questions a task.
    looks: f64,
}

pub(super) async fn run(lab: &Lab, facts: &mut Facts, report: &mut SectionReport) -> Result {
    let settings = &lab.settings.scale;
    let mut session = lab.session().await?;
    jobs::make(&mut session, 0).await?;
    let mut ways = vec![by_notify(lab, &mut session).await?];
    for &every in &settings.polls {
        ways.push(by_polling(lab, &mut session, every).await?);
    }
    let plain = commits(lab, "").await?;
    let with = commits(lab, &format!("notify {};", channel(lab))).await?;
    jobs::drop(&mut session).await?;
    session.close().await;

    let mut table = Table::new(
        format!(
            "From the insert of a task until a waiting worker has it, {} times",
            settings.wakes
        ),
        &[
            ("way", "learnt by"),
            ("p50_ms", "p50"),
            ("p99_ms", "p99"),
            ("ratio", "p50 to NOTIFY"),
            ("questions", "questions a task"),
        ],
    );
    let notify = ways.first().map_or(0.0, |way| ms(way.times.p50()));
    for way in &ways {
        table.row([
            Cell::text(way.name.clone()),
            Cell::ms(way.times.p50()),
            Cell::ms(way.times.p99()),
            Cell::ratio(ms(way.times.p50()), notify),
            Cell::Mean(way.looks),
        ]);
    }
    table.note("a task is inserted at a random moment, with the NOTIFY in the same transaction; the time runs from the sending of that transaction until the worker's claim has returned the task.");
    report.tables.push(table);

    let mut table = Table::new(
        format!(
            "{} workers insert and commit for {} s",
            settings.notifiers,
            rounded(settings.notifying.as_secs_f64())
        ),
        &[
            ("transaction", "transaction"),
            ("commits_per_s", "commits"),
            ("ratio", "to without"),
        ],
    );
    table.row([Cell::text("insert"), Cell::Rate(plain), Cell::Ratio(1.0)]);
    table.row([
        Cell::text("insert, notify"),
        Cell::Rate(with),
        Cell::ratio(with, plain),
    ]);
    table.note("transactions that notify take a lock of the whole database while they commit (src/backend/commands/async.c), so they commit one after the other.");
    report.tables.push(table);

    let quickest = ways
        .iter()
        .skip(1)
        .min_by_key(|way| way.times.p50())
        .map(|way| (way.name.clone(), ms(way.times.p50())));
    if let Some((name, polled)) = quickest {
        report.observe(format!(
            "NOTIFY wakes a worker after {} ms, {name} after {} ms: {}x",
            rounded(notify),
            rounded(polled),
            rounded(polled / notify)
        ));
        facts.wake = Some((notify, polled, with / plain));
    }
    report.observe(format!(
        "with a NOTIFY in each transaction {} workers commit {}/s, without {}/s: {}x",
        settings.notifiers,
        rounded(with),
        rounded(plain),
        rounded(with / plain)
    ));
    Ok(())
}

/// The longest pause before a NOTIFY: long enough that the listener sleeps.
const NOTIFIED_WITHIN: Duration = Duration::from_millis(100);

/// Takes the one new task, if it is there.
async fn take(session: &mut Session) -> Result<bool> {
    let taken = session
        .ask(
            "update lab_jobs set status = 'done'
             where id = any (array(select id from lab_jobs where status = 'new' order by id limit 1 for update skip locked))
             returning id",
        )
        .await?;
    Ok(!taken.ids().is_empty())
}

/// Inserts one at a random moment of the interval that the other one looks in. Answers when that was sent.
async fn insert(session: &mut Session, channel: &str, every: Duration) -> Result<Instant> {
    tokio::time::sleep(every.mul_f64(rand::random_range(0.0..1.0))).await;
    let sent = Instant::now();
    session
        .run(format!(
            "begin; insert into lab_jobs (id) select coalesce(max(id), 0) + 1 from lab_jobs; notify {channel}; commit"
        ))
        .await?;
    Ok(sent)
}

/// The name of the run: others may use this database.
fn channel(lab: &Lab) -> &str {
    lab.scratch.name()
}

async fn by_notify(lab: &Lab, session: &mut Session) -> Result<Way> {
    let pool = connect(lab.scratch.url(), &lab.db_settings(1)).await?;
    let mut listener = PgListener::connect_with(&pool)
        .await
        .doing("connecting a listener")?;
    listener.listen(channel(lab)).await.doing("listening")?;
    let mut worker = lab.session().await?;
    let (mut times, mut looks) = (Times::default(), 0);
    for _ in 0..lab.settings.scale.wakes {
        let waiting = async {
            loop {
                listener.recv().await.doing("waiting for a notification")?;
                looks += 1;
                if take(&mut worker).await? {
                    return Ok(Instant::now());
                }
            }
        };
        let (sent, had) =
            tokio::try_join!(insert(session, channel(lab), NOTIFIED_WITHIN), waiting)?;
        times.push(had - sent);
    }
    worker.close().await;
    drop(listener);
    pool.close().await;
    Ok(Way {
        name: "LISTEN/NOTIFY".to_owned(),
        looks: f64::from(looks) / times.len().max(1) as f64,
        times,
    })
}

async fn by_polling(lab: &Lab, session: &mut Session, every: Duration) -> Result<Way> {
    let mut worker = lab.session().await?;
    let (mut times, mut looks) = (Times::default(), 0);
    // The worker looks on while nothing is there, as it would; so the insert falls anywhere between two looks.
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for _ in 0..lab.settings.scale.wakes {
        let looking = async {
            loop {
                ticks.tick().await;
                looks += 1;
                if take(&mut worker).await? {
                    return Ok(Instant::now());
                }
            }
        };
        let (sent, had) = tokio::try_join!(insert(session, channel(lab), every), looking)?;
        times.push(had - sent);
    }
    worker.close().await;
    Ok(Way {
        name: format!("polling every {} ms", every.as_millis()),
        looks: f64::from(looks) / times.len().max(1) as f64,
        times,
    })
}

/// Commits a second.
async fn commits(lab: &Lab, notify: &str) -> Result<f64> {
    let settings = &lab.settings.scale;
    let mut session = lab.session().await?;
    session
        .run("create table lab_commits (n int not null)")
        .await?;
    let workers = jobs::sessions(lab, settings.notifiers).await?;
    // Somebody must listen: a notification without a listener is thrown away sooner.
    let pool = connect(lab.scratch.url(), &lab.db_settings(1)).await?;
    let mut listener = PgListener::connect_with(&pool)
        .await
        .doing("connecting a listener")?;
    listener.listen(channel(lab)).await.doing("listening")?;
    let statement = format!("begin; insert into lab_commits values (1); {notify} commit");
    let span = settings.notifying;
    let (counts, took) = crew(workers, |_, mut session| {
        let statement = statement.clone();
        async move {
            let began = Instant::now();
            let mut commits = 0_u64;
            while began.elapsed() < span {
                session.run(statement.clone()).await?;
                commits += 1;
            }
            session.close().await;
            Ok(commits)
        }
    })
    .await?;
    drop(listener);
    pool.close().await;
    session.run("drop table lab_commits").await?;
    session.close().await;
    Ok(counts.iter().sum::<u64>() as f64 / took.as_secs_f64())
}
