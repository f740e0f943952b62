//! Several processes' worth of crawling at once against one database: each crawler is a task with its own pool and its own worker.
//! They hang, die and start anew while an operator disturbs them; then the database must show nothing of it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgcrawl::canon::PageUrl;
use pgcrawl::clock::Boottime;
use pgcrawl::db::DbSettings;
use pgcrawl::frontier::{
    Appetite, ClaimedTask, Finish, Frontier, FrontierSettings, Giving, HostId, Outcome, Release,
    Seed, StoredRobots, WorkerId,
};
use pgcrawl::pages::PageRow;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sqlx::PgPool;

use super::protocol::{Changed, Protocol};
use super::web::{self, Delays, End, Place, Web};
use super::{identity, page};
use crate::support::crawl::{broken_invariants, column, number};
use crate::support::db::TestDb;

/// Short, so that leases are lost and workers buried within a test.
const LEASE: Duration = Duration::from_millis(1_500);
const DEAD: Duration = Duration::from_millis(1_000);
const BEAT: Duration = Duration::from_millis(150);
/// The longest that a fetch may last; none is begun that would not end before its deadline.
const FETCH_MAX: Duration = Duration::from_millis(60);
const BATCH: usize = 50;
const CRAWLERS: usize = 8;

/// A crawl to try.
pub(super) struct Trial {
    pub(super) hosts: u32,
    pub(super) pages: u32,
    pub(super) delays: Delays,
    /// How long crawlers are killed and hang, and an operator types.
    pub(super) rough: Duration,
    /// Each host's robots.txt is due at first and names its delay; otherwise an operator has set it.
    pub(super) robots: bool,
    /// Age from which on a low-water mark is ignored.
    pub(super) mark_age: Duration,
    /// Statements on tasks that are slow before their commit, so that races meet.
    pub(super) slow: bool,
    pub(super) changed: Changed,
    /// The crawl must end in this time.
    pub(super) limit: Duration,
    /// What is expected to break, with a guard removed: the trial ends when one of it is seen.
    pub(super) expected: &'static [&'static str],
}

impl Trial {
    pub(super) fn new(hosts: u32, pages: u32, delays: Delays) -> Trial {
        Trial {
            hosts,
            pages,
            delays,
            rough: Duration::from_millis(1_500),
            robots: false,
            mark_age: LEASE,
            slow: false,
            changed: Changed::default(),
            limit: Duration::from_secs(60),
            expected: &[],
        }
    }

    /// Crawls to the end in a new database, and says what was found.
    pub(super) async fn run(self) -> Findings {
        let db = TestDb::new().await;
        let before = deadlocks(&db.pool).await;
        let trial = Arc::new(self);
        let web = Web::new(trial.hosts, trial.pages, trial.delays);
        let seeds: Vec<Place> = (1..=trial.hosts.min(8)).map(|host| (host, 0)).collect();
        trial.prepare(&db, &web, &seeds).await;
        let shared = Arc::new(Shared {
            web,
            log: Mutex::default(),
            over: AtomicBool::new(false),
            began: Boottime::now(),
        });
        let finished = supervise(&db, &trial, &shared).await;
        until_alone(&db).await;
        let mut findings = Findings::at_any_time(&db.pool, &shared).await;
        if !finished {
            findings.broken("a crawl that does not end", 1);
        }
        if !findings.broken.contains_key(DEADLOCK) {
            findings.broken(DEADLOCK, deadlocks(&db.pool).await - before);
        }
        findings
            .at_rest(&db.pool, &shared.web, &seeds, finished)
            .await;
        findings
    }

    fn settings(&self) -> FrontierSettings {
        FrontierSettings {
            delay: Duration::ZERO,
            lease: LEASE,
            dead_after: DEAD,
            hold: Duration::from_millis(300),
            mark_age: self.mark_age,
            // No page of this web kills its crawler: whoever loses a lease here is innocent.
            max_expiries: 100,
            spread: Duration::from_millis(2),
            obey_robots: self.robots,
            ..super::settings()
        }
    }

    async fn prepare(&self, db: &TestDb, web: &Web, seeds: &[Place]) {
        let frontier = Frontier::new(db.pool.clone(), self.settings());
        self.changed.apply(&db.pool).await;
        sqlx::raw_sql(AUDIT).execute(&db.pool).await.unwrap();
        if self.slow {
            sqlx::raw_sql(SLOW).execute(&db.pool).await.unwrap();
        }
        if !self.robots {
            let keys: Vec<_> = (1..=self.hosts)
                .map(|host| PageUrl::parse(&web::url((host, 0))).unwrap().host().clone())
                .collect();
            let ids = frontier.hosts(&keys).await.unwrap();
            let (hosts, delays): (Vec<i32>, Vec<i32>) = keys
                .iter()
                .zip(1..)
                .map(|(key, host)| (ids[key].0, web.delay(host).as_millis() as i32))
                .unzip();
            sqlx::query("update hosts set delay_ms = d from unnest($1::int[], $2::int[]) u (h, d) where id = h")
                .bind(hosts)
                .bind(delays)
                .execute(&db.pool)
                .await
                .unwrap();
        }
        let worker = frontier.join(&identity("seeder")).await.unwrap();
        let urls: Vec<Seed> = seeds
            .iter()
            .map(|&seed| PageUrl::parse(&web::url(seed)).unwrap().into())
            .collect();
        frontier.enqueue_seeds(worker, &urls).await.unwrap();
        frontier.leave(worker).await.unwrap();
    }
}

/// What the server or a crawler saw of one.
const DEADLOCK: &str = "a deadlock";

/// Each end of a visit, as the database had it.
const AUDIT: &str = "
create table audit (task_id bigint, claim_version int, final boolean);
create function audited() returns trigger language plpgsql set search_path from current as $$
begin
    insert into audit values (new.id, new.claim_version, new.available_at is null);
    return null;
end $$;
create trigger audited after update of status on tasks for each row
    when (new.status in ('done', 'failed', 'excluded') and coalesce(new.reason, '') not in ('poison', 'lease lost'))
    execute function audited();";

/// By its name the last trigger to fire: the statement has looked and written, and has not committed.
const SLOW: &str = "
create function slow() returns trigger language plpgsql as $$
begin
    perform pg_sleep(random() * 0.02) where random() < 0.2;
    return null;
end $$;
create trigger zz_slow after insert or update on tasks for each statement execute function slow();";

/// What all crawlers know: the web, and what they did.
struct Shared {
    web: Web,
    log: Mutex<Log>,
    over: AtomicBool,
    began: Boottime,
}

#[derive(Default)]
struct Log {
    fetches: Vec<Fetch>,
    refused: u64,
    deadlocks: i64,
    unexpected: Vec<String>,
    last_progress: Option<Boottime>,
}

struct Fetch {
    host: u32,
    start: Boottime,
    end: Boottime,
    deadline: Boottime,
}

/// Keeps the crawlers running, kills some, and types what an operator types. Answers whether the crawl came to its end.
async fn supervise(db: &TestDb, trial: &Arc<Trial>, shared: &Arc<Shared>) -> bool {
    let start = |number: usize| {
        let (trial, shared, url) = (Arc::clone(trial), Arc::clone(shared), db.url.clone());
        tokio::spawn(async move {
            let settings = DbSettings {
                max_connections: 2,
                application_name: "crawler".to_owned(),
                ..DbSettings::default()
            };
            let pool = pgcrawl::db::connect(&url, &settings).await.unwrap();
            Crawler::start(number, pool, trial, shared)
                .await
                .crawl()
                .await;
        })
    };
    let mut rng = StdRng::seed_from_u64(1);
    let mut look_at = shared.began;
    let mut crawlers: Vec<_> = (0..CRAWLERS).map(start).collect();
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let rough = shared.began.elapsed() < trial.rough;
        if rough {
            if rng.random_bool(0.15) {
                let number = rng.random_range(0..CRAWLERS);
                crawlers[number].abort();
                let _ = (&mut crawlers[number]).await;
                crawlers[number] = start(number);
            }
            disturb(&db.pool, &mut rng).await;
        } else {
            // In order, like all that lock several hosts: else it deadlocks with those that wake them.
            sqlx::query("update hosts set deferred_until = null where id in (select id from hosts where deferred_until = 'infinity' order by id for no key update)")
                .execute(&db.pool)
                .await
                .unwrap();
        }
        let ended = crawlers.iter().all(tokio::task::JoinHandle::is_finished);
        let patience = if trial.expected.is_empty() {
            4 * LEASE
        } else {
            2 * LEASE
        };
        let stuck = !rough
            && shared
                .log
                .lock()
                .unwrap()
                .last_progress
                .is_some_and(|at| at.elapsed() > patience);
        let seen = if Boottime::now() > look_at && !trial.expected.is_empty() {
            look_at = Boottime::now() + Duration::from_millis(300);
            let findings = Findings::at_any_time(&db.pool, shared).await;
            trial
                .expected
                .iter()
                .any(|what| findings.broken.contains_key(*what))
        } else {
            false
        };
        if ended || stuck || seen || shared.began.elapsed() > trial.limit {
            shared.over.store(true, Ordering::Relaxed);
            for crawler in crawlers {
                crawler.await.expect("no crawler panics");
            }
            return ended;
        }
    }
}

/// As a cookbook would write it: several rows are locked in order or with skip locked.
async fn disturb(pool: &PgPool, rng: &mut StdRng) {
    const TYPED: [&str; 4] = [
        "update tasks set priority = -5 where id in (select id from tasks where id > $1 and status = 'new' order by id limit 40 for update skip locked)",
        "update tasks set priority = 5 where id in (select id from tasks where id > $1 and status = 'new' order by id desc limit 40 for update skip locked)",
        "update hosts set deferred_until = 'infinity' where id in (select id from hosts where id > $1 order by id limit 2 for no key update)",
        "update hosts set deferred_until = null where id in (select id from hosts where id > $1 and deferred_until > now() order by id for no key update)",
    ];
    sqlx::query(TYPED[rng.random_range(0..TYPED.len())])
        .bind(rng.random_range(0..1_000))
        .execute(pool)
        .await
        .unwrap();
}

/// One process.
struct Crawler {
    protocol: Protocol,
    trial: Arc<Trial>,
    shared: Arc<Shared>,
    rng: StdRng,
    worker: WorkerId,
    /// Until when it is not dead for others.
    licence: Boottime,
    stock: Vec<Slot>,
    results: Vec<Finish>,
    hosts: HashMap<u32, HostId>,
}

struct Slot {
    host: HostId,
    number: u32,
    delay: Duration,
    hold: Option<i32>,
    robots_due: bool,
    tasks: VecDeque<ClaimedTask>,
    next: Boottime,
    last_fetch: Option<Boottime>,
    deadline: Boottime,
    closed: bool,
}

impl Crawler {
    async fn start(number: usize, pool: PgPool, trial: Arc<Trial>, shared: Arc<Shared>) -> Crawler {
        let frontier = Frontier::new(pool, trial.settings());
        let sent = Boottime::now();
        let worker = frontier
            .join(&identity(&format!("crawler {number}")))
            .await
            .unwrap();
        Crawler {
            protocol: Protocol {
                frontier,
                changed: trial.changed.clone(),
            },
            trial,
            shared,
            rng: StdRng::seed_from_u64(number as u64),
            worker,
            licence: sent + DEAD,
            stock: Vec::new(),
            results: Vec::new(),
            hosts: HashMap::new(),
        }
    }

    async fn crawl(mut self) {
        let mut beat_at = Boottime::now();
        let (mut upkeep_at, mut finish_at, mut claim_at) = (beat_at, beat_at, beat_at);
        while !self.shared.over.load(Ordering::Relaxed) {
            let now = Boottime::now();
            if now >= beat_at {
                self.beat().await;
                beat_at = Boottime::now() + BEAT;
            }
            if now >= upkeep_at {
                self.upkeep().await;
                upkeep_at =
                    Boottime::now() + Duration::from_millis(self.rng.random_range(150..450));
            }
            let left: usize = self.stock.iter().map(|slot| slot.tasks.len()).sum();
            if left < 40 && now >= claim_at && now < self.licence {
                if !self.claim().await {
                    let idle = self.stock.is_empty() && self.results.is_empty();
                    if idle && self.protocol.frontier.finished().await.unwrap() {
                        break;
                    }
                    claim_at =
                        Boottime::now() + Duration::from_millis(self.rng.random_range(5..30));
                }
                continue;
            }
            let fetched = self.fetch_what_is_ready().await;
            let over = self.stock.iter().any(Slot::is_over);
            let late = now >= finish_at || over;
            if self.results.len() >= BATCH || late && !self.results.is_empty() {
                self.hang(0.06).await;
                self.finish().await;
                finish_at = Boottime::now() + Duration::from_millis(60);
            }
            if over {
                self.let_go(Slot::is_over).await;
            }
            if !fetched {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        self.finish().await;
        self.let_go(|_| true).await;
        self.protocol.frontier.leave(self.worker).await.unwrap();
        self.protocol.frontier.pool().close().await;
    }

    /// Now and then it does nothing for a while, not even say that it lives: a stopped process, a machine that slept.
    async fn hang(&mut self, chance: f64) {
        if self.shared.began.elapsed() < self.trial.rough && self.rng.random_bool(chance) {
            tokio::time::sleep(LEASE.mul_f64(self.rng.random_range(0.2..1.8))).await;
        }
    }

    async fn beat(&mut self) {
        let frontier = &self.protocol.frontier;
        let sent = Boottime::now();
        if frontier.beat(self.worker).await.unwrap() {
            self.licence = sent + DEAD;
        } else {
            // Declared dead: nothing in stock is its own any more. What it has visited is tried, to be refused.
            self.finish().await;
            self.let_go(|_| true).await;
            let sent = Boottime::now();
            self.worker = self
                .protocol
                .frontier
                .join(&identity("anew"))
                .await
                .unwrap();
            self.licence = sent + DEAD;
        }
    }

    async fn upkeep(&mut self) {
        let frontier = &self.protocol.frontier;
        frontier.recycle().await.unwrap();
        frontier.promote().await.unwrap();
        frontier.fold_counts().await.unwrap();
    }

    async fn claim(&mut self) -> bool {
        let appetite = Appetite {
            hosts: *pick(&mut self.rng, &[2, 5, 20]),
            tasks: *pick(&mut self.rng, &[10, 40, 100]),
            tasks_per_host: *pick(&mut self.rng, &[5, 30]),
        };
        let claim = self.protocol.claim(self.worker, appetite).await;
        self.protocol.frontier.park(&claim.empty).await.unwrap();
        let any = !claim.hosts.is_empty();
        for host in claim.hosts {
            self.stock.push(Slot {
                host: host.id,
                number: web::place(&host.tasks[0].url).0,
                delay: host.delay,
                hold: host.hold,
                robots_due: host.robots_due,
                tasks: host.tasks.into(),
                next: Boottime::now(),
                last_fetch: None,
                deadline: claim.sent + LEASE,
                closed: false,
            });
        }
        any
    }

    /// Fetches what may be fetched now: of a host with a delay one page, of others some.
    async fn fetch_what_is_ready(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.stock.len() {
            for _ in 0..20 {
                let slot = &self.stock[at];
                let start = Boottime::now();
                if slot.is_over() || slot.next > start {
                    break;
                }
                let deadline = slot.deadline.min(self.licence);
                if start + FETCH_MAX > deadline {
                    self.stock[at].closed = true;
                    break;
                }
                any = true;
                self.fetch(at, start, deadline).await;
            }
        }
        any
    }

    async fn fetch(&mut self, at: usize, start: Boottime, deadline: Boottime) {
        let slot = &self.stock[at];
        if !slot.delay.is_zero() || slot.robots_due {
            tokio::time::sleep(Duration::from_micros(self.rng.random_range(0..2_000))).await;
        }
        let end = Boottime::now();
        let fetch = Fetch {
            host: slot.number,
            start,
            end,
            deadline,
        };
        self.shared.log.lock().unwrap().fetches.push(fetch);
        let slot = &mut self.stock[at];
        slot.last_fetch = Some(end);
        if slot.robots_due {
            self.learn_robots(at, end).await;
            return;
        }
        slot.next = end + slot.delay;
        if let Some(task) = slot.tasks.pop_front() {
            let visit = self.visit(&task).await;
            self.results.push(visit);
        }
    }

    /// The fetch was that of robots.txt.
    async fn learn_robots(&mut self, at: usize, end: Boottime) {
        let slot = &self.stock[at];
        let named = self.shared.web.delay(slot.number);
        let robots = StoredRobots {
            http_status: Some(200),
            hops: 0,
            crawl_delay: (!named.is_zero()).then_some(named),
            error: None,
            final_url: None,
            sitemaps: Vec::new(),
            body: None,
            ttl: Duration::from_secs(3_600),
        };
        let delay = self
            .protocol
            .frontier
            .store_robots(slot.host, &robots)
            .await
            .unwrap();
        let slot = &mut self.stock[at];
        slot.robots_due = false;
        let Some(delay) = delay else {
            slot.closed = true;
            return;
        };
        slot.delay = delay;
        slot.next = end + delay;
        if delay.is_zero()
            && let Some(hold) = slot.hold.take()
        {
            let release = Release {
                host: slot.host,
                hold,
                last_fetch: Some(end),
                took: Duration::ZERO,
                answered: true,
                goes_on: true,
            };
            self.protocol.release(self.worker, &[release]).await;
        }
    }

    async fn visit(&mut self, task: &ClaimedTask) -> Finish {
        let place = web::place(&task.url);
        let failed = |due| Outcome::Failed {
            reason: "timeout".to_owned(),
            detail: None,
            due,
            charged: true,
        };
        let outcome = match self.shared.web.end(place) {
            End::DoneAfterRetry if task.attempt < 2 => {
                failed(Some(Duration::from_millis(self.rng.random_range(1..300))))
            }
            End::Done | End::DoneAfterRetry => Outcome::Done { reason: None },
            End::Failed => failed(None),
            End::Excluded => Outcome::Excluded {
                reason: "robots".to_owned(),
                detail: None,
            },
        };
        let places = match outcome {
            Outcome::Done { .. } => self.shared.web.links(place),
            _ => Vec::new(),
        };
        self.know_hosts(&places).await;
        let page = match outcome {
            Outcome::Done { .. } => Some(PageRow {
                links: places.len() as u32,
                ..page()
            }),
            Outcome::Failed { .. } => {
                Some(PageRow::without_answer("timeout", "", Duration::ZERO, None))
            }
            Outcome::Excluded { .. } => None,
        };
        Finish {
            task: task.id,
            claim_version: task.claim_version,
            outcome,
            page,
            links: places
                .iter()
                .map(|&to| super::link(self.hosts[&to.0], &web::url(to)))
                .collect(),
            edges: places
                .iter()
                .map(|&to| super::edge(self.hosts[&to.0], &web::url(to)))
                .collect(),
        }
    }

    async fn know_hosts(&mut self, places: &[Place]) {
        let new: HashSet<u32> = places
            .iter()
            .map(|&(host, _)| host)
            .filter(|host| !self.hosts.contains_key(host))
            .collect();
        if new.is_empty() {
            return;
        }
        let keys: Vec<_> = new
            .iter()
            .map(|&host| {
                (
                    host,
                    PageUrl::parse(&web::url((host, 0))).unwrap().host().clone(),
                )
            })
            .collect();
        let names: Vec<_> = keys.iter().map(|(_, key)| key.clone()).collect();
        let ids = self.protocol.frontier.hosts(&names).await.unwrap();
        self.hosts
            .extend(keys.iter().map(|(host, key)| (*host, ids[key])));
    }

    async fn finish(&mut self) {
        let mut results = std::mem::take(&mut self.results);
        for batch in results.chunks_mut(BATCH) {
            batch.sort_by_key(|visit| visit.task);
            let accepted = loop {
                match self.protocol.finish(self.worker, batch).await {
                    Ok(accepted) => break accepted,
                    Err(error) => {
                        let code = error
                            .as_database_error()
                            .and_then(sqlx::error::DatabaseError::code);
                        let mut log = self.shared.log.lock().unwrap();
                        match code.as_deref() {
                            Some("40P01") => log.deadlocks += 1,
                            Some("55P03") => {}
                            _ => {
                                log.unexpected.push(error.to_string());
                                break Vec::new();
                            }
                        }
                    }
                }
            };
            let mut log = self.shared.log.lock().unwrap();
            log.refused += accepted.iter().filter(|accepted| !**accepted).count() as u64;
            if accepted.contains(&true) || log.last_progress.is_none() {
                log.last_progress = Some(Boottime::now());
            }
        }
    }

    async fn let_go(&mut self, which: impl Fn(&Slot) -> bool) {
        let (gone, kept): (Vec<_>, Vec<_>) = self.stock.drain(..).partition(which);
        self.stock = kept;
        let givings: Vec<Giving> = gone
            .iter()
            .flat_map(|slot| slot.tasks.iter().map(super::giving))
            .collect();
        self.protocol
            .frontier
            .give_back(self.worker, &givings)
            .await
            .unwrap();
        let holds: Vec<Release> = gone
            .iter()
            .filter_map(|slot| {
                Some(Release {
                    host: slot.host,
                    hold: slot.hold?,
                    last_fetch: slot.last_fetch,
                    took: Duration::ZERO,
                    answered: true,
                    goes_on: false,
                })
            })
            .collect();
        self.hang(0.04).await;
        self.protocol.release(self.worker, &holds).await;
    }
}

impl Slot {
    fn is_over(&self) -> bool {
        self.closed || self.tasks.is_empty()
    }
}

fn pick<'a, T>(rng: &mut StdRng, from: &'a [T]) -> &'a T {
    &from[rng.random_range(0..from.len())]
}

/// What a trial showed.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// What was broken, and how often.
    pub(super) broken: BTreeMap<String, i64>,
    pub(super) visits: i64,
    pub(super) refused: u64,
    /// The smallest gap between two fetches of a host with a delay, in delays.
    pub(super) least_gap: Option<f64>,
}

impl Findings {
    fn broken(&mut self, what: &str, times: i64) {
        if times != 0 {
            *self.broken.entry(what.to_owned()).or_default() += times;
        }
    }

    /// What must not be seen at any time.
    async fn at_any_time(pool: &PgPool, shared: &Shared) -> Findings {
        let mut findings = Findings::default();
        findings.log(shared);
        for (what, sql) in [
            (
                "a host asleep with new tasks",
                "select count(*) from hosts h where not has_new and exists (select from tasks t where t.host_id = h.id and t.status = 'new')",
            ),
            (
                "a task finished more than once",
                "select count(*) from (select from audit where final group by task_id having count(*) > 1) s",
            ),
            (
                "a visit accepted more than once",
                "select count(*) from (select from audit group by task_id, claim_version having count(*) > 1) s",
            ),
            (
                "a page of no accepted visit",
                "select count(*) from pages p where not exists (select from audit a where a.task_id = p.task_id and a.claim_version = p.claim_version)",
            ),
            (
                "links that are not those of the page",
                "select count(*) from pages p where p.http_status = 200 and p.links <> (select count(*) from links l where l.from_task = p.task_id)",
            ),
            (
                "a link that leads to no task",
                "select count(*) from links l where not exists (select from tasks t where t.id = l.to_task)",
            ),
            (
                "visits that the workers' counts do not hold",
                "select (select count(*) from audit) - (select sum(done + failed + retried + excluded) from worker_counts)",
            ),
            (
                "a host that is stuck",
                "select count(*) from hosts where ready_at > now() + interval '1 minute' and ready_at < 'infinity'",
            ),
        ] {
            findings.broken(what, number(pool, sql).await);
        }
        findings.visits = number(pool, "select count(*) from audit").await;
        findings
    }

    /// What the crawlers noted.
    fn log(&mut self, shared: &Shared) {
        let mut log = shared.log.lock().unwrap();
        self.refused = log.refused;
        self.broken(DEADLOCK, log.deadlocks);
        for error in &log.unexpected {
            self.broken(error, 1);
        }
        log.fetches.sort_by_key(|fetch| (fetch.host, fetch.start));
        let mut last: Option<(u32, Boottime)> = None;
        // A fetch that ended after its deadline was stopped in its middle, which nobody can prevent.
        for fetch in log
            .fetches
            .iter()
            .filter(|fetch| fetch.end <= fetch.deadline)
        {
            let delay = shared.web.delay(fetch.host);
            let before = last.filter(|(host, _)| *host == fetch.host && !delay.is_zero());
            if let Some((_, end)) = before {
                let gap = (fetch.start - end).as_secs_f64() / delay.as_secs_f64();
                self.least_gap = Some(self.least_gap.map_or(gap, |least| least.min(gap)));
                self.broken("two fetches too close on a host", i64::from(gap < 1.0));
            }
            last = Some((
                fetch.host,
                before.map_or(fetch.end, |(_, end)| end.max(fetch.end)),
            ));
        }
    }

    /// What the database shows when the crawl has ended.
    async fn at_rest(&mut self, pool: &PgPool, web: &Web, seeds: &[Place], finished: bool) {
        for broken in broken_invariants(pool).await {
            let what = broken.split(": ").next().unwrap_or_default().to_owned();
            self.broken(&what, 1);
        }
        if finished {
            self.ends(pool, web, seeds).await;
        }
    }

    /// Whether each page of the web is there, and ended as it must.
    async fn ends(&mut self, pool: &PgPool, web: &Web, seeds: &[Place]) {
        let mut should = web.reach(seeds);
        for row in column(pool, "select url || ' ' || status from tasks").await {
            let (url, status) = row
                .trim_matches('"')
                .split_once(' ')
                .expect("a URL and a status");
            let place = web::place(url);
            if !should.remove(&place) {
                self.broken("a task out of nowhere", 1);
            }
            let must = match web.end(place) {
                End::Done | End::DoneAfterRetry => "done",
                End::Failed => "failed",
                End::Excluded => "excluded",
            };
            if status != must {
                self.broken(&format!("{must} ended as {status}"), 1);
            }
        }
        self.broken("a page that was lost", should.len() as i64);
    }
}

/// Waits until the crawlers' connections are gone: with their end they have written their statistics.
async fn until_alone(db: &TestDb) {
    let others = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'crawler'";
    for _ in 0..1_000 {
        if number(&db.pool, others).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("connections of crawlers are left");
}

async fn deadlocks(pool: &PgPool) -> i64 {
    number(
        pool,
        "select deadlocks from pg_stat_database where datname = current_database()",
    )
    .await
}
