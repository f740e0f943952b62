//! The list of keys.

use toml::Value;
use toml::de::DeValue;

use super::{Config, Setting};

/// One key: `section.name`.
#[derive(Debug)]
pub struct Key {
    /// The table of the file.
    pub section: &'static str,
    /// The key in it.
    pub name: &'static str,
    /// Whether all machines of a crawl must have the same value.
    pub shared: bool,
    read: fn(&mut Config, &DeValue<'_>) -> Result<(), String>,
    read_text: fn(&mut Config, &str) -> Result<(), String>,
    write: fn(&Config) -> Value,
}

macro_rules! keys {
    ($($reach:ident $section:ident . $name:ident)*) => {
        &[$(Key {
            section: stringify!($section),
            name: stringify!($name),
            shared: keys!(@ $reach),
            read: |config, value| Setting::read(value).map(|value| config.$section.$name = value),
            read_text: |config, text| Setting::read_text(text).map(|value| config.$section.$name = value),
            write: |config| config.$section.$name.write(),
        }),*]
    };
    (@ shared) => { true };
    (@ machine) => { false };
}

/// Every key, in the order of `config/default.toml`.
pub const KEYS: &[Key] = keys! {
    shared  identity.user_agent
    shared  identity.robots_token
    shared  identity.contact
    shared  crawl.scope
    shared  crawl.max_depth
    machine crawl.max_pages
    machine crawl.max_duration
    shared  crawl.max_hops
    shared  crawl.order
    shared  crawl.obey_robots
    shared  crawl.store_bodies
    shared  crawl.simhash
    shared  crawl.links
    shared  crawl.skip_duplicate_links
    shared  canon.strip_session_ids
    shared  canon.strip_tracking
    shared  canon.ignore_params
    shared  extract.assets
    shared  extract.forms
    shared  extract.text_links
    shared  extract.noscript
    shared  extract.templates
    shared  scope.rules
    shared  scope.extra_hops
    shared  scope.keep_excluded
    machine scope.block_lists
    shared  budget.pages
    shared  budget.bytes
    shared  budget.duration
    shared  budget.pages_per_host
    shared  budget.urls_per_host
    shared  politeness.delay
    shared  politeness.ip_delay
    machine politeness.per_host
    shared  politeness.rate
    machine politeness.concurrency
    machine fetch.connect_timeout
    machine fetch.idle_timeout
    shared  fetch.total_timeout
    shared  fetch.max_body
    machine fetch.proxy
    machine fetch.proxy_rotation
    machine fetch.proxy_rests
    shared  fetch.allow_private
    shared  fetch.allow_hosts
    machine fetch.insecure
    machine fetch.ca_file
    machine fetch.client_cert
    machine fetch.client_key
    machine fetch.resolver
    machine fetch.headers
    machine fetch.cookies
    machine fetch.cookie_file
    machine fetch.resolve
    shared  retry.waits
    shared  retry.dns_waits
    shared  retry.jitter
    shared  retry.breaker_after
    shared  retry.breaker_pauses
    shared  retry.robots_wait
    shared  retry.robots_tries
    shared  frontier.lease
    machine frontier.heartbeat
    shared  frontier.dead_after
    machine frontier.recycle_every
    shared  frontier.max_expiries
    shared  frontier.hold
    shared  sitemap.read
    shared  sitemap.guess
    shared  sitemap.max_size
    shared  sitemap.max_urls
    shared  traps.max_url_length
    shared  traps.max_segments
    shared  traps.max_repeats
    shared  traps.max_parameters
    shared  traps.max_nesting
    shared  traps.max_years_ahead
    shared  traps.shape_pages
    shared  traps.shape_share
    machine shutdown.grace
    machine database.url
    machine database.direct_url
    machine database.data_dir
    machine database.bin_dir
    machine database.keep
    machine database.max_connections
    machine database.statement_timeout
    machine database.patience
    machine log.level
    machine log.format
};

impl Key {
    /// Returns the key called `section.name`.
    pub fn find(section: &str, name: &str) -> Option<&'static Key> {
        KEYS.iter()
            .find(|key| key.section == section && key.name == name)
    }

    /// Returns the key called by its path, `section.name`.
    pub fn find_path(path: &str) -> Option<&'static Key> {
        path.split_once('.')
            .and_then(|(section, name)| Key::find(section, name))
    }

    /// Returns `section.name`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// Returns the variable of the environment that sets it: `PGCRAWL_SECTION_NAME`.
    pub fn variable(&self) -> String {
        format!("PGCRAWL_{}_{}", self.section, self.name).to_ascii_uppercase()
    }

    /// Returns its value as TOML; secrets are redacted.
    pub fn show(&self, config: &Config) -> Value {
        (self.write)(config)
    }

    pub(super) fn set(&self, config: &mut Config, value: &DeValue<'_>) -> Result<(), String> {
        (self.read)(config, value)
    }

    pub(super) fn set_text(&self, config: &mut Config, text: &str) -> Result<(), String> {
        (self.read_text)(config, text)
    }
}
