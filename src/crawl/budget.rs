//! How much is fetched, over all machines.
//!
//! The crawl's own budgets are asked of the database before each claim and every two seconds. A claim takes no more tasks than its share of
//! what is left, counting what others have claimed, so pages are exact but for claims that overlap (a task or two a process); of bytes and time,
//! what is in flight when they are used up comes on top.
//!
//! A host's pages are counted when it is claimed from, and by each visit from then on: exact where the host is held, and where several processes
//! share it, what they claim of it in the same moment comes on top. Its URLs are counted down in memory, and anew in the database when
//! that says none are left: what other processes found since then comes on top.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError, RwLock},
    time::Duration,
};

use bytesize::ByteSize;

use super::context::Context;
use crate::{
    canon::HostKey,
    frontier::{Appetite, ClaimedHost, FrontierError, HostId, Spent},
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
    pub(super) async fn count_host_pages(
        &self,
        hosts: &[(ClaimedHost, HostKey)],
    ) -> Result<(), FrontierError> {
        let Some(most) = self.settings.budget.pages_per_host else {
            return Ok(());
        };
        let claimed: HashMap<HostId, u64> = hosts
            .iter()
            .filter(|(host, _)| host.claimed >= most && host.given_up.is_none())
            .map(|(host, _)| (host.id, host.tasks.len() as u64))
            .collect();
        if claimed.is_empty() {
            return Ok(());
        }
        let ids: Vec<HostId> = claimed.keys().copied().collect();
        // Beyond the budget by what this claim took: those are among the counted.
        let beyond = claimed.values().max().copied().unwrap_or(0);
        let counts = self.frontier.host_visits(&ids, most + beyond).await?;
        for (host, visits) in counts {
            let others = visits.saturating_sub(claimed.get(&host).copied().unwrap_or(0));
            self.host_pages.set(host, most.saturating_sub(others));
        }
        Ok(())
    }
}

/// What hosts have left of their pages, of which it is known, and which of them have nothing.
#[derive(Debug, Default)]
pub(super) struct HostPages {
    left: Mutex<HashMap<HostId, u64>>,
    closed: RwLock<HashSet<HostKey>>,
    /// Their new tasks are to be excluded.
    to_close: Mutex<Vec<HostId>>,
}

/// Hosts that are remembered.
const HOSTS: usize = 100_000;

impl HostPages {
    fn set(&self, host: HostId, pages: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() >= HOSTS {
            left.clear();
        }
        left.insert(host, pages);
    }

    /// Takes one of what a host has left; false where nothing is.
    pub(super) fn take(&self, host: HostId, key: &HostKey) -> bool {
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left) = all.get_mut(&host) else {
            return true;
        };
        if let Some(rest) = left.checked_sub(1) {
            *left = rest;
            return true;
        }
        drop(all);
        let mut closed = self.closed.write().unwrap_or_else(PoisonError::into_inner);
        if closed.len() >= HOSTS {
            closed.clear();
        }
        closed.insert(key.clone());
        let mut to_close = self.to_close.lock().unwrap_or_else(PoisonError::into_inner);
        if !to_close.contains(&host) {
            to_close.push(host);
        }
        false
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

    #[test]
    fn a_host_is_closed_by_the_first_visit_that_it_has_no_page_left_for() {
        let pages = HostPages::default();
        let key = HostKey::parse("http://h.test").unwrap();
        let (host, other) = (HostId(1), HostId(2));
        pages.set(host, 2);
        let taken: Vec<bool> = (0..4).map(|_| pages.take(host, &key)).collect();
        assert_eq!(taken, [true, true, false, false]);
        assert!(pages.take(other, &HostKey::parse("http://o.test").unwrap()));
        assert!(pages.is_closed(&key));
        assert_eq!(pages.take_closed(), [host]);
        assert_eq!(pages.take_closed(), []);
    }
}
