//! The claim: tasks of ready hosts become this worker's for a while.

use std::{sync::Arc, time::Duration};

use super::{
    Frontier, HostId, Result, TaskId, WorkerId, ms,
    tries::{Tries, once, run},
};
use crate::clock::Boottime;

/// How much a claim takes at most.
#[derive(Clone, Copy, Debug)]
pub struct Appetite {
    /// Hosts at most.
    pub hosts: u32,
    /// Tasks at most, over all hosts.
    pub tasks: u32,
    /// Tasks a host at most; a host with a delay gives no more than fits into [`super::FrontierSettings::hold`].
    pub tasks_per_host: u32,
}

/// What a claim answered.
#[derive(Debug)]
pub struct Claim {
    /// Hosts with their tasks.
    pub hosts: Vec<ClaimedHost>,
    /// Hosts that looked empty: give them to [`Frontier::park`].
    pub empty: Vec<HostId>,
    /// Before the claim was sent. The lease is counted from here.
    pub sent: Boottime,
    /// How long the statement took.
    pub took: Duration,
}

/// A host of a claim.
#[derive(Debug)]
pub struct ClaimedHost {
    /// Its row.
    pub id: HostId,
    /// `scheme://host[:port]`
    pub authority: String,
    /// From the end of a fetch to the start of the next.
    pub delay: Duration,
    /// The hold's version, where the host is held: it is released after the last fetch.
    pub hold: Option<i32>,
    /// robots.txt must be fetched before a page.
    pub robots_due: bool,
    /// Tasks ever claimed of it, these included.
    pub claimed: u64,
    /// It was given up, with this reason: its tasks are to be failed without a fetch.
    pub given_up: Option<String>,
    /// It has host-level failures in a row on record, which an answer ends.
    pub ailing: bool,
    /// Its tasks, best first; never empty.
    pub tasks: Vec<ClaimedTask>,
}

/// What a task is visited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskKind {
    /// A page; also a sitemap that nobody has called one.
    #[default]
    Page,
    /// A sitemap, as robots.txt, an index or the guess says.
    Sitemap,
    /// A part of a page: a picture, a style. It belongs to the crawl because its page does, wherever it lies.
    Asset,
}

impl TaskKind {
    /// The word for it in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskKind::Page => "page",
            TaskKind::Sitemap => "sitemap",
            TaskKind::Asset => "asset",
        }
    }

    /// The kind of a word; what is unknown is a page.
    pub fn of_word(word: &str) -> TaskKind {
        match word {
            "sitemap" => TaskKind::Sitemap,
            "asset" => TaskKind::Asset,
            _ => TaskKind::Page,
        }
    }
}

/// A task of a claim.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    /// Its row.
    pub id: TaskId,
    /// Fences the finish.
    pub claim_version: i32,
    /// Which claim this is, from 1; those given back or put off do not count.
    pub attempt: u16,
    /// Leases lost in a row so far. Where there are some, [`Frontier::begin`] is called before the fetch.
    pub expiries: u16,
    /// Answers that asked for patience so far.
    pub deferrals: u16,
    /// Links from a seed.
    pub depth: u16,
    /// Redirects in a row that led here.
    pub hops: u16,
    /// Its place in the order of its host: the smaller, the sooner.
    pub priority: i16,
    /// The label of the seed that led here.
    pub label: Option<Arc<str>>,
    /// It came from a seed and not from a page.
    pub is_seed: bool,
    /// What it is visited for.
    pub kind: TaskKind,
    /// What to fetch.
    pub url: String,
}

impl Frontier {
    /// Claims tasks of ready hosts. Never waits for a lock; short or empty is not "nothing left".
    ///
    /// A worker's claims follow one another: what it has claimed after the last one that was answered is then from one whose answer was
    /// lost with its connection, and is given back before the next try.
    pub async fn claim(&self, worker: WorkerId, appetite: Appetite) -> Result<Claim> {
        let settings = self.settings();
        let (hosts, tasks, per_host) = (
            count(appetite.hosts),
            count(appetite.tasks),
            count(appetite.tasks_per_host),
        );
        let began = Boottime::now();
        let mut tries = Tries::new("claim");
        let (sent, rows) = loop {
            // Each try anew: a claim that was sent late runs until late.
            let sent = Boottime::now();
            let begin = self.bound.next(sent);
            let answer = once!(self, async |db| {
                sqlx::query_file!(
                    "src/frontier/sql/claim.sql",
                    worker.0,
                    hosts,
                    tasks,
                    per_host,
                    ms(settings.hold),
                    ms(settings.lease),
                    ms(settings.delay),
                    ms(settings.mark_age),
                    settings.obey_robots,
                    settings.version,
                    &begin as &[Option<i64>]
                )
                .fetch_all(db)
                .await
            });
            match answer {
                // Nothing there: at once from the start.
                Ok(rows) if rows.is_empty() && begin.iter().any(Option::is_some) => {
                    self.bound.note(std::iter::empty());
                }
                Ok(rows) => break (sent, rows),
                Err(error) => {
                    tries.failed(error, self).await?;
                    if tries.lost() {
                        self.give_back_stray(worker).await?;
                    }
                }
            }
        };
        self.bound
            .note(rows.iter().map(|row| (row.class, row.ready_us)));
        if let Some(row) = rows.first() {
            self.answered.note(worker, row.at_us);
        }
        let mut claim = Claim {
            hosts: Vec::new(),
            empty: Vec::new(),
            sent,
            took: began.elapsed(),
        };
        for row in rows {
            let id = HostId(row.host_id);
            // All of `taken` is there or none of it; the driver cannot know.
            let (
                Some(task),
                Some(version),
                Some(attempts),
                Some(expiries),
                Some(deferrals),
                Some(depth),
                Some(hops),
                Some(url),
            ) = (
                row.task_id,
                row.claim_version,
                row.attempts,
                row.expiries,
                row.deferrals,
                row.depth,
                row.hops,
                row.url,
            )
            else {
                claim.empty.push(id);
                continue;
            };
            if claim.hosts.last().is_none_or(|host| host.id != id) {
                claim.hosts.push(ClaimedHost {
                    id,
                    authority: row.authority,
                    delay: Duration::from_millis(u64::from(row.delay.unsigned_abs())),
                    hold: row.hold.then_some(row.hold_version),
                    robots_due: row.robots_due,
                    claimed: row.claimed.max(0).unsigned_abs(),
                    given_up: row.given_up,
                    ailing: row.ailing,
                    tasks: Vec::new(),
                });
            }
            let Some(host) = claim.hosts.last_mut() else {
                continue;
            };
            host.tasks.push(ClaimedTask {
                id: TaskId(task),
                claim_version: version,
                attempt: attempts.unsigned_abs(),
                expiries: expiries.unsigned_abs(),
                deferrals: deferrals.unsigned_abs(),
                depth: depth.unsigned_abs(),
                hops: hops.unsigned_abs(),
                priority: row.priority.unwrap_or_default(),
                label: row.label.map(Arc::from),
                is_seed: row.via.is_none(),
                kind: row
                    .kind
                    .as_deref()
                    .map(TaskKind::of_word)
                    .unwrap_or_default(),
                url,
            });
        }
        Ok(claim)
    }

    /// Notes that the fetch of a task begins that lost a lease before. False: the lease is lost, and nothing may be fetched for it.
    pub async fn begin(&self, worker: WorkerId, task: &ClaimedTask) -> Result<bool> {
        let begun = run!(self, "begin", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/begin.sql",
                worker.0,
                task.id.0,
                task.claim_version
            )
            .fetch_optional(db)
            .await
        })?;
        Ok(begun.is_some())
    }

    /// Puts hosts to sleep that a claim reported empty, where they still are. Answers how many.
    pub async fn park(&self, hosts: &[HostId]) -> Result<u32> {
        if hosts.is_empty() {
            return Ok(0);
        }
        let ids: Vec<i32> = hosts.iter().map(|host| host.0).collect();
        let ids = &ids;
        let parked = run!(self, "park", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/park.sql", ids)
                .fetch_one(db)
                .await
        })?;
        Ok(parked.unsigned_abs())
    }

    /// How long until the next host is ready or the next retry is due; `None` where nothing waits.
    pub async fn next_ready(&self) -> Result<Option<Duration>> {
        let next = run!(self, "next_ready", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/next_ready.sql")
                .fetch_one(db)
                .await
        })?;
        Ok(next.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs())))
    }
}

fn count(n: u32) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
