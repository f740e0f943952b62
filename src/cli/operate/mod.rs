//! What operators do to a crawl, whether it runs or not: `retry`, `requeue`, `exclude`, `reprioritise`, `park`, `unpark`, `set-delay`, `pause`,
//! `resume`, `reindex`. Each has its dry run.

use std::ops::ControlFlow;
use std::time::Instant;

use clap::{Args, Subcommand};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::crawl::existing;
use super::crawl::signals::Signals;
use super::database::{self, DatabaseArgs, Missing, hinted_db, with_hint};
use super::progress::ProgressLine;
use super::{Context, Exit, output};
use crate::config::{FlagValue, Loaded};
use crate::frontier::Frontier;
use crate::frontier::operate::{OperateError, Operator, Tally};
use crate::status;

mod hosts;
mod pause;
mod reindex;
mod scope;
mod tasks;
mod traps;

/// What an operator does to a crawl.
#[derive(Debug, Subcommand)]
pub enum OperateCommand {
    /// Try failed tasks again, and reopen their hosts
    ///
    /// Attempts count from 0 again. A host that was given up, or rests after failures, is asked again; one that an operator parked stays parked.
    Retry(tasks::RetryArgs),
    /// Visit again what is done, failed or excluded
    Requeue(tasks::RequeueArgs),
    /// Leave out what is still to be visited
    ///
    /// New and claimed tasks, and failed ones that wait for a retry, become excluded, reason operator. A visit that is under way leaves no page.
    /// What is found later is not covered: `crawl.scope` is.
    Exclude(tasks::ExcludeArgs),
    /// Visit tasks sooner or later within their host, or a host before others
    Reprioritise(tasks::ReprioritiseArgs),
    /// Claim nothing from a host until it is unparked
    Park(hosts::ParkArgs),
    /// Go on with a parked host
    Unpark(hosts::UnparkArgs),
    /// Give a host a delay of its own
    SetDelay(hosts::SetDelayArgs),
    /// Claim nothing until the crawl is resumed
    ///
    /// On all machines, at once, and also after a restart. What is in flight is finished.
    Pause(pause::PauseArgs),
    /// Go on with a paused crawl
    Resume(pause::ResumeArgs),
    /// Show or change what belongs to the crawl, whether it runs or not
    ///
    /// Rules are those of scope.rules, see config/default.toml. Tasks that are still to be visited and do not belong to the crawl any more are
    /// excluded; those that were excluded by rules and belong to it come back. What no row was kept of is found again when the page that
    /// links to it is visited again (`pgcrawl requeue`). Running processes follow within seconds.
    Scope(scope::ScopeArgs),
    /// Show shapes of URLs that are left out, or take one in again
    ///
    /// Their pages bring nothing new: see view trap_shapes.
    Traps(traps::TrapsArgs),
    /// Build the frontier's indexes anew, beside the running crawl
    ///
    /// For when they have grown: see queue_health, and docs/OPERATING.md.
    Reindex(reindex::ReindexArgs),
}

/// Flags of them all.
#[derive(Debug, Clone, Default, Args)]
struct Common {
    /// Say what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

impl OperateCommand {
    fn common(&self) -> &Common {
        match self {
            Self::Retry(args) => &args.common,
            Self::Requeue(args) => &args.common,
            Self::Exclude(args) => &args.common,
            Self::Reprioritise(args) => &args.common,
            Self::Park(args) => &args.common,
            Self::Unpark(args) => &args.common,
            Self::SetDelay(args) => &args.common,
            Self::Pause(args) => &args.common,
            Self::Resume(args) => &args.common,
            Self::Scope(args) => args.common(),
            Self::Traps(args) => args.common(),
            Self::Reindex(args) => &args.common,
        }
    }

    pub(super) fn flags(&self) -> Vec<FlagValue> {
        self.common().database.flags()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let common = self.common().clone();
        let opened = database::open(&common.database, context, Missing::Refuse).await?;
        let ended = match opened.pool().await {
            Ok(pool) => {
                let ended = self.on(&pool, common, context).await;
                crate::db::close(pool).await;
                ended
            }
            Err(error) => Err(error),
        };
        opened.close().await?;
        ended
    }

    async fn on(self, pool: &PgPool, common: Common, context: &Context) -> anyhow::Result<Exit> {
        // The crawl's own: a delay that appears has to wait for its lease, and not for one that is set here. Nothing else of them matters.
        let settings = match existing(pool, &context.loaded).await? {
            Some(terms) => terms.loaded.config.frontier_settings(terms.version),
            None => context.loaded.config.frontier_settings(0),
        };
        let desk = Desk {
            operator: Operator::new(Frontier::new(pool.clone(), settings)),
            loaded: context.loaded.clone(),
            common,
            quiet: context.quiet,
        };
        let ended = self.at(&desk).await;
        if !desk.common.dry_run {
            // A hint: without it they look within two seconds.
            let _ = desk.operator.frontier().nudge().await;
        }
        ended
    }

    async fn at(self, desk: &Desk) -> anyhow::Result<Exit> {
        match self {
            Self::Retry(args) => args.run(desk).await,
            Self::Requeue(args) => args.run(desk).await,
            Self::Exclude(args) => args.run(desk).await,
            Self::Reprioritise(args) => args.run(desk).await,
            Self::Park(args) => args.run(desk).await,
            Self::Unpark(args) => args.run(desk).await,
            Self::SetDelay(args) => args.run(desk).await,
            Self::Pause(args) => args.run(desk).await,
            Self::Resume(args) => args.run(desk).await,
            Self::Scope(args) => args.run(desk).await,
            Self::Traps(args) => args.run(desk).await,
            Self::Reindex(args) => args.run(desk).await,
        }
    }
}

/// Where an operator works: the hands, and how to tell what they did.
struct Desk {
    operator: Operator,
    /// What is set on this machine.
    loaded: Loaded,
    common: Common,
    quiet: bool,
}

impl Desk {
    /// Says something that is no result.
    fn say(&self, words: impl std::fmt::Display) {
        if !self.quiet && !self.common.json {
            output::say(words);
        }
    }

    /// The name of the crawl, as a flag to type again.
    fn crawl(&self) -> String {
        let name = self.common.database.crawl.as_ref();
        name.map_or_else(String::new, |name| format!(" --crawl {name}"))
    }

    /// Says who goes on with tasks that are new now.
    async fn say_what_is_next(&self) -> anyhow::Result<()> {
        let status = status::status(self.operator.frontier().pool()).await?;
        let standing = self.operator.frontier().standing().await?;
        let crawl = self.crawl();
        if standing.is_some_and(|standing| standing.paused) {
            self.say(format_args!(
                "the crawl is paused; `pgcrawl resume{crawl}` goes on"
            ));
        } else if status.workers > 0 {
            self.say("the running crawl takes them up within seconds");
        } else {
            self.say(format_args!("`pgcrawl crawl{crawl}` goes on with them"));
        }
        Ok(())
    }
}

/// Tells on the terminal how far something is, and hears of Ctrl-C.
struct Course {
    line: ProgressLine,
    shown: Instant,
    stop: CancellationToken,
    signals: tokio::task::JoinHandle<()>,
}

impl Course {
    /// The first signal stops it between two statements, the second has no patience with the database, the third leaves.
    fn start(desk: &Desk) -> Course {
        let stop = CancellationToken::new();
        let (told, frontier) = (stop.clone(), desk.operator.frontier().clone());
        let signals = tokio::spawn(async move {
            let Ok(mut signals) = Signals::new() else {
                return;
            };
            signals.next().await;
            told.cancel();
            signals.next().await;
            frontier.hurry();
            signals.next().await;
            std::process::exit(Exit::Interrupted.code().into());
        });
        Course {
            line: ProgressLine::start(desk.quiet),
            shown: Instant::now(),
            stop,
            signals,
        }
    }

    fn tell(&mut self, tally: &Tally) -> ControlFlow<()> {
        if self.stop.is_cancelled() {
            return ControlFlow::Break(());
        }
        if self.shown.elapsed() >= self.line.interval() {
            self.shown = Instant::now();
            self.line.show(&format_args!(
                "{} so far, looked at up to task {}",
                counted(tally.tasks, "task"),
                tally.looked_to
            ));
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        self.signals.abort();
    }
}

/// An error with its hint.
fn hinted(error: OperateError) -> anyhow::Error {
    let hint = error.hint();
    match error {
        // As itself: its kind decides the exit code.
        OperateError::Frontier(error) => error.into(),
        OperateError::Db(error) => hinted_db(error),
        error => with_hint(error.into(), hint),
    }
}

/// `1 task`, `12 tasks`.
fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(1, "task"), "1 task");
        assert_eq!(counted(0, "host"), "0 hosts");
    }
}
