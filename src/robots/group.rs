//! What of a robots.txt concerns one product token: its groups (RFC 9309 §2.2.1), or those for all.

use std::time::Duration;

use url::Url;

use super::file::{Key, Record, records};

/// The records that count for a token.
#[derive(Debug, Default)]
pub(super) struct Group<'a> {
    /// Allow and Disallow lines.
    pub(super) rules: Vec<Record<'a>>,
    /// Content-Usage lines.
    pub(super) usage: Vec<Record<'a>>,
    /// The longest Crawl-delay that is named.
    pub(super) delay: Option<Duration>,
}

/// Whom an agent line names.
enum Agent<'a> {
    Any,
    Token(&'a [u8]),
}

impl<'a> Group<'a> {
    /// Gathers the groups of a token, merged; where none names it, those of `*`.
    ///
    /// An agent line after a rule begins a group. No other record ends one (RFC 9309 §2.2.4): an agent line right after
    /// a Crawl-delay adds to the group, as in Google's parser and in crawler-commons.
    pub(super) fn of(text: &'a [u8], token: &str) -> Group<'a> {
        let token = product(token.as_bytes());
        let (mut ours, mut general) = (Group::default(), Group::default());
        let (mut is_named, mut in_agents) = (false, false);
        let (mut for_us, mut for_all) = (false, false);
        for record in records(text) {
            match record.key {
                Key::UserAgent => {
                    if !std::mem::replace(&mut in_agents, true) {
                        (for_us, for_all) = (false, false);
                    }
                    match agent(record.value) {
                        Agent::Any => for_all = true,
                        Agent::Token(name) => {
                            for_us |= !name.is_empty() && name.eq_ignore_ascii_case(token);
                        }
                    }
                    is_named |= for_us;
                }
                key => {
                    in_agents &= !matches!(key, Key::Allow | Key::Disallow);
                    if for_us {
                        ours.take(record);
                    }
                    if for_all {
                        general.take(record);
                    }
                }
            }
        }
        if is_named { ours } else { general }
    }

    fn take(&mut self, record: Record<'a>) {
        match record.key {
            Key::Allow | Key::Disallow => self.rules.push(record),
            Key::ContentUsage => self.usage.push(record),
            Key::CrawlDelay => self.delay = self.delay.max(delay(record.value)),
            Key::Sitemap | Key::UserAgent => {}
        }
    }
}

/// The absolute URLs of all Sitemap lines: they belong to no group.
pub(super) fn sitemaps(text: &[u8]) -> Vec<String> {
    records(text)
        .filter(|record| record.key == Key::Sitemap)
        .filter_map(|record| Url::parse(std::str::from_utf8(record.value).ok()?).ok())
        .map(String::from)
        .collect()
}

fn agent(value: &[u8]) -> Agent<'_> {
    match value {
        [b'*'] => Agent::Any,
        [b'*', next, ..] if next.is_ascii_whitespace() => Agent::Any,
        _ => Agent::Token(product(value)),
    }
}

/// The product token of `ourbot/1.0 (comment)`. Digits and full stops are no part of one in RFC 9309, yet of names in
/// use: `ourbot2` is somebody else.
fn product(agent: &[u8]) -> &[u8] {
    let agent = agent.trim_ascii();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let end = agent.iter().position(|byte| !is_part(byte));
    &agent[..end.unwrap_or(agent.len())]
}

/// Seconds, with a fraction or without; what follows the number (a unit, a remark) is passed over. More than a
/// [`Duration`] holds is the longest one.
fn delay(value: &[u8]) -> Option<Duration> {
    let is_part = |byte: &&u8| byte.is_ascii_digit() || matches!(**byte, b'.' | b',');
    let number: String = value
        .iter()
        .take_while(is_part)
        .map(|byte| char::from(*byte).to_string().replace(',', "."))
        .collect();
    let seconds: f64 = number.trim_end_matches('.').parse().ok()?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
