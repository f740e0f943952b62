//! How much section e measures.

use std::time::Duration;

use crate::frontier::Appetite;
use crate::lab::report::counted;

/// A frontier of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Tasks, all new.
    pub tasks: u64,
    /// Hosts, to which they are dealt in turn. At most as many as tasks.
    pub hosts: u64,
}

impl std::fmt::Display for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {}",
            counted(self.tasks, "task"),
            counted(self.hosts, "host")
        )
    }
}

/// Settings of section e.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleSettings {
    /// Frontiers to be compared; each with the smallest one that has as many hosts, or, where there is none, with the smallest at all.
    /// Default 10 k and 1 M tasks of 1 and 1 k hosts, and 1 M of 100 k.
    pub datasets: Vec<Dataset>,
    /// Workers on each of them, and where a snapshot is held. The server needs cores as well: with more workers they wait for the processor, and
    /// not for Postgres. Default half as many as there are cores, at least 1.
    pub dataset_workers: usize,
    /// The frontier on which the number of workers is varied. Default 1 M tasks of 1 k hosts.
    pub crowd: Dataset,
    /// Numbers of workers; the first is what the others are compared with. Default 1, 2, 4, 8, 16, 32.
    pub workers: Vec<usize>,
    /// Tasks that a claim takes at most. Default 100.
    pub batch: u32,
    /// Hosts that a claim takes them from at most. Default 20.
    pub hosts_per_claim: u32,
    /// Claims a measurement. Default 200.
    pub claims: u64,
    /// Delay of the hosts where holds are measured. Default 250 ms, so that small frontiers are not all asleep.
    pub delay: Duration,
    /// The frontier on which a snapshot is held open. Default 1 M tasks of 100 k hosts.
    pub long: Dataset,
    /// The open tasks of a crawl late in its life. Default 10 k tasks of 1 k hosts.
    pub open: Dataset,
    /// How many are done beside them; the first is what the others are compared with. Default none and 990 k.
    pub done: Vec<u64>,
    /// How long it is worked on, without a snapshot and with one. Default 20 s each.
    pub snapshot: Duration,
    /// Parts of that time that have a line of their own. Default 4.
    pub intervals: u32,
    /// Intervals of polling that NOTIFY is compared with. Default 10 ms, 100 ms and 1 s.
    pub polls: Vec<Duration>,
    /// Wake-ups of each kind. Default 20.
    pub wakes: u32,
    /// How long commits with and without a NOTIFY are counted. Default 2 s.
    pub notifying: Duration,
    /// Workers that commit then. Default 8.
    pub notifiers: usize,
}

impl Default for ScaleSettings {
    fn default() -> ScaleSettings {
        ScaleSettings {
            datasets: grid(&[10_000, 1_000_000], &[1, 1_000, 100_000]),
            dataset_workers: std::thread::available_parallelism()
                .map_or(1, |cores| cores.get() / 2)
                .max(1),
            crowd: Dataset {
                tasks: 1_000_000,
                hosts: 1_000,
            },
            workers: vec![1, 2, 4, 8, 16, 32],
            batch: 100,
            hosts_per_claim: 20,
            claims: 200,
            delay: Duration::from_millis(250),
            long: Dataset {
                tasks: 1_000_000,
                hosts: 100_000,
            },
            open: Dataset {
                tasks: 10_000,
                hosts: 1_000,
            },
            done: vec![0, 990_000],
            snapshot: Duration::from_secs(20),
            intervals: 4,
            polls: vec![
                Duration::from_millis(10),
                Duration::from_millis(100),
                Duration::from_secs(1),
            ],
            wakes: 20,
            notifying: Duration::from_secs(2),
            notifiers: 8,
        }
    }
}

impl ScaleSettings {
    /// Ten million tasks, a million hosts, a snapshot held for two minutes.
    pub fn full() -> ScaleSettings {
        ScaleSettings {
            datasets: grid(&[10_000, 1_000_000, 10_000_000], &[1, 1_000, 1_000_000]),
            claims: 600,
            done: vec![0, 990_000, 9_990_000],
            long: Dataset {
                tasks: 10_000_000,
                hosts: 1_000_000,
            },
            snapshot: Duration::from_secs(120),
            intervals: 4,
            wakes: 100,
            notifying: Duration::from_secs(10),
            ..ScaleSettings::default()
        }
    }
}

/// Every size with every number of hosts, but for those with fewer than ten tasks a host: a claim would find fewer of each, and cost less.
fn grid(tasks: &[u64], hosts: &[u64]) -> Vec<Dataset> {
    let mut datasets = Vec::new();
    for &tasks in tasks {
        for &hosts in hosts {
            let dataset = Dataset {
                tasks,
                hosts: hosts.min(tasks / 10).max(1),
            };
            if !datasets.contains(&dataset) {
                datasets.push(dataset);
            }
        }
    }
    datasets
}

impl ScaleSettings {
    /// What a claim of so many tasks a batch asks for.
    pub(super) fn appetite(&self, dataset: Dataset) -> Appetite {
        let hosts = u64::from(self.hosts_per_claim).min(dataset.hosts).max(1);
        Appetite {
            hosts: u32::try_from(hosts).unwrap_or(u32::MAX),
            tasks: self.batch,
            tasks_per_host: self
                .batch
                .div_ceil(u32::try_from(hosts).unwrap_or(u32::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_at_least_ten_tasks_a_host_and_nothing_twice() {
        let grid = grid(&[10_000, 1_000_000], &[1, 1_000, 100_000]);
        let pairs: Vec<_> = grid.iter().map(|size| (size.tasks, size.hosts)).collect();
        assert_eq!(
            pairs,
            [
                (10_000, 1),
                (10_000, 1_000),
                (1_000_000, 1),
                (1_000_000, 1_000),
                (1_000_000, 100_000)
            ]
        );
    }

    #[test]
    fn the_full_run_reaches_ten_million_tasks_of_a_million_hosts() {
        let full = ScaleSettings::full();
        let largest = Dataset {
            tasks: 10_000_000,
            hosts: 1_000_000,
        };
        assert!(full.datasets.contains(&largest), "{full:?}");
        assert_eq!(full.long, largest);
        // What is claimed of a million before and after ANALYZE and with holds must be there.
        assert!(full.claims * u64::from(full.batch) * 5 / 2 < 1_000_000);
    }
}
