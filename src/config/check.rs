//! Whether the values of a configuration go together.

use std::time::Duration;

use bytesize::ByteSize;
use http::header;
use humantime::format_duration as human;
use secrecy::{ExposeSecret, SecretString};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use url::Url;

use super::setting::split_label;
use super::{Config, Key, Loaded, Origin, Problem};
use crate::scope::{MOST_RULES, shape::WINDOW};

/// Requests a second. At most 20 s of requests wait in line for their turn: below one in 20 s none would ever begin.
const LOWEST_RATE: f64 = 0.05;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Collects complaints, each at the place where its key was set.
struct Complaints<'a> {
    loaded: &'a Loaded,
    found: Vec<Problem>,
}

impl Complaints<'_> {
    /// Complains about `section.name` unless it holds.
    fn unless(
        &mut self,
        holds: bool,
        key: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        debug_assert!(Key::find_path(key).is_some(), "{key}");
        if !holds {
            let origin = self.loaded.origin(key);
            let place = (*origin != Origin::Default).then(|| origin.to_string());
            let message = format!("{key}: {}", message.into());
            self.found.push(Problem {
                place,
                message,
                hint: Some(hint.into()),
            });
        }
    }
}

/// What a configuration is judged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standpoint {
    /// It is complete.
    Alone,
    /// A crawl's settings are still to be taken over: whether values go together shows afterwards.
    BeforeTheCrawl,
}

/// Returns everything that is wrong with the values, taken alone or together.
pub(super) fn check(loaded: &Loaded, standpoint: Standpoint) -> Vec<Problem> {
    let mut complaints = Complaints {
        loaded,
        found: Vec::new(),
    };
    identity(&mut complaints, &loaded.config);
    bounds(&mut complaints, &loaded.config);
    spans(&mut complaints, &loaded.config);
    if standpoint == Standpoint::Alone {
        relations(&mut complaints, &loaded.config);
    }
    addresses(&mut complaints, &loaded.config);
    complaints
        .found
        .extend(super::hosts::check(&loaded.config.hosts));
    complaints
        .found
        .extend(super::proxies::check(&loaded.config));
    complaints.found
}

fn identity(complaints: &mut Complaints<'_>, config: &Config) {
    let identity = &config.identity;
    let printable =
        |text: &str| !text.trim().is_empty() && text.chars().all(|c| matches!(c, ' '..='~'));
    complaints.unless(
        identity.user_agent.as_deref().is_none_or(printable),
        "identity.user_agent",
        "must be printable ASCII, since it becomes a header",
        "for example \"examplebot/1.0 (+https://example.org/bot)\"",
    );
    complaints.unless(
        !identity.robots_token.is_empty()
            && identity
                .robots_token
                .chars()
                .all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_')),
        "identity.robots_token",
        "must be letters, `-` and `_` (RFC 9309 §2.2.1)",
        "take the first word of the user agent, without its version",
    );
    let reachable = |text: &str| {
        printable(text)
            && (text.contains("://") || text.contains('@'))
            && !text.contains([' ', '(', ')'])
    };
    complaints.unless(
        identity.contact.as_deref().is_none_or(reachable),
        "identity.contact",
        "must be a URL or a mail address",
        "for example \"https://example.org/bot\" or \"crawler@example.org\"",
    );
}

/// What is allowed but most likely not meant.
pub(super) fn doubts(loaded: &Loaded) -> Vec<Problem> {
    let identity = &loaded.config.identity;
    let (agent, token) = (identity.user_agent(), &identity.robots_token);
    let says = agent
        .to_ascii_lowercase()
        .contains(&token.to_ascii_lowercase());
    let strange = Problem {
        place: None,
        message: format!(
            "identity.robots_token: {token} does not occur in the user agent, {agent}"
        ),
        hint: Some(
            "who reads a log looks in robots.txt for what stands there (RFC 9309 §2.2.1)".into(),
        ),
    };
    if says { Vec::new() } else { vec![strange] }
}

/// Single values outside what the rest of the program, or the database's types, can hold.
fn bounds(complaints: &mut Complaints<'_>, config: &Config) {
    let mut range = |key: &str, value: u64, from: u64, to: u64, why: &str| {
        complaints.unless(
            (from..=to).contains(&value),
            key,
            format!("must be from {from} to {to}, is {value}"),
            why,
        );
    };
    range(
        "crawl.max_depth",
        config.crawl.max_depth.into(),
        0,
        i16::MAX as u64,
        "it is a smallint in the database",
    );
    range(
        "scope.rules",
        config.scope.rules.len() as u64,
        0,
        MOST_RULES as u64,
        "each link is asked of all of them; one regex with | says much",
    );
    range(
        "scope.extra_hops",
        config.scope.extra_hops.into(),
        0,
        16,
        "each hop outside takes in what all pages of the one before link to",
    );
    range(
        "traps.max_parameters",
        config.traps.max_parameters as u64,
        1,
        10_000,
        "30 is the default",
    );
    range(
        "traps.max_nesting",
        config.traps.max_nesting as u64,
        1,
        10_000,
        "3 is the default",
    );
    range(
        "traps.max_years_ahead",
        config.traps.max_years_ahead.into(),
        0,
        10_000,
        "5 is the default",
    );
    range(
        "traps.shape_pages",
        config.traps.shape_pages as u64,
        0,
        WINDOW as u64,
        "so many pages of a shape are looked back on; 0 judges none",
    );
    range(
        "politeness.concurrency",
        config.politeness.concurrency as u64,
        1,
        10_000,
        "each costs a socket; see `ulimit -n`",
    );
    range(
        "politeness.per_host",
        config.politeness.per_host.into(),
        1,
        1_000,
        "1 is what a stranger's server expects",
    );
    range(
        "retry.breaker_after",
        config.retry.breaker_after.into(),
        1,
        1_000,
        "5 is the default",
    );
    range(
        "frontier.max_expiries",
        config.frontier.max_expiries.into(),
        1,
        1_000,
        "5 is the default",
    );
    range(
        "sitemap.max_urls",
        config.sitemap.max_urls.into(),
        1,
        10_000_000,
        "50000 is what sitemaps.org allows",
    );
    range(
        "sitemap.max_size",
        config.sitemap.max_size.as_u64(),
        1 << 10,
        1 << 40,
        "\"50MiB\" is what sitemaps.org allows",
    );
    range(
        "traps.max_url_length",
        config.traps.max_url_length as u64,
        64,
        65_536,
        "2048 is the default",
    );
    range(
        "traps.max_segments",
        config.traps.max_segments as u64,
        1,
        10_000,
        "20 is the default",
    );
    range(
        "traps.max_repeats",
        config.traps.max_repeats as u64,
        1,
        10_000,
        "3 is the default",
    );
    range(
        "database.max_connections",
        config.database.max_connections.into(),
        2,
        1_000,
        "8 is the default; a heartbeat needs one of its own",
    );
    complaints.unless(
        config.crawl.max_pages != Some(0),
        "crawl.max_pages",
        "must be at least 1",
        "\"none\" is no limit",
    );
    complaints.unless(
        config
            .politeness
            .rate
            .is_none_or(|rate| (LOWEST_RATE..=100_000.0).contains(&rate)),
        "politeness.rate",
        format!("must be from {LOWEST_RATE} to 100000 requests a second"),
        "for less ask each host more slowly with politeness.delay; \"none\" is no limit",
    );
    complaints.unless(
        (0.0..=1.0).contains(&config.retry.jitter),
        "retry.jitter",
        "must be from 0 to 1: the part of a wait by which it may be longer or shorter",
        "0.5 is the default",
    );
    complaints.unless(
        (0.0..=1.0).contains(&config.traps.shape_share),
        "traps.shape_share",
        "must be from 0 to 1: the part of different pages among those of a shape",
        "0.1 is the default",
    );
    complaints.unless(
        (ByteSize::kib(1)..=ByteSize::mib(512)).contains(&config.fetch.max_body),
        "fetch.max_body",
        format!(
            "must be from 1 KiB to 512 MiB, is {}",
            config.fetch.max_body
        ),
        "as many bodies as politeness.concurrency are held in memory at once",
    );
}

/// Spans that are too short or too long by themselves.
fn spans(complaints: &mut Complaints<'_>, config: &Config) {
    const HOUR: Duration = Duration::from_secs(3600);
    let (fetch, frontier) = (&config.fetch, &config.frontier);
    let mut positive = |key: &str, value: Duration, most: Duration| {
        complaints.unless(
            !value.is_zero() && value <= most,
            key,
            format!(
                "must be above zero and at most {}, is {}",
                human(most),
                human(value)
            ),
            "write a duration with its unit, like \"30s\"",
        );
    };
    positive("fetch.connect_timeout", fetch.connect_timeout, HOUR);
    positive("fetch.idle_timeout", fetch.idle_timeout, HOUR);
    positive("fetch.total_timeout", fetch.total_timeout, HOUR);
    positive("frontier.lease", frontier.lease, 24 * HOUR);
    positive("frontier.heartbeat", frontier.heartbeat, HOUR);
    positive("frontier.dead_after", frontier.dead_after, HOUR);
    positive("frontier.recycle_every", frontier.recycle_every, HOUR);
    positive("frontier.hold", frontier.hold, HOUR);
    positive(
        "database.statement_timeout",
        config.database.statement_timeout,
        HOUR,
    );
    complaints.unless(
        config.politeness.delay <= 24 * HOUR,
        "politeness.delay",
        format!(
            "must be at most a day, is {}",
            human(config.politeness.delay)
        ),
        "a host can have a delay of its own in hosts.delay_ms",
    );
    complaints.unless(
        config.politeness.ip_delay <= Duration::from_secs(60),
        "politeness.ip_delay",
        format!(
            "must be at most 1m, is {}",
            human(config.politeness.ip_delay)
        ),
        "each host has its own politeness.delay as well",
    );
}

/// Spans that must outlast one another, and what only goes without a delay.
fn relations(complaints: &mut Complaints<'_>, config: &Config) {
    let (fetch, frontier) = (&config.fetch, &config.frontier);
    let mut at_most = |key: &str, value: Duration, limit: Duration, what: &str, hint: &str| {
        complaints.unless(
            value <= limit,
            key,
            format!(
                "must be at most {what} ({}), is {}",
                human(limit),
                human(value)
            ),
            hint,
        );
    };
    at_most(
        "fetch.connect_timeout",
        fetch.connect_timeout,
        fetch.total_timeout,
        "fetch.total_timeout",
        "it is a part of it",
    );
    at_most(
        "fetch.idle_timeout",
        fetch.idle_timeout,
        fetch.total_timeout,
        "fetch.total_timeout",
        "it is a part of it",
    );
    at_most(
        "frontier.hold",
        frontier.hold,
        frontier.lease / 2,
        "half of frontier.lease",
        "slow answers must find room in the lease",
    );
    at_most(
        "shutdown.grace",
        config.shutdown.grace,
        frontier.lease,
        "frontier.lease",
        "what is fetched after it is lost anyway",
    );

    complaints.unless(
        frontier.lease >= fetch.total_timeout.saturating_mul(2),
        "frontier.lease",
        format!(
            "must be at least twice fetch.total_timeout ({}), is {}",
            human(fetch.total_timeout),
            human(frontier.lease)
        ),
        "a claim must outlast its slowest fetch: raise the lease or lower the timeout",
    );
    complaints.unless(
        frontier.dead_after.saturating_mul(4) >= fetch.total_timeout.saturating_mul(5),
        "frontier.dead_after",
        format!(
            "must be at least 1.25 times fetch.total_timeout ({}), is {}",
            human(fetch.total_timeout),
            human(frontier.dead_after)
        ),
        "a fetch begins only if its longest fits into what is left of dead_after: raise it or lower the timeout",
    );
    let is_chosen = *complaints.loaded.origin("database.statement_timeout") != Origin::Default;
    complaints.unless(
        !is_chosen || config.database.statement_timeout == config.statement_timeout(),
        "database.statement_timeout",
        format!(
            "must be at most a quarter of frontier.lease ({}), is {}",
            human(frontier.lease / 4),
            human(config.database.statement_timeout)
        ),
        "a claim must not be old when it is answered: lower it or raise the lease",
    );
    complaints.unless(
        frontier.heartbeat.saturating_mul(2) <= frontier.dead_after,
        "frontier.dead_after",
        format!(
            "must be at least twice frontier.heartbeat ({}), is {}",
            human(frontier.heartbeat),
            human(frontier.dead_after)
        ),
        "one late heartbeat must not make a living process count as gone",
    );
    complaints.unless(
        config.politeness.per_host == 1 || config.politeness.delay.is_zero(),
        "politeness.per_host",
        format!(
            "must be 1 while politeness.delay is {}",
            human(config.politeness.delay)
        ),
        "for servers of your own set the delay to \"0s\"",
    );
}

/// URLs and directives that would only fail much later.
fn addresses(complaints: &mut Complaints<'_>, config: &Config) {
    let has = |name| config.fetch.headers.has(&name);
    complaints.unless(
        !has(header::AUTHORIZATION) && !has(header::COOKIE),
        "fetch.headers",
        "a login or a cookie would be told to every host",
        "set it for its host in [[hosts]], or bring cookies along with fetch.cookie_file",
    );
    complaints.unless(
        has_scheme(config.database.url.as_ref(), &["postgres", "postgresql"]),
        "database.url",
        "must be a postgres:// URL",
        "for example postgres://user@host/database; leave it out for the embedded server",
    );
    complaints.unless(
        has_scheme(
            config.database.direct_url.as_ref(),
            &["postgres", "postgresql"],
        ),
        "database.direct_url",
        "must be a postgres:// URL",
        "for example postgres://user@host/database, the server's own address",
    );
    complaints.unless(
        config.database.direct_url.is_none() || config.database.url.is_some(),
        "database.direct_url",
        "is set, and database.url is not",
        "database.url is then the pooler's address; without a pooler set only database.url",
    );
    if let Some((message, hint)) = super::proxies::check_choice(config) {
        complaints.unless(false, "fetch.proxy", message, hint);
    }
    complaints.unless(
        !config.fetch.proxy_rests.is_empty()
            && config.fetch.proxy_rests.iter().all(|rest| *rest <= DAY),
        "fetch.proxy_rests",
        "must be a list of at least one duration, none of them above a day",
        "for example [\"10s\", \"1m\"]",
    );
    complaints.unless(
        config.fetch.client_key.is_none() || config.fetch.client_cert.is_some(),
        "fetch.client_key",
        "is set, and fetch.client_cert is not",
        "a key is of no use without its certificate",
    );
    complaints.unless(
        is_filter(&config.log.level),
        "log.level",
        format!(
            "\"{}\" is neither a level nor a list of directives",
            config.log.level
        ),
        "error, warn, info, debug, trace, or for example \"info,pgcrawl::fetch=debug\"",
    );
}

/// Says whether a text is a level or a list of directives. A filter takes an unknown word for a module's name.
fn is_filter(text: &str) -> bool {
    match text.contains(['=', ',', ':']) {
        true => EnvFilter::builder().parse(text).is_ok(),
        false => !text.is_empty() && text.parse::<LevelFilter>().is_ok(),
    }
}

fn has_scheme(secret: Option<&SecretString>, schemes: &[&str]) -> bool {
    let known = |url: Url| schemes.contains(&url.scheme());
    secret.is_none_or(|secret| Url::parse(split_label(secret.expose_secret()).1).is_ok_and(known))
}
