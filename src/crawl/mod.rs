//! The crawl of one process: claims become visits, visits become rows.
//!
//! | part | what it does |
//! |---|---|
//! | `dispatch` | the loop: claims ahead, starts what may be started, lets go of what is used up; owns the `stock` |
//! | `supply` | a claim with all that its tasks need: host keys, robots.txt |
//! | `visit`, `read` | one task's journey: robots, permit, fetch, extract, judge |
//! | `visited` | what a visit comes to, for its task and its host |
//! | `robots` | robots.txt of a held host |
//! | `graph` | which links of a page the link graph keeps |
//! | `sitemap` | sitemaps, which are read while they come |
//! | `known` | URLs that are known to be tasks |
//! | `commit` | batches of visits become rows, each batch by one statement |
//! | `address` | the gate of addresses, where the crawl keeps a delay for each |
//! | `bodies` | room in memory for large bodies |
//! | `budget` | how much is fetched, over all machines |
//! | `rejections` | links that were left out, counted |
//! | `shapes` | shapes of URLs whose pages bring nothing new |
//! | `rate` | turns in the rate of the whole crawl |
//! | `letting_go` | gives tasks back, releases hosts |
//! | `licence` | the heartbeat, and until when this process may fetch |
//! | `blocks` | block lists: files that are read again, entries that all keep to |
//! | `waking` | hints between processes that there are new tasks |
//! | `upkeep` | due retries, lost leases, dead neighbours, counts |
//!
//! Each runs as a task of its own; none holds a transaction open, and no database work is cancelled half way. Cut off between any two
//! lines, what is claimed is recycled, and what is not committed did not happen.

mod address;
mod blocks;
mod bodies;
mod budget;
mod commit;
mod context;
mod dispatch;
mod ending;
mod graph;
mod guests;
mod identity;
mod judging;
mod known;
mod letting_go;
mod licence;
mod proxies;
mod rate;
mod read;
mod rejections;
mod robots;
mod settings;
mod shapes;
mod sitemap;
mod stock;
mod supply;
mod tally;
mod upkeep;
mod visit;
mod visited;
mod waking;

pub use budget::Budget;
pub use context::ScopeRules;
pub use ending::{End, Stop, Until};
pub use graph::LinkGraph;
pub use settings::CrawlSettings;
pub use sitemap::{SitemapSettings, SitemapUse};
pub use tally::{Counts, HostTally, Tally};

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    clock::Boottime,
    fetch::Fetcher,
    frontier::{Ears, Ending, Frontier, FrontierError, Identity, Seed},
    scope::{Scope, ScopeKind},
};

use self::{
    context::Context,
    dispatch::{Dispatcher, Event, guarded},
    licence::Licence,
};

/// One process in a crawl: it has joined, and may add seeds and run.
pub struct Crawl {
    cx: Arc<Context>,
    heart: Frontier,
    me: Identity,
    alive: CancellationToken,
    heartbeat: tokio::task::JoinHandle<()>,
    ears: Option<Ears>,
    line: std::sync::Mutex<Option<rate::Line>>,
    lists: tokio::sync::Mutex<Vec<blocks::List>>,
    /// Seeds that were given so far.
    seeds: AtomicUsize,
}

/// What a process works with.
pub struct Hands {
    /// For all but the heartbeat.
    pub frontier: Frontier,
    /// A frontier on connections of its own, for the heartbeat, which nothing may hold up.
    pub heart: Frontier,
    /// Where wake-ups are heard; none: new tasks of others are found by looking.
    pub ears: Option<Ears>,
    /// How pages are got.
    pub fetcher: Fetcher,
    /// Those that `fetcher` asks about private addresses.
    pub rules: Arc<ScopeRules>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How it ended.
    pub end: End,
    /// What this process did.
    pub counts: Counts,
    /// How the whole crawl stands, where it is finished.
    pub ending: Option<Ending>,
    /// From the start of the run.
    pub took: Duration,
}

impl Crawl {
    /// Joins the crawl of a database, under the settings that it agreed on. What it does is added to `tally`.
    ///
    /// # Errors
    ///
    /// The database fails.
    pub async fn join(
        settings: CrawlSettings,
        hands: Hands,
        tally: Arc<Tally>,
    ) -> Result<Crawl, FrontierError> {
        let Hands {
            frontier,
            heart,
            ears,
            fetcher,
            rules,
        } = hands;
        let me = identity::identity();
        let sent = Boottime::now();
        let worker = frontier.join(&me).await?;
        let licence = Licence::new(worker, sent + frontier.settings().dead_after);
        let alive = CancellationToken::new();
        let heartbeat = tokio::spawn(licence::keep(
            Arc::clone(&licence),
            heart.clone(),
            settings.visit_budget,
            alive.clone(),
        ));
        let (turns, line) = settings.rate.map(|_| rate::Turns::new()).unzip();
        let cx = Arc::new(Context::new(
            settings, frontier, fetcher, licence, rules, tally, turns,
        ));
        let lists = cx.settings.block_lists.iter();
        let lists = lists.map(|path| blocks::List::new(path, &me.host_name));
        let crawl = Crawl {
            lists: tokio::sync::Mutex::new(lists.collect()),
            cx,
            heart,
            me,
            alive,
            heartbeat,
            ears,
            line: std::sync::Mutex::new(line),
            seeds: AtomicUsize::new(0),
        };
        match crawl.look_around().await {
            Ok(()) => Ok(crawl),
            Err(error) => {
                crawl.leave().await;
                Err(error)
            }
        }
    }

    /// Learns the rules of the scope, and takes back what the dead have left.
    async fn look_around(&self) -> Result<(), FrontierError> {
        self.cx.rules.refresh(&self.cx.frontier).await?;
        self.cx.rules.set_year(crate::clock::year());
        self.cx.shapes.refresh(&self.cx).await?;
        blocks::look(&self.cx, &mut self.lists.lock().await).await?;
        upkeep::recycle(&self.cx, &self.me).await
    }

    /// Makes tasks of seeds and takes them into scope. Answers how many were not tasks before.
    pub async fn add_seeds(&self, seeds: &[Seed]) -> Result<u64, FrontierError> {
        let rules: Vec<(String, String)> = seeds
            .iter()
            .map(|seed| match seed.scope {
                Some(kind) => (
                    Scope::own_rule_for(kind, &seed.url),
                    seed.url.host().host().to_owned(),
                ),
                None => self.cx.rules.rule_for(&seed.url),
            })
            .collect();
        if !self.cx.frontier.add_rules(&rules, "seed").await? {
            return Err(FrontierError::Resettled);
        }
        self.cx.rules.refresh(&self.cx.frontier).await?;
        let order = self.cx.settings.order;
        let before = self.seeds.fetch_add(seeds.len(), Ordering::Relaxed);
        let seeds: Vec<Seed> = (before..)
            .zip(seeds)
            .map(|(n, seed)| Seed {
                priority: order.of_seed(seed.priority, n),
                ..seed.clone()
            })
            .collect();
        let fresh = self
            .cx
            .frontier
            .enqueue_seeds(self.cx.licence.worker(), &seeds)
            .await?;
        self.cx.news.notify_one();
        Ok(fresh)
    }

    /// Makes all that is done or failed new. Answers how many tasks.
    pub async fn refresh(&self) -> Result<u64, FrontierError> {
        self.cx.frontier.refresh().await
    }

    /// The labels of its proxies, and whether some look names up themselves: the addresses of those
    /// hosts cannot be judged.
    pub fn proxies(&self) -> (Vec<Arc<str>>, bool) {
        let fetcher = &self.cx.fetcher;
        let labels = fetcher.proxies().into_iter().map(|proxy| proxy.label);
        (labels.collect(), fetcher.trusts_proxies_with_names())
    }

    /// Host names that the crawl's seeds named, at most 10,000.
    pub async fn seed_hosts(&self) -> Result<Vec<String>, FrontierError> {
        let rules = self.cx.frontier.rules_after(0).await?;
        Ok(rules.into_iter().map(|rule| rule.host).collect())
    }

    /// Kinds of scope that seeds have of their own, of the same rules.
    pub async fn seed_scopes(&self) -> Result<Vec<ScopeKind>, FrontierError> {
        let rules = self.cx.frontier.rules_after(0).await?;
        let own = rules.iter().filter_map(|rule| Scope::own_kind(&rule.rule));
        Ok(own.map(|(kind, _)| kind).collect())
    }

    /// Whether nothing is there to be done, now or later.
    pub async fn is_finished(&self) -> Result<bool, FrontierError> {
        self.cx.frontier.finished().await
    }

    /// How the crawl stands, where nothing is left to do.
    pub async fn ending(&self) -> Result<Ending, FrontierError> {
        self.cx.frontier.ending().await
    }

    /// Crawls until nothing is left to do, a limit is reached, or it is told to stop. Leaves nothing to repair.
    ///
    /// # Errors
    ///
    /// The database is lost for longer than the frontier's patience, or refuses a statement for good.
    pub async fn run(&self, stop: Stop) -> Result<Summary, FrontierError> {
        let began = tokio::time::Instant::now();
        let (visits_in, visits) = mpsc::channel(commit::CHANNEL);
        let (goings_in, goings) = mpsc::unbounded_channel();
        let tracker = TaskTracker::new();
        let dispatcher = Dispatcher::new(
            Arc::clone(&self.cx),
            self.me.clone(),
            visits_in,
            goings_in,
            tracker.clone(),
        );
        let ended = CancellationToken::new();
        let commit = report_trouble(
            dispatcher.reporter(),
            commit::run(Arc::clone(&self.cx), visits),
        );
        let letting_go = report_trouble(
            dispatcher.reporter(),
            letting_go::run(Arc::clone(&self.cx), goings),
        );
        let upkeep = report_trouble(
            dispatcher.reporter(),
            upkeep::run(
                Arc::clone(&self.cx),
                self.me.clone(),
                dispatcher.reporter(),
                ended.clone(),
            ),
        );
        let lists = std::mem::take(&mut *self.lists.lock().await);
        let blocks = report_trouble(
            dispatcher.reporter(),
            blocks::run(Arc::clone(&self.cx), lists, ended.clone()),
        );
        let turns = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = { turns }
            .take()
            .zip(self.cx.settings.rate)
            .map(|(line, rate)| {
                report_trouble(
                    dispatcher.reporter(),
                    rate::run(self.cx.frontier.clone(), rate, line, ended.clone()),
                )
            });
        let telling = tokio::spawn(waking::tell(Arc::clone(&self.cx), ended.clone()));
        let listening = self
            .ears
            .clone()
            .map(|ears| tokio::spawn(waking::listen(Arc::clone(&self.cx), ears, ended.clone())));
        let hurry = tokio::spawn(hurry(Arc::clone(&self.cx), stop.clone()));
        let end = dispatcher.run(stop).await;
        // The dispatcher is gone and its channels closed: what is in them is still written.
        tracker.close();
        tracker.wait().await;
        let _ = tokio::join!(commit, letting_go);
        ended.cancel();
        let _ = tokio::join!(upkeep, blocks, telling);
        if let Some(listening) = listening {
            let _ = listening.await;
        }
        if let Some(turns) = turns {
            let _ = turns.await;
        }
        hurry.abort();
        let end = match end? {
            // The limit may have been just what there was.
            End::Limit if self.cx.frontier.finished().await? => End::Finished,
            end => end,
        };
        let ending = match end {
            End::Finished => Some(self.cx.frontier.ending().await?),
            End::Limit | End::Interrupted | End::Resettled => None,
        };
        Ok(Summary {
            end,
            counts: self.cx.tally.counts(),
            ending,
            took: began.elapsed(),
        })
    }

    /// Leaves the crawl. What is still claimed is open again at once; where the database cannot be told, as soon as this process is missed.
    pub async fn leave(self) {
        self.alive.cancel();
        if self.cx.abort.is_cancelled() || self.cx.frontier.is_hurried() {
            // A heartbeat under way may wait for a server that is gone.
            self.heart.hurry();
        }
        let _ = self.heartbeat.await;
        if let Err(error) = self.heart.leave(self.cx.licence.worker()).await {
            tracing::warn!(%error, "the database could not be told that this process leaves");
        }
    }
}

/// Ends all patience with the database once a process that was told to stop should be gone, whatever it does then: what is
/// under way and what is still to be written. Visits are the dispatcher's to abort.
async fn hurry(cx: Arc<Context>, stop: Stop) {
    tokio::select! {
        () = stop.abort.cancelled() => {}
        () = async {
            stop.drain.cancelled().await;
            tokio::time::sleep(cx.settings.grace).await;
        } => {}
    }
    cx.frontier.hurry();
}

/// Runs a part as a task of its own; if the frontier fails it for good, the dispatcher hears of it.
fn report_trouble(
    events: mpsc::UnboundedSender<Event>,
    part: impl Future<Output = Result<(), FrontierError>> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        if let Some(Err(error)) = guarded(&events, part).await {
            let _ = events.send(Event::Trouble(error));
        }
    })
}
