//! One crawl of this process, from an open database to an exit code. `crawl`, `work` and `demo` share it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use sqlx::PgPool;

use super::super::database::Opened;
use super::super::output::{self, WithHint};
use super::super::progress::{Progress, ProgressLine};
use super::super::seeds::{self, Format, Source};
use super::super::{Context, Exit};
use super::agree::{self, Terms};
use super::{advice, signals, summary};
use crate::config::{Config, Loaded, Surroundings};
use crate::crawl::{Crawl, End, Hands, ScopeRules, Stop, Summary, Tally, Until};
use crate::db::{self, Route, Session};
use crate::fetch::{Fetcher, PrivateGuard};
use crate::frontier::{Ears, Frontier, FrontierError, FrontierSettings};
use crate::status::{self, Status};

/// What is to be crawled.
pub(in crate::cli) struct Order {
    /// Until when it goes on.
    pub(in crate::cli) until: Until,
    /// Whether neither progress nor summary is shown.
    pub(in crate::cli) quiet: bool,
    /// The crawl's name as typed, for the words that say what to type next.
    pub(in crate::cli) crawl: Option<String>,
}

/// How a process comes to a crawl.
pub(in crate::cli) enum Begin {
    /// It begins the crawl if nobody did, and brings seeds.
    Seeds {
        /// Where they come from; none: the crawl goes on.
        sources: Vec<Source>,
        /// How they are written; none: the files' names tell it.
        format: Option<Format>,
        /// Whether what is done or failed is visited again.
        refresh: bool,
    },
    /// It joins a crawl, and waits for one that was not begun; if it is to end with it, also for its first tasks.
    Join,
}

/// Joins the crawl of a database, adds the seeds, and crawls until it ends or is told to.
///
/// # Errors
///
/// Seeds that cannot be read, a contact that is missing, settings that are not the crawl's, a database that will not do.
pub(in crate::cli) async fn crawl(
    context: &Context,
    opened: &Opened,
    begin: Begin,
    order: Order,
) -> anyhow::Result<Exit> {
    #[cfg(unix)]
    let watch = opened.watch();
    let pool = opened.pool().await?;
    let crawl_pool = opened.crawl_pool(&pool).await?;
    // On a connection of its own, which nothing that the crawl does can keep waiting.
    let heart = opened.connect_direct("pgcrawl heartbeat").await?;
    let ear = opened.connect_direct("pgcrawl wake-ups").await?;
    let member = Member {
        loaded: &context.loaded,
        surroundings: context.surroundings()?,
        pool,
        crawl_pool,
        heart,
        ears: Ears::new(ear),
        tally: Arc::default(),
        stop: Stop::default(),
        began: Instant::now(),
        until: order.until,
    };
    let ended = member.run(begin, order).await;
    let Member {
        pool,
        crawl_pool,
        heart,
        ears,
        ..
    } = member;
    tokio::join!(
        ears.close(),
        db::close(heart),
        db::close(crawl_pool),
        db::close(pool)
    );
    #[cfg(unix)]
    if let Some(watch) = watch {
        watch.end().await;
    }
    ended
}

/// What stays the same when the crawl's settings change.
struct Member<'a> {
    loaded: &'a Loaded,
    /// Each machine's own, with the cookies that hosts keep.
    surroundings: Surroundings,
    /// To the server itself.
    pool: PgPool,
    /// For the crawl's statements: through a pooler, where there is one.
    crawl_pool: PgPool,
    heart: PgPool,
    ears: Ears,
    tally: Arc<Tally>,
    stop: Stop,
    began: Instant,
    until: Until,
}

impl Member<'_> {
    async fn run(&self, begin: Begin, order: Order) -> anyhow::Result<Exit> {
        // Later a file may be missing for a while; that whoever opted out is visited because of a typing mistake must not be.
        for path in &self.loaded.config.scope.block_lists {
            std::fs::File::open(path)
                .with_context(|| format!("cannot read the block list {}", path.display()))
                .hint("scope.block_lists, --block-list")?;
        }
        let watching = signals::Watching::default();
        let mut terms = match &begin {
            Begin::Seeds { .. } => agree::open(&self.pool, self.loaded).await?,
            Begin::Join => {
                watching.start(&self.stop, self.loaded.config.shutdown.grace);
                // Else it would be at its end before the crawl has begun.
                let with_tasks = self.until == Until::Finished;
                match agree::wait(&self.pool, self.loaded, with_tasks, &self.stop).await? {
                    Some(terms) => terms,
                    None => return Ok(Exit::Interrupted),
                }
            }
        };
        let mut begin = Some(begin);
        let mut progress = Progressing::default();
        loop {
            let config = &terms.loaded.config;
            let crawl = self.join(&terms).await?;
            let begun = match begin.take() {
                Some(begin) => self.begin(config, &crawl, begin, &order).await,
                None => Ok(None),
            };
            let run = match begun {
                Ok(None) => {
                    watching.start(&self.stop, config.shutdown.grace);
                    progress.start(&self.pool, &self.tally, order.quiet);
                    Some(crawl.run(self.stop.clone()).await)
                }
                Ok(Some(_)) | Err(_) => None,
            };
            // Also after an error: what this process had claimed is open again at once.
            crawl.leave().await;
            let summary = match run {
                None => return begun.map(|exit| exit.unwrap_or(Exit::Finished)),
                Some(Ok(summary)) => summary,
                Some(Err(error)) => {
                    progress.end().await;
                    return lost(error);
                }
            };
            if summary.end == End::Resettled && !self.stop.drain.is_cancelled() {
                terms = agree::follow(&self.pool, self.loaded).await?;
                continue;
            }
            progress.end().await;
            return Ok(self.end(summary, &order).await);
        }
    }

    /// What is done once, before the first run. Answers an exit code where there is nothing to run for.
    async fn begin(
        &self,
        config: &Config,
        crawl: &Crawl,
        begin: Begin,
        order: &Order,
    ) -> anyhow::Result<Option<Exit>> {
        let refresh = match begin {
            Begin::Seeds {
                sources,
                format,
                refresh,
            } => {
                add_seeds(crawl, sources, format).await?;
                refresh
            }
            Begin::Join => false,
        };
        advice::contact(config, crawl).await?;
        advice::proxies(crawl);
        if !config.crawl.obey_robots {
            output::warn(
                "robots.txt is neither fetched nor obeyed",
                Some("for sites of your own only"),
            );
        }
        if refresh {
            let refreshed = crawl.refresh().await?;
            output::say(format_args!("{refreshed} tasks are to be visited again"));
        }
        if self.until == Until::Finished && crawl.is_finished().await? {
            return nothing_open(&self.pool, crawl, order).await.map(Some);
        }
        Ok(None)
    }

    async fn join(&self, terms: &Terms) -> anyhow::Result<Crawl> {
        let config = &terms.loaded.config;
        let rules = ScopeRules::new(config.scope());
        let guard = {
            let rules = Arc::clone(&rules);
            PrivateGuard::new(move |host| rules.names(host))
        };
        let fetcher = Fetcher::new(config.fetch_settings(self.surroundings.clone()), guard)?;
        let frontier = config.frontier_settings(terms.version);
        let mut settings = config.crawl_settings();
        settings.until = self.until;
        // Of this process, however often it joins.
        let counts = self.tally.counts();
        let made = counts.done + counts.failed + counts.retried;
        settings.max_pages = settings.max_pages.map(|most| most.saturating_sub(made));
        settings.max_duration = settings
            .max_duration
            .map(|longest| longest.saturating_sub(self.began.elapsed()));
        let hands = Hands {
            frontier: Frontier::new(self.crawl_pool.clone(), frontier.clone()),
            heart: Frontier::new(
                self.heart.clone(),
                FrontierSettings {
                    route: Route::Session,
                    ..frontier
                },
            ),
            ears: Some(self.ears.clone()),
            fetcher,
            rules,
        };
        Ok(Crawl::join(settings, hands, Arc::clone(&self.tally)).await?)
    }

    async fn end(&self, mut summary: Summary, order: &Order) -> Exit {
        if summary.end == End::Resettled {
            summary.end = End::Interrupted;
        }
        summary.took = self.began.elapsed();
        if !order.quiet {
            let crawl = order.crawl.as_deref();
            summary::say(&self.pool, &self.tally, &summary, crawl).await;
        }
        summary::exit(&summary)
    }
}

/// The progress line, from its start until its end, or until this is dropped.
#[derive(Default)]
struct Progressing(Option<tokio::task::JoinHandle<()>>);

impl Progressing {
    /// Starts, if it has not.
    fn start(&mut self, pool: &PgPool, tally: &Arc<Tally>, quiet: bool) {
        let (pool, tally) = (pool.clone(), Arc::clone(tally));
        self.0
            .get_or_insert_with(|| tokio::spawn(show_progress(pool, tally, quiet)));
    }

    /// Ends; the line is gone from the screen then.
    async fn end(mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
            let _ = task.await;
        }
    }
}

impl Drop for Progressing {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Streams the seeds into the frontier; bad lines are told and the rest goes on.
async fn add_seeds(
    crawl: &Crawl,
    sources: Vec<Source>,
    format: Option<Format>,
) -> anyhow::Result<()> {
    if sources.is_empty() {
        return Ok(());
    }
    let mut batches = seeds::stream(sources, format);
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
async fn nothing_open(pool: &PgPool, crawl: &Crawl, order: &Order) -> anyhow::Result<Exit> {
    let status = status::status(pool).await?;
    if !order.quiet {
        output::say(format_args!(
            "nothing is open: {} done, {} failed, {} excluded; nothing was fetched",
            status.done, status.failed, status.excluded
        ));
        // `work` comes here as well, and has no --refresh.
        let name = order.crawl.as_ref();
        let name = name.map_or_else(String::new, |name| format!(" --crawl {name}"));
        output::say(format_args!(
            "  `pgcrawl crawl{name} --refresh` visits all of it again"
        ));
        output::say("  `pgcrawl crawl --crawl OTHER SEEDS` begins another crawl");
    }
    let ending = crawl.ending().await?;
    if !order.quiet {
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

/// How the crawl stands, where the database answers soon: no crawl waits for its figures.
pub(super) async fn figures(pool: &PgPool) -> Option<Status> {
    const SOON: Duration = Duration::from_secs(5);
    let read = tokio::time::timeout(SOON, async {
        // Cut off, it is closed.
        let mut session = Session::take(pool, &Route::Session).await?;
        let status = status::status(&mut session).await?;
        session.put_back();
        Ok::<_, sqlx::Error>(status)
    });
    read.await.ok()?.ok()
}

async fn show_progress(pool: PgPool, tally: Arc<Tally>, quiet: bool) {
    let line = ProgressLine::start(quiet);
    let mut before = (Instant::now(), tally.counts().done);
    loop {
        tokio::time::sleep(line.interval()).await;
        let counts = tally.counts();
        let span = before.0.elapsed().max(Duration::from_millis(1));
        #[allow(clippy::cast_precision_loss, reason = "a rate for the eye")]
        let pages_per_second = (counts.done - before.1) as f64 / span.as_secs_f64();
        before = (Instant::now(), counts.done);
        // A database in trouble says so in the log; the line waits for it.
        let Some(status) = figures(&pool).await else {
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
