//! What the statements of the frontier need to know.

use std::time::Duration;

use crate::canon::Canon;
use crate::db::Route;

/// Settings of the frontier. All machines of a crawl must agree on them, but for the last three.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontierSettings {
    /// Version of the crawl's settings that these were made of; under another one nothing is claimed. Default 0, the first.
    pub version: i32,
    /// Delay of a host that has none of its own, end of a fetch to start of the next. Default 1 s.
    pub delay: Duration,
    /// Delay between two fetches of one address; zero: none is kept. Default zero.
    pub ip_delay: Duration,
    /// How long a claim counts, by `claimed_at`; never renewed. Default 2 min.
    pub lease: Duration,
    /// How often a worker says that it lives. Default 30 s.
    pub heartbeat: Duration,
    /// Silence after which a worker is declared dead. Default 90 s.
    pub dead_after: Duration,
    /// Fetching that is claimed at once from a host with a delay. Default 5 s.
    pub hold: Duration,
    /// Age of a low-water mark from which on the claim looks from the bottom. Default 10 min.
    pub mark_age: Duration,
    /// Leases lost in a row after which a task is given up as `poison`. Default 5.
    pub max_expiries: u16,
    /// Unit of the random wait after a second lost lease, doubled with each further one. Default 5 s.
    pub spread: Duration,
    /// Whether robots.txt is obeyed (and so must be had before a page). Default yes.
    pub obey_robots: bool,
    /// Under which rules two URLs are one page, for good: stored digests depend on them. Default: those that always hold.
    pub canon: Canon,
    /// Whether the links of a page are not followed whose payload another page has that was. Default no.
    pub skip_duplicate_links: bool,
    /// How long a robots.txt counts. Default 24 h, at most (RFC 9309 §2.4).
    pub robots_ttl: Duration,
    /// How long the absence of a robots.txt counts. Default 1 h.
    pub robots_error_ttl: Duration,
    /// How long trouble with the database is sat out before it counts as lost. Default 5 min.
    pub patience: Duration,
    /// The server's limit for one statement, as the connections set it. Default 30 s.
    pub statement_timeout: Duration,
    /// How statements reach the server. Default: by sessions of our own.
    pub route: Route,
}

impl Default for FrontierSettings {
    fn default() -> FrontierSettings {
        FrontierSettings {
            version: 0,
            delay: Duration::from_secs(1),
            ip_delay: Duration::ZERO,
            lease: Duration::from_secs(120),
            heartbeat: Duration::from_secs(30),
            dead_after: Duration::from_secs(90),
            hold: Duration::from_secs(5),
            mark_age: Duration::from_secs(600),
            max_expiries: 5,
            spread: Duration::from_secs(5),
            obey_robots: true,
            canon: Canon::default(),
            skip_duplicate_links: false,
            robots_ttl: Duration::from_secs(24 * 3600),
            robots_error_ttl: Duration::from_secs(3600),
            patience: Duration::from_secs(300),
            statement_timeout: Duration::from_secs(30),
            route: Route::Session,
        }
    }
}
