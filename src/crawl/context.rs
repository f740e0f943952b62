//! What all parts of the crawl of one process share.

use std::{
    collections::HashSet,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use quick_cache::{Weighter, sync::Cache};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    CrawlSettings,
    address::Queues,
    blocks::Blocked,
    bodies::LargeBodies,
    budget::{FullHosts, HostPages},
    guests::Guests,
    known::KnownUrls,
    licence::Licence,
    rate::Turns,
    rejections::Rejections,
    shapes::ParkedShapes,
    tally::Tally,
};
use crate::{
    canon::{HostKey, PageUrl},
    clock::Boottime,
    extract::{self, simhash},
    fetch::{Fetcher, HopLeave, TypeRules},
    frontier::{Frontier, FrontierError, ScopeRule, WorkerId},
    politeness::{Ceilings, Limits, Permit},
    robots::Robots,
    scope::{By, Decision, Judgement, Place, Reason, Scope, ScopeKind},
};

/// robots.txt files that are kept parsed: this many hosts, and this many bytes of rules in memory.
const ROBOTS_HOSTS: usize = 20_000;
const ROBOTS_BYTES: u64 = 32 << 20;

/// Readings whose fingerprints are kept: as many ways to be seen as an operator may have for hosts.
const READINGS: usize = 256;

/// Shared by dispatcher, visits, commit and upkeep of one process.
pub(super) struct Context {
    pub(super) settings: CrawlSettings,
    pub(super) frontier: Frontier,
    pub(super) fetcher: Fetcher,
    pub(super) ceilings: Ceilings,
    /// Where the crawl has a rate: turns in it.
    pub(super) turns: Option<Turns>,
    /// Who waits for an address, where the crawl keeps a delay for each.
    pub(super) queues: Queues,
    /// Which hosts were asked for the robots.txt of others.
    pub(super) guests: Guests,
    /// Processes in the crawl, as far as is known.
    pub(super) workers: AtomicUsize,
    pub(super) licence: Arc<Licence>,
    pub(super) rules: Arc<ScopeRules>,
    /// What must not be visited whatever the scope says.
    pub(super) blocked: Blocked,
    pub(super) tally: Arc<Tally>,
    /// Ends fetches under way.
    pub(super) abort: CancellationToken,
    /// Told when a finish made new tasks, so that the next claim need not wait.
    pub(super) fresh: Notify,
    /// Told when another process made new tasks.
    pub(super) heard: Notify,
    /// Told of what others should hear of.
    pub(super) news: Notify,
    /// Told when the dispatcher has nothing to start: what waits for a fuller batch should be finished now.
    pub(super) hungry: Notify,
    /// Visits that are finished and not yet in the database.
    pub(super) uncommitted: AtomicUsize,
    /// Parsing of large pages, and judging by long rules, that may run at once.
    pub(super) parsers: Arc<Semaphore>,
    /// Room for finished visits, in KiB.
    pub(super) room: Arc<Semaphore>,
    pub(super) bodies: LargeBodies,
    robots: Cache<HostKey, Arc<CachedRobots>, ByBytes>,
    /// Fingerprints of readings, by the last rule of the scope and as whom a host sees us.
    readings: Cache<(i32, u16), i32>,
    /// URLs that are tasks.
    pub(super) known: KnownUrls,
    /// Links that were left out, by reason.
    pub(super) rejections: Rejections,
    /// Tasks were left out by a scope that came after them.
    pub(super) has_left_out: AtomicBool,
    /// Shapes of URLs that are left out.
    pub(super) shapes: ParkedShapes,
    /// What hosts have left of their budget of pages.
    pub(super) host_pages: HostPages,
    /// Hosts that have as many URLs as they may.
    pub(super) full_hosts: FullHosts,
}

struct CachedRobots {
    robots: Arc<Robots>,
    until: Boottime,
    bytes: u64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<HostKey, Arc<CachedRobots>> for ByBytes {
    fn weight(&self, _: &HostKey, cached: &Arc<CachedRobots>) -> u64 {
        cached.bytes + 500
    }
}

impl Context {
    pub(super) fn new(
        settings: CrawlSettings,
        frontier: Frontier,
        fetcher: Fetcher,
        licence: Arc<Licence>,
        rules: Arc<ScopeRules>,
        tally: Arc<Tally>,
        turns: Option<Turns>,
    ) -> Context {
        let limits = Limits {
            per_host: u32::try_from(settings.per_host).unwrap_or(u32::MAX),
            concurrency: settings.concurrency,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Context {
            settings,
            frontier,
            fetcher,
            ceilings: Ceilings::new(&limits),
            licence,
            rules,
            tally,
            turns,
            blocked: Blocked::default(),
            workers: AtomicUsize::new(1),
            abort: CancellationToken::new(),
            fresh: Notify::new(),
            heard: Notify::new(),
            news: Notify::new(),
            queues: Queues::default(),
            guests: Guests::default(),
            hungry: Notify::new(),
            uncommitted: AtomicUsize::new(0),
            parsers: Arc::new(Semaphore::new(cores)),
            room: Arc::new(Semaphore::new(super::commit::ROOM_KIB as usize)),
            bodies: LargeBodies::default(),
            known: KnownUrls::default(),
            rejections: Rejections::default(),
            has_left_out: AtomicBool::new(false),
            shapes: ParkedShapes::default(),
            host_pages: HostPages::default(),
            full_hosts: FullHosts::default(),
            readings: Cache::new(READINGS),
            robots: Cache::with_weighter(ROBOTS_HOSTS, ROBOTS_BYTES, ByBytes),
        }
    }

    /// Waits for leave to make a request: a free flight, then a turn in the crawl's rate.
    pub(super) async fn leave_to_ask(&self) -> Permit {
        let permit = self.ceilings.permit().await;
        if let Some(turns) = &self.turns {
            turns.next().await;
        }
        permit
    }

    /// Leave for each further request of a visit: its flight goes on, and it takes its turn in the crawl's rate afterwards. At a low rate the
    /// turns before it may last longer than a visit, which would then fail each time.
    pub(super) fn hop_leave(self: &Arc<Self>) -> HopLeave {
        if self.turns.is_none() {
            return HopLeave::default();
        }
        let cx = Arc::clone(self);
        HopLeave::new(move || {
            if let Some(turns) = &cx.turns {
                turns.owe();
            }
            std::future::ready(())
        })
    }

    /// Whether a fetch of the longest duration fits before this deadline.
    pub(super) fn fits(&self, deadline: Boottime) -> bool {
        Boottime::now() + self.settings.visit_budget <= deadline
    }

    /// Whether a fetch of the longest duration fits before the end of the licence. If not, the heartbeat is late: nothing is started until it
    /// got through.
    pub(super) fn licensed(&self) -> bool {
        Boottime::now() + self.settings.visit_budget <= self.licence.until()
    }

    /// Whether a fetch for a claim of this worker may begin: the process is still that worker, and the longest fetch fits before the end of
    /// its licence. One that registered anew holds nothing of what it held before, though its clock says that the old deadline is far.
    pub(super) fn licensed_as(&self, worker: WorkerId) -> bool {
        self.licence.worker() == worker && self.licensed()
    }

    /// The rules of a host, if they are at hand and still count.
    pub(super) fn robots(&self, host: &HostKey) -> Option<Arc<Robots>> {
        let cached = self.robots.get(host)?;
        (cached.until > Boottime::now()).then(|| Arc::clone(&cached.robots))
    }

    /// Keeps the rules of a host for as long as they count.
    pub(super) fn keep_robots(
        &self,
        host: HostKey,
        body: Option<&[u8]>,
        ttl: Duration,
    ) -> Arc<Robots> {
        let robots = Arc::new(match body {
            Some(body) => Robots::parse(body, &self.settings.robots_token),
            None => Robots::allow_all(),
        });
        let bytes = robots.size_bytes() as u64;
        self.robots.insert(
            host,
            Arc::new(CachedRobots {
                robots: Arc::clone(&robots),
                until: Boottime::now() + ttl,
                bytes,
            }),
        );
        robots
    }

    /// The rules that a URL is to be asked of, where they are at hand and obeyed.
    pub(super) fn rules_of(&self, url: &PageUrl) -> Option<Arc<Robots>> {
        let obeyed = self.frontier.settings().obey_robots;
        obeyed.then(|| self.robots(url.host())).flatten()
    }

    /// Runs work on the blocking pool, no more of it at once than there are cores. A panic in it goes on in the visit, which catches it.
    pub(super) async fn on_blocking_pool<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let turn = Arc::clone(&self.parsers).acquire_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        match done.await {
            Ok(value) => value,
            Err(error) => std::panic::resume_unwind(
                error
                    .try_into_panic()
                    .unwrap_or_else(|error| Box::new(error.to_string())),
            ),
        }
    }

    /// Fingerprint of what the reading of a page depends on here and now: the program, those of the settings that decide what is read of a page
    /// and which links are taken, the scope with its rules, and as whom its host sees us. The same after a restart, and on all machines that
    /// say the same to the host.
    pub(super) fn reading(&self, url: &Url) -> i32 {
        let guise = self.fetcher.guise(url);
        // Of the scope only its rules change while a process is in a crawl.
        let key = (self.rules.last(), guise);
        if let Some(known) = self.readings.get(&key) {
            return known;
        }
        let said = format!(
            "extract {} {:?} canon {} scope {} robots {} {:?} body {} simhash {:?} links {} skip {} guise {} sitemaps {:?}",
            extract::VERSION,
            self.settings.wants,
            crate::canon::VERSION,
            self.rules.state(key.0),
            self.frontier.settings().obey_robots,
            self.settings.robots_token,
            self.fetcher.settings().max_body_bytes,
            self.settings.simhash.then_some(simhash::VERSION),
            self.settings.links,
            self.frontier.settings().skip_duplicate_links,
            guise,
            self.settings.sitemaps,
        );
        let hash = Sha256::digest(said);
        let reading = i32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
        self.readings.insert(key, reading);
        reading
    }

    /// Why a link is left out, with more of the reason; none if it is not. Counted.
    pub(super) fn reject(&self, url: &PageUrl, place: Place) -> Option<(Reason, Option<String>)> {
        let rejected = self
            .rules
            .reject(url, place)
            .or_else(|| Some((Reason::Shape, Some(self.shapes.of(url)?))))
            .or_else(|| {
                let closed = self.host_pages.is_closed(url.host());
                closed.then_some((Reason::HostPages, None))
            });
        if let Some((reason, _)) = &rejected {
            self.rejections.count(*reason);
        }
        rejected
    }

    /// There are new tasks: here and, soon, wherever somebody idles.
    pub(super) fn stir(&self) {
        self.fresh.notify_one();
        self.news.notify_one();
    }

    pub(super) fn uncommitted(&self) -> usize {
        self.uncommitted.load(Ordering::Acquire)
    }
}

/// The scope of the crawl as this process knows it, and the host names that its seeds named.
#[derive(Debug)]
pub struct ScopeRules {
    scope: RwLock<Scope>,
    named: RwLock<HashSet<u64>>,
    last: AtomicI32,
}

impl ScopeRules {
    /// No rules yet.
    pub fn new(scope: Scope) -> Arc<ScopeRules> {
        Arc::new(ScopeRules {
            scope: RwLock::new(scope),
            named: RwLock::default(),
            last: AtomicI32::new(0),
        })
    }

    /// Whether a seed named this very host, which may then have an address that is not public.
    pub fn names(&self, host: &str) -> bool {
        self.named
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&fingerprint(host))
    }

    /// Learns what others (and this process) have added to the database since the last time.
    pub(super) async fn refresh(&self, frontier: &Frontier) -> Result<(), FrontierError> {
        loop {
            let rules = frontier
                .rules_after(self.last.load(Ordering::Acquire))
                .await?;
            if rules.is_empty() {
                return Ok(());
            }
            self.learn(&rules);
        }
    }

    /// Rules first, then that they are known: who takes the new fingerprint for a page judges its links by the new rules.
    fn learn(&self, rules: &[ScopeRule]) {
        self.insert(rules);
        if let Some(last) = rules.last() {
            // Another refresh may be further.
            self.last.fetch_max(last.id, Ordering::AcqRel);
        }
    }

    /// The last rule that is judged by. Whoever judges later knows this one at least.
    fn last(&self) -> i32 {
        self.last.load(Ordering::Acquire)
    }

    /// What its judgement depends on beside the URL, with this last rule.
    fn state(&self, last: i32) -> String {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        let (kind, limits) = (scope.kind(), scope.limits());
        let (rules, extra_hops) = (scope.rules(), scope.extra_hops());
        format!("{kind} {limits:?} {rules:?} {extra_hops} {last}")
    }

    fn insert(&self, rules: &[ScopeRule]) {
        let mut scope = self.scope.write().unwrap_or_else(PoisonError::into_inner);
        let mut named = self.named.write().unwrap_or_else(PoisonError::into_inner);
        for rule in rules {
            scope.insert(&rule.rule);
            named.insert(fingerprint(&rule.host));
        }
    }

    /// The rule that a seed makes.
    pub(super) fn rule_for(&self, seed: &PageUrl) -> (String, String) {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        (
            Scope::rule_for(scope.kind(), seed),
            seed.host().host().to_owned(),
        )
    }

    /// The rule that a seed's redirect to its twin makes.
    pub(super) fn widened(&self, seed: &PageUrl, target: &PageUrl) -> (String, String) {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        (scope.widened(seed, target), target.host().host().to_owned())
    }

    /// What the rules speak of.
    pub(super) fn kind(&self) -> ScopeKind {
        self.scope
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .kind()
    }

    /// Why a URL does not belong to the crawl, with the rule that says so; none if it does.
    pub(super) fn reject(&self, url: &PageUrl, place: Place) -> Option<(Reason, Option<String>)> {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        let judgement = scope.judge(url, place);
        match (judgement.decision, judgement.by) {
            (Decision::Accept, _) => None,
            (Decision::Reject(Reason::Rule), By::Rule(rule)) => {
                Some((Reason::Rule, Some(rule.to_string())))
            }
            (Decision::Reject(reason), _) => Some((reason, None)),
        }
    }

    /// The operator's rule that leaves a task's URL out.
    pub(super) fn left_out_by(&self, url: &PageUrl, depth: u16) -> Option<String> {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        if scope.rules().is_empty() {
            return None;
        }
        match scope.judge(url, Place::at_depth(depth)) {
            Judgement {
                decision: Decision::Reject(Reason::Rule),
                by: By::Rule(rule),
            } => Some(rule.to_string()),
            _ => None,
        }
    }

    /// Whether the operator has rules.
    pub(super) fn has_opinions(&self) -> bool {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        !scope.rules().is_empty()
    }

    /// Whether the rules, the operator's among them, take a page in: then its links may lead outside as far as any.
    pub(super) fn is_inside(&self, url: &PageUrl, depth: u16) -> bool {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        scope.is_inside(url, depth)
    }

    /// Whether what is so many links from a seed is beyond the limit.
    pub(super) fn is_too_deep(&self, depth: u16) -> bool {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        depth > scope.limits().max_depth
    }

    /// Links in a row that may lead outside.
    pub(super) fn extra_hops(&self) -> u16 {
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        scope.extra_hops()
    }

    /// What the operator's rules say of the media types of a URL's answers.
    pub(super) fn type_rules(self: &Arc<Self>, url: &PageUrl) -> TypeRules {
        let (rules, url) = (Arc::clone(self), url.clone());
        TypeRules::new(move |media_type| {
            let scope = rules.scope.read().unwrap_or_else(PoisonError::into_inner);
            scope.wants_type(&url, media_type)
        })
    }

    /// Dates are judged by the year that it is.
    pub(super) fn set_year(&self, year: u16) {
        let mut scope = self.scope.write().unwrap_or_else(PoisonError::into_inner);
        scope.set_year(year);
    }

    /// Whether the rules (not the trap limits) take a URL in.
    pub(super) fn contains(&self, url: &PageUrl) -> bool {
        self.scope
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(url)
    }
}

/// 64 bits name a host well enough here: a collision opens one private address to one crawl.
fn fingerprint(host: &str) -> u64 {
    use std::hash::BuildHasher as _;
    static KEYS: std::sync::LazyLock<std::hash::RandomState> =
        std::sync::LazyLock::new(std::hash::RandomState::new);
    KEYS.hash_one(host)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::scope::TrapLimits;

    fn rule(id: i32) -> ScopeRule {
        ScopeRule {
            id,
            rule: format!("h{id}.test"),
            host: format!("h{id}.test"),
        }
    }

    #[test]
    fn rules_count_as_known_when_they_are_judged_by_and_not_before() {
        let rules = ScopeRules::new(Scope::new(ScopeKind::Host, TrapLimits::default()));
        let known = || rules.last.load(Ordering::Acquire);
        let judging = rules.scope.read().unwrap();
        thread::scope(|threads| {
            let learning = threads.spawn(|| rules.learn(&[rule(1)]));
            // Nobody else comes in once it waits for those who judge.
            while rules.scope.try_read().is_ok() {
                thread::yield_now();
            }
            assert_eq!(known(), 0);
            drop(judging);
            learning.join().unwrap();
        });
        assert_eq!(known(), 1);
        let url = PageUrl::parse("http://h1.test/").unwrap();
        assert!(rules.contains(&url));
    }

    #[test]
    fn a_refresh_that_comes_late_forgets_nothing() {
        let rules = ScopeRules::new(Scope::new(ScopeKind::Host, TrapLimits::default()));
        rules.learn(&[rule(1), rule(2)]);
        let last = rules.last();
        rules.learn(&[rule(1)]);
        assert_eq!(rules.last(), last);
    }
}
