//! An invented web: pages, their links and how they end are a function of their numbers alone, so a test knows what a crawl must come to.

use std::collections::HashSet;
use std::time::Duration;

/// Host and page, both by number.
pub(super) type Place = (u32, u32);

/// How the visits of a page end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    /// Without an answer at first, with one at the second attempt.
    DoneAfterRetry,
    Failed,
    Excluded,
}

/// The delays of its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delays {
    None,
    /// Half of the hosts have none, the others some milliseconds.
    Mixed,
    All,
}

#[derive(Clone, Debug)]
pub(super) struct Web {
    pub(super) hosts: u32,
    pages_per_host: u32,
    delays: Delays,
}

impl Web {
    pub(super) fn new(hosts: u32, pages: u32, delays: Delays) -> Web {
        Web {
            hosts,
            pages_per_host: (pages / hosts).max(1),
            delays,
        }
    }

    /// Spreads what it is given over all numbers (the finaliser of SplitMix64).
    fn mix(&self, host: u32, page: u32, what: u64) -> u64 {
        let mut x = (u64::from(host) << 32 | u64::from(page)).wrapping_add(what << 56);
        x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub(super) fn delay(&self, host: u32) -> Duration {
        let polite = match self.delays {
            Delays::None => false,
            Delays::Mixed => self.mix(host, 0, 1).is_multiple_of(2),
            Delays::All => true,
        };
        Duration::from_millis(if polite {
            5 + self.mix(host, 0, 2) % 20
        } else {
            0
        })
    }

    pub(super) fn end(&self, (host, page): Place) -> End {
        match self.mix(host, page, 3) % 100 {
            0..2 if page > 3 => End::Excluded,
            2..4 if page > 3 => End::Failed,
            4..10 => End::DoneAfterRetry,
            _ => End::Done,
        }
    }

    /// Links within the host, most of them known; some to the first pages of others; and every host is reached from a smaller one.
    pub(super) fn links(&self, (host, page): Place) -> Vec<Place> {
        let mut links: Vec<Place> = [0, 1, 2, page + 1, 2 * page + 1, 2 * page + 2]
            .into_iter()
            .map(|to| (host, to))
            .collect();
        for n in 0..self.mix(host, page, 4) % 4 {
            let other = self.mix(host, page, 5 + n);
            links.push((
                (other % u64::from(self.hosts)) as u32 + 1,
                (other >> 32) as u32 % 4,
            ));
        }
        if page == 0 {
            links.extend([(2 * host, 0), (2 * host + 1, 0)]);
        }
        links.retain(|&(host, page)| host <= self.hosts && page < self.pages_per_host);
        links
    }

    /// The seeds, and everything that a crawl of them must find.
    pub(super) fn reach(&self, seeds: &[Place]) -> HashSet<Place> {
        let mut seen: HashSet<Place> = seeds.iter().copied().collect();
        let mut todo = seeds.to_vec();
        while let Some(place) = todo.pop() {
            if matches!(self.end(place), End::Done | End::DoneAfterRetry) {
                todo.extend(self.links(place).into_iter().filter(|&to| seen.insert(to)));
            }
        }
        seen
    }
}

pub(super) fn url((host, page): Place) -> String {
    format!("https://h{host}.example/page/{page}")
}

pub(super) fn place(url: &str) -> Place {
    let parts = url
        .strip_prefix("https://h")
        .and_then(|rest| rest.split_once(".example/page/"))
        .expect("a URL of this web");
    (
        parts.0.parse().expect("a host's number"),
        parts.1.parse().expect("a page's number"),
    )
}

#[test]
fn places_are_told_from_their_urls() {
    assert_eq!(place(&url((17, 4))), (17, 4));
}

#[test]
fn a_crawl_of_the_first_host_reaches_all_hosts() {
    let web = Web::new(300, 3_000, Delays::Mixed);
    let hosts: HashSet<u32> = web
        .reach(&[(1, 0)])
        .into_iter()
        .map(|(host, _)| host)
        .collect();
    assert_eq!(hosts.len(), 300);
}
