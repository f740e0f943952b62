//! All proxies of a process: whose turn it is, and what came of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::health::{Health, ProxyReport, Ticket};

/// How requests are spread over several proxies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rotation {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Each host by the same one, on every machine with these labels, for as long as it is fit.
    Sticky,
    /// By chance.
    Random,
}

/// A proxy that reached a host so long ago is taken for one that works: twice the usual wait of a task.
const LATELY: Duration = Duration::from_secs(60);

/// The proxies, by the indices of `Routes`.
pub(in crate::fetch) struct Pool {
    members: Vec<Member>,
    rotation: Rotation,
    rests: Vec<Duration>,
    next: AtomicUsize,
}

struct Member {
    label: Arc<str>,
    health: Mutex<Health>,
}

impl Pool {
    pub(in crate::fetch) fn new(
        labels: impl IntoIterator<Item = Arc<str>>,
        rotation: Rotation,
        rests: Vec<Duration>,
    ) -> Pool {
        let member = |label| Member {
            label,
            health: Mutex::default(),
        };
        Pool {
            members: labels.into_iter().map(member).collect(),
            rotation,
            rests,
            next: AtomicUsize::new(0),
        }
    }

    /// Takes the one whose turn it is among those that are fit and were not tried.
    ///
    /// # Errors
    /// How long until the first of all candidates is worth another try.
    pub(in crate::fetch) fn take(
        self: &Arc<Pool>,
        candidates: &[usize],
        tried: &[usize],
        host: &str,
    ) -> Result<Pass, Duration> {
        let now = Instant::now();
        for index in self.in_turn(candidates, host) {
            if tried.contains(&index) {
                continue;
            }
            let mut health = self.health(index);
            if health.rests(now).is_none() {
                let ticket = health.begin(now);
                drop(health);
                return Ok(Pass {
                    pool: Arc::clone(self),
                    index,
                    ticket,
                    open: true,
                });
            }
        }
        Err(self.rest(candidates).unwrap_or_default())
    }

    /// How long all candidates rest; none if one of them may be asked.
    pub(in crate::fetch) fn rest(&self, candidates: &[usize]) -> Option<Duration> {
        let now = Instant::now();
        let rests = candidates
            .iter()
            .map(|&index| self.health(index).rests(now));
        // A missing rest is less than any.
        rests.min().flatten()
    }

    /// Whether one of the candidates reached a host in the last minutes.
    pub(in crate::fetch) fn serves(&self, candidates: &[usize]) -> bool {
        let now = Instant::now();
        candidates.iter().any(|&index| {
            let reached = self.health(index).last_reached();
            reached.is_some_and(|at| now.duration_since(at) < LATELY)
        })
    }

    fn in_turn(&self, candidates: &[usize], host: &str) -> Vec<usize> {
        let mut order = candidates.to_vec();
        if order.len() < 2 {
            return order;
        }
        match self.rotation {
            Rotation::RoundRobin => {
                let turn = self.next.fetch_add(1, Ordering::Relaxed);
                order.rotate_left(turn % candidates.len());
            }
            Rotation::Random => {
                let turn = rand::rng().random_range(0..order.len());
                order.rotate_left(turn);
            }
            // The highest of hashes with each label: where one is missing, only its own hosts move.
            Rotation::Sticky => order.sort_by_cached_key(|&index| {
                std::cmp::Reverse(hash(host, &self.members[index].label))
            }),
        }
        order
    }

    fn health(&self, index: usize) -> MutexGuard<'_, Health> {
        let health = &self.members[index].health;
        health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How each stands, in the order of the settings; those of one label (the environment's) as one.
    pub(in crate::fetch) fn report(&self) -> Vec<ProxyReport> {
        let now = Instant::now();
        let mut reports: Vec<ProxyReport> = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let report = self.health(index).report(&member.label, now);
            match reports.iter_mut().find(|known| known.label == report.label) {
                Some(known) => known.add(report),
                None => reports.push(report),
            }
        }
        reports
    }
}

/// Of a host's name with a label; stable, so that all machines choose alike.
fn hash(host: &str, label: &str) -> u64 {
    let digest = Sha256::new()
        .chain_update(host)
        .chain_update([0])
        .chain_update(label)
        .finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// Leave to make one request through a proxy. Dropped without a word, it says nothing of the proxy.
pub(in crate::fetch) struct Pass {
    pool: Arc<Pool>,
    pub(in crate::fetch) index: usize,
    ticket: Ticket,
    open: bool,
}

impl Pass {
    pub(in crate::fetch) fn label(&self) -> &Arc<str> {
        &self.pool.members[self.index].label
    }

    /// Something came from beyond the proxy.
    pub(in crate::fetch) fn reached(mut self, bytes: u64) {
        self.open = false;
        let news = self
            .pool
            .health(self.index)
            .reached(self.ticket, Instant::now(), bytes);
        if news {
            tracing::info!(proxy = %self.label(), "the proxy {} works again", self.label());
        }
    }

    /// The proxy failed.
    pub(in crate::fetch) fn failed(mut self, reason: &str) {
        self.open = false;
        let rest = {
            let rests = &self.pool.rests;
            self.pool
                .health(self.index)
                .failed(self.ticket, Instant::now(), rests, reason)
        };
        tracing::warn!(proxy = %self.label(), "the proxy {} failed and rests for {rest:.0?}: {reason}", self.label());
    }

    /// Whether the proxy reached a host since it started, or since it last failed.
    pub(in crate::fetch) fn has_reached(&self) -> bool {
        self.pool.health(self.index).has_reached()
    }

    /// The proxy did not reach a host of this site, perhaps by its own fault. Answers the pass if that
    /// is one too many.
    pub(in crate::fetch) fn doubted(mut self, site: &str) -> Option<Pass> {
        let site = hash(site, "");
        if self.pool.health(self.index).doubted(self.ticket, site) {
            return Some(self);
        }
        self.open = false;
        None
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.open {
            self.pool.health(self.index).end(self.ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(count: usize, rotation: Rotation) -> Arc<Pool> {
        let labels = (0..count).map(|n| format!("exit{n}").into());
        Arc::new(Pool::new(labels, rotation, vec![Duration::from_secs(10)]))
    }

    fn all(pool: &Pool) -> Vec<usize> {
        (0..pool.members.len()).collect()
    }

    fn taken(pool: &Arc<Pool>, host: &str) -> usize {
        pool.take(&all(pool), &[], host).unwrap().index
    }

    #[test]
    fn in_a_round_each_has_its_turn_and_those_that_rest_are_left_out() {
        let pool = pool(3, Rotation::RoundRobin);
        let round: Vec<usize> = (0..6).map(|_| taken(&pool, "h")).collect();
        assert_eq!(round, [0, 1, 2, 0, 1, 2]);
        pool.take(&[1], &[], "h").unwrap().failed("refused");
        let round: Vec<usize> = (0..6).map(|_| taken(&pool, "h")).collect();
        assert!(
            !round.contains(&1) && round.contains(&0) && round.contains(&2),
            "{round:?}"
        );
        assert!(pool.take(&all(&pool), &[0, 2], "h").is_err());
    }

    #[test]
    fn a_host_sticks_to_a_proxy_and_only_its_hosts_move_when_it_rests() {
        let pool = pool(4, Rotation::Sticky);
        let hosts: Vec<String> = (0..200).map(|n| format!("h{n}.test")).collect();
        let chosen = || -> Vec<usize> { hosts.iter().map(|host| taken(&pool, host)).collect() };
        let before = chosen();
        assert_eq!(before, chosen());
        for index in 0..4 {
            let share = before.iter().filter(|&&chosen| chosen == index).count();
            assert!((20..=90).contains(&share), "{index}: {share}");
        }
        // Another machine, the same choice.
        assert_eq!(
            before[..3],
            [
                taken(&pool, "h0.test"),
                taken(&pool, "h1.test"),
                taken(&pool, "h2.test")
            ]
        );
        pool.take(&[2], &[], "h").unwrap().failed("refused");
        for (before, after) in before.iter().zip(chosen()) {
            assert!(after != 2 && (*before == after || *before == 2));
        }
    }

    #[test]
    fn proxies_serve_while_one_of_them_reached_a_host_lately() {
        let pool = pool(2, Rotation::RoundRobin);
        assert!(!pool.serves(&[0, 1]));
        pool.take(&[0], &[], "h").unwrap().reached(0);
        assert!(pool.serves(&[0, 1]) && !pool.serves(&[1]));
        // For others it does, though it failed since.
        pool.take(&[0], &[], "h").unwrap().failed("refused");
        assert!(pool.serves(&[0]));
    }

    #[test]
    fn by_chance_all_are_used() {
        let pool = pool(3, Rotation::Random);
        let mut seen: Vec<usize> = (0..200).map(|_| taken(&pool, "h")).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2]);
    }

    #[test]
    fn where_all_rest_the_first_to_come_back_is_waited_for() {
        let pool = pool(2, Rotation::RoundRobin);
        assert_eq!(pool.rest(&[0, 1]), None);
        pool.take(&[0], &[], "h").unwrap().failed("refused");
        assert_eq!(pool.rest(&[0, 1]), None);
        pool.take(&[1], &[], "h").unwrap().failed("refused");
        let rest = pool.rest(&[0, 1]).unwrap();
        assert!(
            rest <= Duration::from_secs(10) && rest > Duration::from_secs(5),
            "{rest:?}"
        );
        assert!(pool.take(&[0, 1], &[], "h").is_err());
    }
}
