//! From what was typed here and what the crawl has agreed on to the settings of this process.

use std::time::Duration;

use rand::RngExt as _;
use sqlx::PgPool;

use super::super::database::with_hint;
use super::super::output;
use crate::canon;
use crate::config::{AgreementError, Loaded};
use crate::crawl::Stop;
use crate::frontier::{Agreement, Frontier, FrontierSettings};

/// How often a process looks whether the crawl that it waits for has begun.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The settings under which a process takes part, and their version.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Terms {
    pub(in crate::cli) loaded: Loaded,
    pub(in crate::cli) version: i32,
}

/// Opens the crawl of a database, or begins it with what was typed here.
///
/// # Errors
///
/// Something was set here that the crawl has otherwise, or does not go with what it has.
pub(in crate::cli) async fn open(pool: &PgPool, loaded: &Loaded) -> anyhow::Result<Terms> {
    let frontier = bare(pool, loaded);
    let stored = frontier
        .agreement(canon::VERSION)
        .await?
        .unwrap_or_default();
    // Judged before anything is written: a first start must not leave a crawl behind that nobody can join.
    let agreed = agree(loaded, &stored)?.loaded;
    // Somebody may have begun it meanwhile.
    let stored = frontier.open(canon::VERSION, &agreed.proposal()).await?;
    agree(loaded, &stored)
}

/// Waits until the database has a crawl, and takes its settings; where `with_tasks`, until it has tasks, too: whoever begins it adds its seeds
/// after. `None`: told to stop before.
///
/// # Errors
///
/// As [`open`].
pub(in crate::cli) async fn wait(
    pool: &PgPool,
    loaded: &Loaded,
    with_tasks: bool,
    stop: &Stop,
) -> anyhow::Result<Option<Terms>> {
    let frontier = bare(pool, loaded);
    let mut said = "";
    loop {
        let lacks = match frontier.agreement(canon::VERSION).await? {
            Some(stored) => {
                if !with_tasks || frontier.has_tasks().await? {
                    // As any start: what this version of the program knows and the crawl does not have yet is agreed on now.
                    return open(pool, loaded).await.map(Some);
                }
                agree(loaded, &stored)?;
                "the crawl has no tasks yet; waiting for its first seeds"
            }
            None => "no crawl was begun here yet; waiting for `pgcrawl crawl SEEDS`",
        };
        if said != lacks {
            output::say(lacks);
            said = lacks;
        }
        let jitter = rand::rng().random_range(0.8..1.2);
        tokio::select! {
            () = stop.drain.cancelled() => return Ok(None),
            () = tokio::time::sleep(LOOK_EVERY.mul_f64(jitter)) => {}
        }
    }
}

/// Takes the settings of a crawl that this process is in, after they changed.
///
/// # Errors
///
/// They do not go with this machine's own.
pub(super) async fn follow(pool: &PgPool, loaded: &Loaded) -> anyhow::Result<Terms> {
    let stored = bare(pool, loaded).agreement(canon::VERSION).await?;
    let stored = stored.unwrap_or_default();
    terms(loaded.follow(&stored.settings), stored.version)
}

/// The settings of a crawl, whatever is set here, for commands that look after it; `None` where none was begun. They are not held against this
/// machine's own: nothing is fetched under both.
///
/// # Errors
///
/// A value that cannot be read, or a database that will not do.
pub(in crate::cli) async fn existing(
    pool: &PgPool,
    loaded: &Loaded,
) -> anyhow::Result<Option<Terms>> {
    let stored = bare(pool, loaded).agreement(canon::VERSION).await?;
    stored
        .map(|stored| terms(loaded.look_on(&stored.settings), stored.version))
        .transpose()
}

fn agree(loaded: &Loaded, stored: &Agreement) -> anyhow::Result<Terms> {
    terms(loaded.agree(&stored.settings), stored.version)
}

fn terms(agreed: Result<Loaded, AgreementError>, version: i32) -> anyhow::Result<Terms> {
    match agreed {
        Ok(loaded) => Ok(Terms { loaded, version }),
        // All complaints, each with its hint, as for a configuration that is wrong by itself.
        Err(AgreementError::Problems(problems)) => Err(problems.into()),
        Err(error) => {
            let hint = error.hint();
            Err(with_hint(error.into(), hint))
        }
    }
}

/// A frontier before its settings are known.
fn bare(pool: &PgPool, loaded: &Loaded) -> Frontier {
    let settings = FrontierSettings {
        patience: loaded.config.database.patience,
        ..FrontierSettings::default()
    };
    Frontier::new(pool.clone(), settings)
}
