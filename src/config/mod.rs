//! Configuration: every key of pgcrawl, where its value came from, and whether the values go together.
//!
//! The one idea: a key is a row of [`keys::KEYS`], and the file, the environment and the flags are three layers of
//! texts for such rows. So one reader, one wording of complaints and one list serve all three, and `config show`,
//! `config/default.toml` and did-you-mean need no list of their own.
//!
//! Later wins: defaults < TOML file < environment < flags. All complaints come at once ([`Problems`]), each with its
//! place, its key and a hint. What a value *means* is left to the module that owns it; nothing below this floor knows
//! this module.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use secrecy::SecretString;

use crate::canon::{IgnoreParams, Listed};
use crate::crawl::{LinkGraph, SitemapUse};
use crate::extract::Wants;
use crate::fetch::{HostAddresses, KeepCookies, OwnHost, Resolver, Rotation};
use crate::schedule::Order;
use crate::scope::{Rule, ScopeKind};

mod agreed;
mod budget;
mod check;
mod compose;
mod contact;
mod headers;
mod hosts;
mod keys;
mod layers;
mod problem;
mod proxies;
mod secret;
mod sessions;
mod setting;

pub use agreed::{AgreementError, Difference, judge};
pub use budget::PerHost;
pub use contact::{Advice, SeedSites, advise};
pub use headers::Headers;
pub use hosts::{HostEntry, HostList};
pub use keys::{KEYS, Key};
pub use layers::{FILE_NAME, FlagValue, Layers, Loaded, Origin};
pub use problem::{Problem, Problems, nearest};
pub use proxies::{NamedProxy, ProxyList, Surroundings};
pub use secret::{Secret, Variables};
pub use sessions::Sessions;
pub use setting::Setting;

/// `config/default.toml`: every key with its default, its unit and a comment.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// Every setting of a process.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Who we say we are.
    pub identity: Identity,
    /// What belongs to the crawl, and when it ends.
    pub crawl: Crawl,
    /// Which URLs are one page.
    pub canon: Canon,
    /// Which links of a page are read.
    pub extract: Wants,
    /// What else belongs to it, and what does not.
    pub scope: ScopeChoice,
    /// How much of it is fetched, over all machines.
    pub budget: Budget,
    /// How gently.
    pub politeness: Politeness,
    /// How one resource is got.
    pub fetch: Fetch,
    /// What holds for some hosts only.
    pub hosts: Vec<HostEntry>,
    /// Proxies by their labels.
    pub proxies: Vec<NamedProxy>,
    /// What happens after a failure.
    pub retry: Retry,
    /// Leases and heartbeats.
    pub frontier: Frontier,
    /// Sitemaps.
    pub sitemap: Sitemap,
    /// Endless URL spaces.
    pub traps: Traps,
    /// How a process leaves.
    pub shutdown: Shutdown,
    /// Where the rows are.
    pub database: Database,
    /// What is said on stderr.
    pub log: Log,
}

/// Who we say we are: to servers, and in robots.txt.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The whole `User-Agent` header; `None` makes it of version and contact, see [`Identity::user_agent`].
    pub user_agent: Option<String>,
    /// The product token looked for in robots.txt (RFC 9309 §2.2.1).
    pub robots_token: String,
    /// A URL or mail address under which the crawl's operator can be reached.
    pub contact: Option<String>,
}

/// What belongs to the crawl, and when it ends.
#[derive(Debug, Clone)]
pub struct Crawl {
    /// Which URLs belong to it.
    pub scope: ScopeKind,
    /// Hops from a seed.
    pub max_depth: u16,
    /// Visits after which this process ends.
    pub max_pages: Option<u64>,
    /// Time after which this process ends.
    pub max_duration: Option<Duration>,
    /// Redirects in a row that are followed, each a task of its own.
    pub max_hops: u16,
    /// In which order the tasks of a host are visited.
    pub order: Order,
    /// Whether robots.txt is asked for and obeyed.
    pub obey_robots: bool,
    /// Whether the decoded text of pages is kept.
    pub store_bodies: bool,
    /// Whether pages have a fingerprint of their text.
    pub simhash: bool,
    /// Which links are kept in table `links`.
    pub links: LinkGraph,
    /// Whether the links of a page that repeats another one are not followed.
    pub skip_duplicate_links: bool,
}

/// Which URLs are one page, beside what always holds.
#[derive(Debug, Clone, Default)]
pub struct Canon {
    /// Whether session ids make no other page.
    pub strip_session_ids: Listed,
    /// Whether tracking parameters make no other page.
    pub strip_tracking: Listed,
    /// Parameters that make no other page, by hosts.
    pub ignore_params: Vec<IgnoreParams>,
}

/// What belongs to the crawl beside what [`Crawl::scope`] says.
#[derive(Debug, Clone, Default)]
pub struct ScopeChoice {
    /// The operator's rules, in order: the last that has an opinion of a URL decides.
    pub rules: Vec<Rule>,
    /// Links in a row that may lead outside.
    pub extra_hops: u16,
    /// Whether each link that is left out becomes a row.
    pub keep_excluded: bool,
    /// Files of what must not be visited.
    pub block_lists: Vec<PathBuf>,
}

/// How much is fetched, over all machines and since the crawl began.
#[derive(Debug, Clone, Default)]
pub struct Budget {
    /// Visits of the whole crawl.
    pub pages: Option<u64>,
    /// Payload bytes of the whole crawl, as received.
    pub bytes: Option<ByteSize>,
    /// Time since the crawl began.
    pub duration: Option<Duration>,
    /// Pages of each host.
    pub pages_per_host: PerHost,
    /// URLs of each host that become tasks.
    pub urls_per_host: PerHost,
}

/// How gently.
#[derive(Debug, Clone)]
pub struct Politeness {
    /// From the end of a fetch to the start of the next one of the same host.
    pub delay: Duration,
    /// The same of one address, whatever the hosts; zero keeps none.
    pub ip_delay: Duration,
    /// In flight per host, where the delay is zero.
    pub per_host: u32,
    /// Requests a second of the whole crawl, over all machines.
    pub rate: Option<f64>,
    /// In flight in all.
    pub concurrency: usize,
}

/// How one resource is got.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// Until the connection stands.
    pub connect_timeout: Duration,
    /// Between two pieces of an answer.
    pub idle_timeout: Duration,
    /// For a fetch in all.
    pub total_timeout: Duration,
    /// After decompression; the rest is cut off.
    pub max_body: ByteSize,
    /// Which proxies take turns; `None` of them: all of [`Config::proxies`], else those of the environment.
    pub proxy: ProxyList,
    /// How.
    pub proxy_rotation: Rotation,
    /// Rests of a proxy after its first, second, … failure in a row.
    pub proxy_rests: Vec<Duration>,
    /// Whether private addresses that no seed names may be asked.
    pub allow_private: bool,
    /// Hosts and networks of the operator's own, which may be asked at such addresses.
    pub allow_hosts: Vec<OwnHost>,
    /// Whether certificates go unchecked.
    pub insecure: bool,
    /// PEM file of authorities to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file of a certificate for servers that ask for one.
    pub client_cert: Option<PathBuf>,
    /// PEM file of its key; `None`: in the same file.
    pub client_key: Option<PathBuf>,
    /// Who looks names up.
    pub resolver: Resolver,
    /// Headers of each request, besides our own.
    pub headers: Headers,
    /// Whether hosts keep cookies with us from one visit to the next.
    pub cookies: KeepCookies,
    /// Cookies to bring along, in Netscape's form.
    pub cookie_file: Option<PathBuf>,
    /// Addresses of hosts that are not looked up.
    pub resolve: Vec<HostAddresses>,
}

/// What happens after a failure.
#[derive(Debug, Clone)]
pub struct Retry {
    /// Waits before the first, second, … retry of a page; as many retries as waits.
    pub waits: Vec<Duration>,
    /// The same where the name does not resolve or no route exists.
    pub dns_waits: Vec<Duration>,
    /// Part of a wait by which it may be longer or shorter, 0 to 1.
    pub jitter: f64,
    /// Host-level failures in a row after which the host rests.
    pub breaker_after: u16,
    /// Its first, second, … rest; after the last the host is given up.
    pub breaker_pauses: Vec<Duration>,
    /// How long a host rests whose robots.txt cannot be had.
    pub robots_wait: Duration,
    /// Such rests in a row after which the host is given up.
    pub robots_tries: u16,
}

/// Leases and heartbeats (`docs/ARCHITECTURE.md`).
#[derive(Debug, Clone)]
pub struct Frontier {
    /// How long a claim lasts.
    pub lease: Duration,
    /// Between two signs of life of a process.
    pub heartbeat: Duration,
    /// Without one for so long, a process counts as gone.
    pub dead_after: Duration,
    /// Between two looks for claims that ran out.
    pub recycle_every: Duration,
    /// Leases lost in a row after which a task has failed.
    pub max_expiries: u16,
    /// How much polite fetching of one host is claimed at a time.
    pub hold: Duration,
}

/// Sitemaps.
#[derive(Debug, Clone)]
pub struct Sitemap {
    /// Which are read.
    pub read: SitemapUse,
    /// Whether `/sitemap.xml` is asked for where robots.txt names none.
    pub guess: bool,
    /// Of one, after decompression; the rest is cut off.
    pub max_size: ByteSize,
    /// URLs of one that are read.
    pub max_urls: u32,
}

/// Endless URL spaces.
#[derive(Debug, Clone)]
pub struct Traps {
    /// Characters of a URL.
    pub max_url_length: usize,
    /// Path segments of a URL.
    pub max_segments: usize,
    /// Times that one segment may stand in a path, and one parameter with the same value in a query.
    pub max_repeats: usize,
    /// Parameters of a query.
    pub max_parameters: usize,
    /// Times that escapes may be escaped again.
    pub max_nesting: usize,
    /// Years that a date in a URL may lie ahead.
    pub max_years_ahead: u16,
    /// Pages of a shape of URLs before it is judged; 0: none is.
    pub shape_pages: usize,
    /// Part of different pages at or below which a shape brings nothing new.
    pub shape_share: f64,
}

/// How a process leaves.
#[derive(Debug, Clone)]
pub struct Shutdown {
    /// After the first Ctrl-C, for what is in flight.
    pub grace: Duration,
}

/// Where the rows are.
#[derive(Debug, Clone)]
pub struct Database {
    /// A server of yours; `None` uses the embedded one.
    pub url: Option<SecretString>,
    /// The server's own address, where `url` is that of a pooler in transaction mode.
    pub direct_url: Option<SecretString>,
    /// Folder of the embedded server; `None` picks one of the system's.
    pub data_dir: Option<PathBuf>,
    /// Folder of `initdb` and `pg_ctl`; `None` looks for one.
    pub bin_dir: Option<PathBuf>,
    /// Whether the embedded server stays when the last process leaves.
    pub keep: bool,
    /// Of this process.
    pub max_connections: u32,
    /// The server's limit for one statement, see [`Config::statement_timeout`].
    pub statement_timeout: Duration,
    /// How long trouble with it is sat out.
    pub patience: Duration,
}

/// What is said on stderr.
#[derive(Debug, Clone)]
pub struct Log {
    /// A level, or directives like `info,pgcrawl::fetch=debug`.
    pub level: String,
    /// For people or for programs.
    pub format: LogFormat,
}

/// Form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
    Json,
}

impl Identity {
    /// Returns the `User-Agent` header: the operator's own, or `pgcrawl/<version>` with the contact if there is one.
    pub fn user_agent(&self) -> String {
        match (&self.user_agent, &self.contact) {
            (Some(own), _) => own.clone(),
            (None, Some(contact)) => format!("pgcrawl/{} (+{contact})", env!("CARGO_PKG_VERSION")),
            (None, None) => format!("pgcrawl/{}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Returns the `From` header (RFC 9110 §10.1.2: a robot ought to send one): the contact, if it is a mail address.
    pub fn from(&self) -> Option<&str> {
        let contact = self.contact.as_deref()?;
        let address = contact.strip_prefix("mailto:").unwrap_or(contact);
        (address.contains('@') && !address.contains("://")).then_some(address)
    }

    /// Says whether an operator of a crawled site learns whom to write to.
    pub fn is_reachable(&self) -> bool {
        let says = |text: &String| text.contains("://") || text.contains('@');
        self.contact.is_some() || self.user_agent.as_ref().is_some_and(says)
    }
}

impl Default for Identity {
    fn default() -> Self {
        Identity {
            user_agent: None,
            robots_token: "pgcrawl".into(),
            contact: None,
        }
    }
}

impl Default for Crawl {
    fn default() -> Self {
        Crawl {
            scope: ScopeKind::Host,
            max_depth: 20,
            max_pages: None,
            max_duration: None,
            max_hops: 10,
            order: Order::BreadthFirst,
            obey_robots: true,
            store_bodies: false,
            simhash: true,
            links: LinkGraph::None,
            skip_duplicate_links: false,
        }
    }
}

impl Default for Politeness {
    fn default() -> Self {
        Politeness {
            delay: Duration::from_secs(1),
            ip_delay: Duration::ZERO,
            per_host: 1,
            rate: None,
            concurrency: 64,
        }
    }
}

impl Default for Fetch {
    fn default() -> Self {
        Fetch {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(20),
            total_timeout: Duration::from_secs(60),
            max_body: ByteSize::mib(10),
            proxy: ProxyList::default(),
            proxy_rotation: Rotation::RoundRobin,
            proxy_rests: [10, 30, 120, 600].map(Duration::from_secs).to_vec(),
            allow_private: false,
            allow_hosts: Vec::new(),
            insecure: false,
            ca_file: None,
            client_cert: None,
            client_key: None,
            resolver: Resolver::Hickory,
            headers: Headers::default(),
            cookies: KeepCookies::Off,
            cookie_file: None,
            resolve: Vec::new(),
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            waits: [30, 120, 600].map(Duration::from_secs).to_vec(),
            dns_waits: [60, 300].map(Duration::from_secs).to_vec(),
            jitter: 0.5,
            breaker_after: 5,
            breaker_pauses: [120, 600, 1800].map(Duration::from_secs).to_vec(),
            robots_wait: Duration::from_secs(300),
            robots_tries: 3,
        }
    }
}

impl Default for Frontier {
    fn default() -> Self {
        Frontier {
            lease: Duration::from_secs(120),
            heartbeat: Duration::from_secs(30),
            dead_after: Duration::from_secs(90),
            recycle_every: Duration::from_secs(15),
            max_expiries: 5,
            hold: Duration::from_secs(5),
        }
    }
}

impl Default for Sitemap {
    fn default() -> Self {
        Sitemap {
            read: SitemapUse::Auto,
            guess: false,
            max_size: ByteSize::mib(50),
            max_urls: 50_000,
        }
    }
}

impl Default for Traps {
    fn default() -> Self {
        Traps {
            max_url_length: 2048,
            max_segments: 20,
            max_repeats: 3,
            max_parameters: 30,
            max_nesting: 3,
            max_years_ahead: 5,
            shape_pages: 100,
            shape_share: 0.1,
        }
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Shutdown {
            grace: Duration::from_secs(25),
        }
    }
}

impl Default for Database {
    fn default() -> Self {
        Database {
            url: None,
            direct_url: None,
            data_dir: None,
            bin_dir: None,
            keep: false,
            max_connections: 8,
            statement_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(300),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Log {
            level: "info".into(),
            format: LogFormat::Text,
        }
    }
}
