//! How much is fetched, over all machines.
//!
//! The crawl's own budgets are asked of the database before each claim and every two seconds. A claim takes no more tasks than its share of
//! what is left, counting what others have claimed, so pages are exact but for claims that overlap (a task or two a process); of bytes and time,
//! what is in flight when they are used up comes on top.
//!
//! A host's pages are counted when it is claimed from, and by each visit from then on: exact where the host is held, and where several processes
//! share it, what they claim of it in the same moment comes on top. What others have claimed of it may be given back: a host is closed when its
//! pages were visited, and waits while they are only claimed. Its URLs are counted down in memory, and anew in the database when that says
//! none are left: what other processes found since then comes on top. A host that is full in the database stays full, and is not counted again.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use bytesize::ByteSize;

use super::context::Context;
use crate::{
    canon::HostKey,
    frontier::{
        Appetite, ClaimedHost, ClaimedTask, FrontierError, HostId, NotCounted, Spent, TaskId,
        WorkerId,
    },
    scope::Reason,
};

/// Budgets, over all machines and since the crawl began; `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Visits of the crawl.
    pub pages: Option<u64>,
    /// Payload bytes of the crawl, as received.
    pub bytes: Option<u64>,
    /// Time since it began, by the database's clock.
    pub duration: Option<Duration>,
    /// Pages of each host.
    pub pages_per_host: Option<u64>,
    /// URLs of each host that become tasks.
    pub urls_per_host: Option<u64>,
}

/// What a claim may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// So many tasks.
    Tasks(u32),
    /// None now: others have claimed what is left, and may give some back.
    Wait,
    /// None any more; the words say which budget is used up.
    UsedUp(String),
}

impl Budget {
    /// Whether the crawl as a whole has one.
    fn is_of_the_crawl(&self) -> bool {
        self.pages.is_some() || self.bytes.is_some() || self.duration.is_some()
    }

    /// Which budget of the crawl is used up, in words.
    fn used_up(&self, spent: &Spent) -> Option<String> {
        if let Some(pages) = self.pages.filter(|pages| spent.visits >= *pages) {
            return Some(format!("budget.pages = {pages}"));
        }
        if let Some(bytes) = self.bytes.filter(|bytes| spent.bytes >= *bytes) {
            let size = ByteSize::b(bytes);
            return Some(format!("budget.bytes = {size}"));
        }
        let longest = self.duration.filter(|longest| spent.age >= *longest)?;
        let longest = humantime::format_duration(longest);
        Some(format!("budget.duration = {longest}"))
    }

    /// What a claim of so many tasks may take, after what was used.
    fn leave(&self, wanted: u32, spent: &Spent) -> Leave {
        if let Some(which) = self.used_up(spent) {
            return Leave::UsedUp(which);
        }
        let Some(pages) = self.pages else {
            return Leave::Tasks(wanted);
        };
        match pages.saturating_sub(spent.visits + spent.claimed) {
            0 => Leave::Wait,
            left => {
                let share = left.div_ceil(spent.workers.max(1));
                Leave::Tasks(wanted.min(u32::try_from(share).unwrap_or(u32::MAX)))
            }
        }
    }
}

impl Context {
    /// Which budget of the crawl is used up, in words; the database is asked where it has one.
    pub(super) async fn budget_used_up(&self) -> Result<Option<String>, FrontierError> {
        let budget = &self.settings.budget;
        if !budget.is_of_the_crawl() {
            return Ok(None);
        }
        Ok(budget.used_up(&self.frontier.spent().await?))
    }

    /// What a claim may take.
    pub(super) async fn budget_leave(&self, appetite: Appetite) -> Result<Leave, FrontierError> {
        let budget = &self.settings.budget;
        if !budget.is_of_the_crawl() {
            return Ok(Leave::Tasks(appetite.tasks));
        }
        Ok(budget.leave(appetite.tasks, &self.frontier.spent().await?))
    }

    /// Looks how many pages hosts may have yet, of which more tasks were claimed in all than their budget has: others cannot have used it up.
    /// What this worker has in stock uses none of them before it is begun.
    pub(super) async fn count_host_pages(
        &self,
        worker: WorkerId,
        hosts: &[(ClaimedHost, HostKey)],
    ) -> Result<(), FrontierError> {
        /// Visits that begin and are in the database before they are counted are rare, and a count is a few milliseconds.
        const TRIES: usize = 3;
        let Some(most) = self.settings.budget.pages_per_host else {
            return Ok(());
        };
        let short = hosts
            .iter()
            .filter(|(host, _)| host.claimed >= most && host.given_up.is_none());
        let ids: Vec<HostId> = short.map(|(host, _)| host.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        for _ in 0..TRIES {
            let before = self.host_pages.begun();
            let of_them = before.visits.iter().filter(|(_, host)| ids.contains(host));
            let tasks: Vec<TaskId> = of_them.map(|((task, _), _)| *task).collect();
            let but_for = NotCounted {
                worker: Some(worker),
                tasks: &tasks,
            };
            let mut counts = HashMap::new();
            for host in self.frontier.host_visits(&ids, most, but_for).await? {
                let left = Left {
                    pages: most.saturating_sub(host.visited + host.claimed),
                    others: host.claimed > 0,
                };
                counts.insert(host.host, left);
            }
            if self.host_pages.set(counts, &before) {
                break;
            }
        }
        Ok(())
    }

    /// How many URLs of these hosts may become tasks yet, where that is bounded.
    pub(super) async fn host_rooms(
        &self,
        hosts: Vec<HostId>,
    ) -> Result<HashMap<HostId, u64>, FrontierError> {
        let Some(most) = self.settings.budget.urls_per_host else {
            return Ok(HashMap::new());
        };
        let (full, open): (Vec<HostId>, Vec<HostId>) = {
            let known = self.full_hosts.read();
            hosts.into_iter().partition(|host| known.contains(host))
        };
        let mut rooms: HashMap<HostId, u64> = full.into_iter().map(|host| (host, 0)).collect();
        if open.is_empty() {
            return Ok(rooms);
        }
        for (host, urls) in self.frontier.host_urls(&open, most).await? {
            let room = most.saturating_sub(urls);
            if room == 0 {
                self.full_hosts.add(host);
            }
            rooms.insert(host, room);
        }
        Ok(rooms)
    }

    /// Takes one of what a host has left of its pages, for a visit that begins now. It is given back if nothing comes of it.
    pub(super) fn take_page(
        self: &Arc<Self>,
        host: HostId,
        key: &HostKey,
        task: &ClaimedTask,
    ) -> Result<Page, NoPage> {
        if self.settings.budget.pages_per_host.is_none() {
            return Ok(Page { of: None });
        }
        let visit = (task.id, task.claim_version);
        self.host_pages.take(host, key, visit)?;
        Ok(Page {
            of: Some((Arc::clone(self), visit)),
        })
    }
}

/// A visit: its task and the version of its claim.
type VisitKey = (TaskId, i32);

/// A page that a visit has taken of its host's budget; given back when it is dropped.
pub(super) struct Page {
    of: Option<(Arc<Context>, VisitKey)>,
}

impl Page {
    /// There is something to commit, and then it is counted in the database.
    pub(super) fn keep(mut self) {
        self.of = None;
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some((cx, visit)) = self.of.take() {
            cx.host_pages.give_back(visit);
        }
    }
}

/// Why a host has no page left for a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPage {
    /// Others have claimed what is left, and may give some back.
    Claimed,
    /// All were visited.
    UsedUp,
}

/// What a host has left of its pages.
#[derive(Clone, Copy, Debug)]
struct Left {
    pages: u64,
    /// Others had claimed some when it was counted.
    others: bool,
}

/// Visits that have begun and are not in the database yet, and how many began ever.
#[derive(Clone, Debug, Default)]
struct Begun {
    visits: HashMap<VisitKey, HostId>,
    ever: u64,
}

#[derive(Debug, Default)]
struct Pages {
    left: HashMap<HostId, Left>,
    begun: Begun,
}

/// What hosts have left of their pages, of which it is known, and which of them have nothing.
#[derive(Debug, Default)]
pub(super) struct HostPages {
    pages: Mutex<Pages>,
    closed: RwLock<HashSet<HostKey>>,
    /// Their new tasks are to be excluded.
    to_close: Mutex<Vec<HostId>>,
}

/// Hosts that are remembered.
const HOSTS: usize = 100_000;

impl HostPages {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> Begun {
        self.pages().begun.clone()
    }

    /// Keeps what was counted, less what has begun: `before` are the visits that were not counted. False where a visit has begun and ended
    /// meanwhile: nobody knows whether it was counted.
    fn set(&self, mut counts: HashMap<HostId, Left>, before: &Begun) -> bool {
        let mut pages = self.pages();
        let Pages { left, begun } = &mut *pages;
        let mut under_way = before.visits.clone();
        under_way.extend(begun.visits.iter().map(|(visit, host)| (*visit, *host)));
        for host in under_way.values() {
            if let Some(left) = counts.get_mut(host) {
                left.pages = left.pages.saturating_sub(1);
            }
        }
        if left.len() + counts.len() > HOSTS {
            left.clear();
        }
        left.extend(counts);
        let began = (under_way.len() - before.visits.len()) as u64;
        began >= begun.ever - before.ever
    }

    /// Whether a host has a page left.
    pub(super) fn look(&self, host: HostId, key: &HostKey) -> Result<(), NoPage> {
        let left = self.pages().left.get(&host).copied();
        match left {
            Some(Left { pages: 0, others }) => Err(self.none_left(host, key, others)),
            _ => Ok(()),
        }
    }

    /// Takes one of what a host has left.
    fn take(&self, host: HostId, key: &HostKey, visit: VisitKey) -> Result<(), NoPage> {
        let mut pages = self.pages();
        if let Some(left) = pages.left.get_mut(&host) {
            let Some(rest) = left.pages.checked_sub(1) else {
                let others = left.others;
                drop(pages);
                return Err(self.none_left(host, key, others));
            };
            left.pages = rest;
        }
        pages.begun.visits.insert(visit, host);
        pages.begun.ever += 1;
        Ok(())
    }

    /// A visit came to nothing.
    fn give_back(&self, visit: VisitKey) {
        let mut pages = self.pages();
        if let Some(host) = pages.begun.visits.remove(&visit)
            && let Some(left) = pages.left.get_mut(&host)
        {
            left.pages += 1;
        }
    }

    /// A visit is in the database, or was refused there.
    pub(super) fn committed(&self, task: TaskId, claim_version: i32) {
        self.pages().begun.visits.remove(&(task, claim_version));
    }

    /// A host without a page left is closed, if nobody can give one back.
    fn none_left(&self, host: HostId, key: &HostKey, others: bool) -> NoPage {
        if others {
            return NoPage::Claimed;
        }
        let mut closed = self.closed.write().unwrap_or_else(PoisonError::into_inner);
        if closed.len() >= HOSTS {
            closed.clear();
        }
        closed.insert(key.clone());
        let mut to_close = self.to_close.lock().unwrap_or_else(PoisonError::into_inner);
        if !to_close.contains(&host) {
            to_close.push(host);
        }
        NoPage::UsedUp
    }

    /// Whether a host is known to have nothing left.
    pub(super) fn is_closed(&self, host: &HostKey) -> bool {
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        closed.contains(host)
    }

    fn take_closed(&self) -> Vec<HostId> {
        std::mem::take(&mut self.to_close.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Hosts of which as many URLs are tasks as their budget has: to count them takes the longer the greater that is. A greater one is another
/// setting, under which a process joins anew.
#[derive(Debug, Default)]
pub(super) struct FullHosts(RwLock<HashSet<HostId>>);

impl FullHosts {
    fn read(&self) -> RwLockReadGuard<'_, HashSet<HostId>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, host: HostId) {
        let mut full = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if full.len() >= HOSTS {
            full.clear();
        }
        full.insert(host);
    }
}

/// Excludes what is still to be visited of hosts that have nothing left. Whoever claims of them on another machine finds out by himself.
pub(super) async fn close_hosts(cx: &Context) -> Result<(), FrontierError> {
    let Some(most) = cx.settings.budget.pages_per_host else {
        return Ok(());
    };
    let detail = format!("budget.pages_per_host = {most}");
    for host in cx.host_pages.take_closed() {
        let mut closed = 0;
        loop {
            let more = cx
                .frontier
                .close_host(host, Reason::HostPages.as_str(), &detail)
                .await?;
            closed += more;
            if more == 0 {
                break;
            }
        }
        tracing::info!(
            host.id = host.0,
            tasks = closed,
            "{detail} is used up; what is left of the host is excluded"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(visits: u64, claimed: u64, workers: u64) -> Spent {
        Spent {
            visits,
            claimed,
            workers,
            ..Spent::default()
        }
    }

    #[test]
    fn a_claim_takes_its_share_of_what_is_left_and_never_more_than_that() {
        let budget = Budget {
            pages: Some(100),
            ..Budget::default()
        };
        let leave = |wanted, spent| budget.leave(wanted, &spent);
        assert_eq!(leave(64, spent(0, 0, 1)), Leave::Tasks(64));
        assert_eq!(leave(64, spent(0, 0, 4)), Leave::Tasks(25));
        assert_eq!(leave(64, spent(90, 7, 2)), Leave::Tasks(2));
        assert_eq!(leave(64, spent(90, 10, 2)), Leave::Wait);
        assert_eq!(
            leave(64, spent(100, 0, 2)),
            Leave::UsedUp("budget.pages = 100".to_owned())
        );
        let none = Budget::default();
        assert_eq!(none.leave(64, &spent(1_000, 9, 1)), Leave::Tasks(64));
    }

    #[test]
    fn bytes_and_time_are_used_up_from_their_last_byte_and_moment_on() {
        let budget = Budget {
            bytes: Some(1_000),
            duration: Some(Duration::from_secs(60)),
            ..Budget::default()
        };
        let at = |bytes, seconds| {
            budget.used_up(&Spent {
                bytes,
                age: Duration::from_secs(seconds),
                ..Spent::default()
            })
        };
        assert_eq!(at(999, 59), None);
        assert!(at(1_000, 0).unwrap().starts_with("budget.bytes"));
        assert!(at(0, 60).unwrap().starts_with("budget.duration"));
    }

    fn counted(pages: &HostPages, host: HostId, left: u64, others: bool) -> bool {
        let before = pages.begun();
        let left = Left {
            pages: left,
            others,
        };
        pages.set(HashMap::from([(host, left)]), &before)
    }

    #[test]
    fn a_host_is_closed_by_the_first_visit_that_it_has_no_page_left_for() {
        let pages = HostPages::default();
        let key = HostKey::parse("http://h.test").unwrap();
        let (host, other) = (HostId(1), HostId(2));
        assert!(counted(&pages, host, 2, false));
        let taken: Vec<_> = (0..4)
            .map(|n| pages.take(host, &key, (TaskId(n), 1)))
            .collect();
        let none = Err(NoPage::UsedUp);
        assert_eq!(taken, [Ok(()), Ok(()), none, none]);
        let elsewhere = HostKey::parse("http://o.test").unwrap();
        assert_eq!(pages.take(other, &elsewhere, (TaskId(9), 1)), Ok(()));
        assert!(pages.is_closed(&key));
        assert_eq!(pages.take_closed(), [host]);
        assert_eq!(pages.take_closed(), []);
    }

    #[test]
    fn a_page_that_is_given_back_is_left_and_one_that_is_under_way_is_counted_once() {
        let pages = HostPages::default();
        let key = HostKey::parse("http://h.test").unwrap();
        let host = HostId(1);
        let take = |n| pages.take(host, &key, (TaskId(n), 1));
        assert_eq!((take(1), take(2)), (Ok(()), Ok(())));
        // Of three that the database leaves two are under way.
        assert!(counted(&pages, host, 3, false));
        assert_eq!(take(3), Ok(()));
        pages.give_back((TaskId(3), 1));
        pages.committed(TaskId(1), 1);
        assert_eq!(pages.look(host, &key), Ok(()));
        assert_eq!((take(4), take(5)), (Ok(()), Err(NoPage::UsedUp)));
    }

    #[test]
    fn a_host_stays_open_while_others_may_give_pages_back() {
        let pages = HostPages::default();
        let key = HostKey::parse("http://h.test").unwrap();
        counted(&pages, HostId(1), 0, true);
        assert_eq!(pages.look(HostId(1), &key), Err(NoPage::Claimed));
        assert!(!pages.is_closed(&key));
        assert_eq!(pages.take_closed(), []);
    }

    #[test]
    fn a_count_during_which_a_visit_began_and_ended_is_not_believed() {
        let pages = HostPages::default();
        let key = HostKey::parse("http://h.test").unwrap();
        let before = pages.begun();
        pages.take(HostId(1), &key, (TaskId(1), 1)).unwrap();
        assert!(pages.set(HashMap::new(), &before));
        pages.committed(TaskId(1), 1);
        assert!(!pages.set(HashMap::new(), &before));
    }
}
