//! Settings of the crawl loop.

use std::path::PathBuf;
use std::time::Duration;

use super::{Budget, LinkGraph, Until, sitemap::SitemapSettings};
use crate::{
    extract::Wants,
    schedule::{Order, RetrySettings},
    scope::shape::ShapeLimits,
};

/// How one process crawls. What all machines must agree on and the statements need is in
/// [`crate::frontier::FrontierSettings`].
#[derive(Clone, Debug, PartialEq)]
pub struct CrawlSettings {
    /// Fetches under way at once, over all hosts. Default 64.
    pub concurrency: usize,
    /// Fetches under way at once on a host without a delay. Default 1.
    pub per_host: usize,
    /// Requests a second of the whole crawl, over all machines and hosts; `None`: no ceiling.
    pub rate: Option<f64>,
    /// Delay between two fetches of one address, over all hosts and machines; zero: none is kept. Default zero.
    pub ip_delay: Duration,
    /// Longest duration of a visit's fetch, hops and waits included. The lease must be at least twice as long. Default 60 s.
    pub visit_budget: Duration,
    /// Until when this run goes on. Default: until nothing is left to do.
    pub until: Until,
    /// Pages this run fetches at most; `None`: no limit.
    pub max_pages: Option<u64>,
    /// How long this run lasts at most; `None`: no limit.
    pub max_duration: Option<Duration>,
    /// Redirects in a row, each a task of its own, that are followed. Default 10.
    pub max_hops: u16,
    /// How much is fetched, over all machines. Default: no limit.
    pub budget: Budget,
    /// When a shape of URLs counts as a trap.
    pub shapes: ShapeLimits,
    /// Whether each link that the scope leaves out becomes a row, and not only those that look like traps. Default no.
    pub keep_excluded: bool,
    /// Whether decoded bodies are kept in table `bodies`. Default no.
    pub keep_bodies: bool,
    /// Which links of a page are read.
    pub wants: Wants,
    /// Whether pages have a fingerprint of their text. Default yes.
    pub simhash: bool,
    /// Which links are kept in table `links`. Default none.
    pub links: LinkGraph,
    /// Product token that robots.txt and robots meta tags address us by.
    pub robots_token: String,
    /// Files of what must not be visited, of this machine; their entries count for all. Default none.
    pub block_lists: Vec<PathBuf>,
    /// How sitemaps are found and read.
    pub sitemaps: SitemapSettings,
    /// In which order the tasks of a host are visited. Default breadth-first.
    pub order: Order,
    /// Waits and limits of retries.
    pub retry: RetrySettings,
    /// How long a drain waits for fetches under way. Default 25 s.
    pub grace: Duration,
    /// How often lost leases and dead workers are looked for. Default 15 s.
    pub recycle_every: Duration,
    /// Visits that are finished in one statement at most. Default 256.
    pub batch: usize,
    /// How long a finished visit waits for others to share its statement. Default 100 ms.
    pub linger: Duration,
}

impl Default for CrawlSettings {
    fn default() -> CrawlSettings {
        CrawlSettings {
            concurrency: 64,
            per_host: 1,
            rate: None,
            ip_delay: Duration::ZERO,
            visit_budget: Duration::from_secs(60),
            until: Until::default(),
            max_pages: None,
            max_duration: None,
            max_hops: 10,
            budget: Budget::default(),
            shapes: ShapeLimits::default(),
            keep_excluded: false,
            keep_bodies: false,
            wants: Wants::default(),
            simhash: true,
            links: LinkGraph::default(),
            robots_token: "pgcrawl".to_owned(),
            block_lists: Vec::new(),
            sitemaps: SitemapSettings::default(),
            order: Order::default(),
            retry: RetrySettings::default(),
            grace: Duration::from_secs(25),
            recycle_every: Duration::from_secs(15),
            batch: 256,
            linger: Duration::from_millis(100),
        }
    }
}
