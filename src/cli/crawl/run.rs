//! One crawl of this process, from an open database to an exit code. `crawl` and `demo` share it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::PgPool;

use super::super::Exit;
use super::super::database::{Opened, hinted_db};
use super::super::output::{self, WithHint};
use super::super::progress::{Progress, ProgressLine};
use super::super::seeds::{self, Source};
use super::{advice, signals, summary};
use crate::config::Config;
use crate::crawl::{Crawl, ScopeRules, Stop, Watch};
use crate::db::{self, DbSettings};
use crate::fetch::{Fetcher, PrivateGuard, ProxyEnvironment};
use crate::frontier::{Frontier, FrontierError};
use crate::scope::Scope;
use crate::status;

/// What is to be crawled.
pub(in crate::cli) struct Order {
    /// Where its seeds come from; none: it goes on.
    pub(in crate::cli) sources: Vec<Source>,
    /// Whether what is done or failed is visited again.
    pub(in crate::cli) refresh: bool,
    /// Whether neither progress nor summary is shown.
    pub(in crate::cli) quiet: bool,
    /// The crawl's name as typed, for the words that say what to type next.
    pub(in crate::cli) crawl: Option<String>,
}

/// Joins the crawl of a database, adds the seeds, and crawls until it ends or is told to.
///
/// # Errors
///
/// Seeds that cannot be read, a contact that is missing, a database that will not do.
pub(in crate::cli) async fn crawl(
    config: &Config,
    opened: &Opened,
    order: Order,
) -> anyhow::Result<Exit> {
    let pool = opened.pool().await?;
    // On a connection of its own, which nothing that the crawl does can keep waiting.
    let heart = db::connect(
        &opened.url,
        &DbSettings {
            max_connections: 1,
            application_name: "pgcrawl heartbeat".to_owned(),
            ..config.db_settings()
        },
    )
    .await
    .map_err(hinted_db)?;
    let crawl = join(config, &pool, &heart).await?;
    let ended = with(config, &pool, &crawl, order).await;
    // Also after an error: what this process had claimed is open again at once.
    crawl.leave().await;
    heart.close().await;
    pool.close().await;
    ended
}

async fn join(config: &Config, pool: &PgPool, heart: &PgPool) -> anyhow::Result<Crawl> {
    let scope = config.crawl.scope;
    let rules = ScopeRules::new(Scope::new(scope, config.trap_limits()));
    let guard = {
        let rules = Arc::clone(&rules);
        PrivateGuard::new(move |host| rules.names(host))
    };
    let environment = ProxyEnvironment::read(|name| std::env::var(name).ok());
    let fetcher = Fetcher::new(config.fetch_settings(environment), guard)?;
    let joined = Crawl::join(
        config.crawl_settings(),
        Frontier::new(pool.clone(), config.frontier_settings()),
        Frontier::new(heart.clone(), config.frontier_settings()),
        fetcher,
        rules,
    )
    .await;
    match joined {
        Err(error @ FrontierError::Differs { .. }) => Err(error).hint(
            "what all machines of a crawl share is decided by its first start; \
             take the same, or begin another crawl with --crawl NAME",
        ),
        other => Ok(other?),
    }
}

async fn with(config: &Config, pool: &PgPool, crawl: &Crawl, order: Order) -> anyhow::Result<Exit> {
    add_seeds(crawl, order.sources).await?;
    advice::contact(config, crawl).await?;
    if !config.crawl.obey_robots {
        output::warn(
            "robots.txt is neither fetched nor obeyed",
            Some("for sites of your own only"),
        );
    }
    if order.refresh {
        let refreshed = crawl.refresh().await?;
        output::say(format_args!("{refreshed} tasks are to be visited again"));
    }
    if crawl.is_finished().await? {
        return nothing_open(pool, crawl, order.quiet).await;
    }
    let stop = Stop::default();
    let signals = signals::watch(stop.clone(), config.shutdown.grace);
    let progress = tokio::spawn(show_progress(pool.clone(), crawl.watch(), order.quiet));
    let run = crawl.run(stop).await;
    progress.abort();
    let _ = progress.await;
    signals.abort();
    let summary = match run {
        Ok(summary) => summary,
        Err(error) => return lost(error),
    };
    if !order.quiet {
        summary::say(pool, &crawl.watch(), &summary, order.crawl.as_deref()).await;
    }
    Ok(summary::exit(&summary))
}

/// Streams the seeds into the frontier; bad lines are told and the rest goes on.
async fn add_seeds(crawl: &Crawl, sources: Vec<Source>) -> anyhow::Result<()> {
    if sources.is_empty() {
        return Ok(());
    }
    let mut batches = seeds::stream(sources);
    let (mut given, mut fresh, mut bad) = (0, 0, 0);
    while let Some(batch) = batches.recv().await {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                let hint = error.hint().unwrap_or("one URL a line");
                return Err(error).hint(hint);
            }
        };
        for line in &batch.bad {
            output::warn(&line.to_string(), None);
        }
        bad = batch.bad_lines;
        given += batch.seeds.len();
        fresh += crawl.add_seeds(&batch.seeds).await?;
    }
    if bad > 0 {
        output::warn(
            &format!("{bad} bad lines among the seeds were left out"),
            None,
        );
    }
    tracing::info!("{given} seeds, {fresh} of them new");
    Ok(())
}

/// There is nothing to fetch: say so, and what would change that.
async fn nothing_open(pool: &PgPool, crawl: &Crawl, quiet: bool) -> anyhow::Result<Exit> {
    let status = status::status(pool).await?;
    if !quiet {
        output::say(format_args!(
            "nothing is open: {} done, {} failed, {} excluded; nothing was fetched",
            status.done, status.failed, status.excluded
        ));
        output::say("  --refresh       visits all of it again");
        output::say("  --crawl OTHER   begins another crawl");
    }
    let ending = crawl.ending().await?;
    if !quiet {
        summary::left(&ending);
    }
    Ok(summary::exit_of(&ending))
}

/// The database failed for good: not an error of the command, but an end with a code of its own.
fn lost(error: FrontierError) -> anyhow::Result<Exit> {
    let exit = match &error {
        FrontierError::Lost { .. } => Exit::DatabaseLost,
        FrontierError::DiskFull { .. } => Exit::DiskFull,
        _ => return Err(error.into()),
    };
    output::report(&anyhow::Error::from(error));
    output::say("nothing is lost: start the same command again to go on");
    Ok(exit)
}

async fn show_progress(pool: PgPool, watch: Watch, quiet: bool) {
    let line = ProgressLine::start(quiet);
    let mut before = (Instant::now(), watch.tally().counts().done);
    loop {
        tokio::time::sleep(line.interval()).await;
        let counts = watch.tally().counts();
        let span = before.0.elapsed().max(Duration::from_millis(1));
        #[allow(clippy::cast_precision_loss, reason = "a rate for the eye")]
        let pages_per_second = (counts.done - before.1) as f64 / span.as_secs_f64();
        before = (Instant::now(), counts.done);
        // A database in trouble says so in the log; the line waits for it.
        let Ok(status) = status::status(&pool).await else {
            continue;
        };
        line.show(&Progress {
            pages: counts.done,
            pages_per_second,
            open: (status.new + status.claimed).unsigned_abs(),
            hosts: status.hosts.unsigned_abs(),
            failures: counts.failed,
        });
    }
}
