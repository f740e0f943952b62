//! Changes of hosts: `park`, `unpark`, `set-delay`, and the classes of `reprioritise --host`.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{Common, Desk, hinted};
use crate::cli::{Exit, output};
use crate::frontier::HostId;
use crate::frontier::operate::{Class, KnownHost};

/// The longest delay of a host, as of a crawl.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 3600);

/// Flags of `park`.
#[derive(Debug, Args)]
pub struct ParkArgs {
    /// `https://example.org:8443`, a URL, or example.org for all its schemes and ports
    #[arg(value_name = "HOST")]
    host: String,

    /// Why, for host_progress
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "parked by an operator",
        hide_default_value = true
    )]
    note: String,

    #[command(flatten)]
    pub(super) common: Common,
}

/// Flags of `unpark`.
#[derive(Debug, Args)]
pub struct UnparkArgs {
    /// `https://example.org:8443`, a URL, or example.org for all its schemes and ports
    #[arg(value_name = "HOST")]
    host: String,

    #[command(flatten)]
    pub(super) common: Common,
}

/// Flags of `set-delay`.
#[derive(Debug, Args)]
pub struct SetDelayArgs {
    /// `https://example.org:8443`, a URL, or example.org for all its schemes and ports
    #[arg(value_name = "HOST")]
    host: String,

    /// From the end of a fetch to the start of the next; none: the crawl's again
    ///
    /// A duration like 500ms or 5s, a day at most. It is used instead of the crawl's delay and of the Crawl-delay of robots.txt, from the next claim
    /// on: within seconds; after a lease (2 min) where there was no delay before.
    #[arg(value_name = "DELAY", value_parser = delay)]
    delay: OwnDelay,

    #[command(flatten)]
    pub(super) common: Common,
}

/// A delay of its own, or none. A type, since clap takes an `Option` for an argument that may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OwnDelay(Option<Duration>);

fn delay(text: &str) -> Result<OwnDelay, String> {
    if text == "none" {
        return Ok(OwnDelay(None));
    }
    let delay = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; it is a duration like 5s, or none"))?;
    if delay > LONGEST_DELAY {
        return Err("a day is the longest; `pgcrawl park` asks nothing".to_owned());
    }
    Ok(OwnDelay(Some(delay)))
}

impl ParkArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        let hosts = find(desk, &self.host).await?;
        let changed = match desk.common.dry_run {
            true => those(&hosts, |host| !host.is_parked),
            false => desk
                .operator
                .park(&hosts, &self.note)
                .await
                .map_err(hinted)?,
        };
        let (done, same) = match desk.common.dry_run {
            true => ("would be parked", "is parked already"),
            false => ("is parked", "was parked already"),
        };
        tell(desk, &hosts, &changed, |_| done.to_owned(), same)?;
        if !changed.is_empty() && !desk.common.dry_run {
            let (host, crawl) = (&self.host, desk.crawl());
            desk.say(format_args!(
                "what is in flight is finished; `pgcrawl unpark {host}{crawl}` goes on"
            ));
        }
        Ok(Exit::Finished)
    }
}

impl UnparkArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        let hosts = find(desk, &self.host).await?;
        let changed = match desk.common.dry_run {
            true => those(&hosts, |host| host.is_parked),
            false => desk.operator.unpark(&hosts).await.map_err(hinted)?,
        };
        let (done, same) = match desk.common.dry_run {
            true => ("would go on", "is not parked"),
            false => ("goes on", "was not parked"),
        };
        tell(desk, &hosts, &changed, |_| done.to_owned(), same)?;
        if hosts.iter().any(|host| host.is_given_up) {
            desk.say("a host that was given up is reopened by `pgcrawl retry`");
        }
        Ok(Exit::Finished)
    }
}

impl SetDelayArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        let hosts = find(desk, &self.host).await?;
        let wanted = self.delay.0;
        let changed: Vec<KnownHost> = hosts
            .iter()
            .filter(|host| host.delay != wanted)
            .cloned()
            .collect();
        if !desk.common.dry_run {
            desk.operator
                .set_delay(&changed, wanted)
                .await
                .map_err(hinted)?;
        }
        let would = if desk.common.dry_run {
            "would wait"
        } else {
            "waits"
        };
        let done = |host: &KnownHost| {
            let before = host
                .delay
                .map_or_else(|| "the crawl's delay".to_owned(), human);
            match wanted {
                Some(delay) => format!(
                    "{would} {} between two fetches (before: {before})",
                    human(delay)
                ),
                None => format!("{would} as the crawl and its robots.txt say (before: {before})"),
            }
        };
        let ids: Vec<HostId> = changed.iter().map(|host| host.id).collect();
        tell(desk, &hosts, &ids, done, "has that delay already")?;
        for host in &changed {
            if let (Some(asked), Some(wanted)) = (host.crawl_delay, wanted)
                && wanted < asked
            {
                let words = format!(
                    "the robots.txt of {} asks for {}",
                    host.authority,
                    human(asked)
                );
                output::warn(&words, None);
            }
        }
        Ok(Exit::Finished)
    }
}

/// Puts a host into a class.
pub(super) async fn reprioritise(desk: &Desk, host: &str, class: Class) -> anyhow::Result<Exit> {
    let hosts = find(desk, host).await?;
    let changed = match desk.common.dry_run {
        true => those(&hosts, |host| host.class != class),
        false => desk
            .operator
            .reprioritise_hosts(&hosts, class)
            .await
            .map_err(hinted)?,
    };
    let would = if desk.common.dry_run {
        "would be"
    } else {
        "is"
    };
    let done = |host: &KnownHost| format!("{would} of class {class} (before: {})", host.class);
    tell(desk, &hosts, &changed, done, "is in that class already")?;
    Ok(Exit::Finished)
}

async fn find(desk: &Desk, host: &str) -> anyhow::Result<Vec<KnownHost>> {
    desk.operator.find_hosts(host).await.map_err(hinted)
}

fn those(hosts: &[KnownHost], chosen: impl Fn(&KnownHost) -> bool) -> Vec<HostId> {
    hosts
        .iter()
        .filter(|host| chosen(host))
        .map(|host| host.id)
        .collect()
}

/// A line a host, or one JSON object.
fn tell(
    desk: &Desk,
    hosts: &[KnownHost],
    changed: &[HostId],
    done: impl Fn(&KnownHost) -> String,
    same: &str,
) -> anyhow::Result<()> {
    if desk.common.json {
        let hosts: Vec<_> = hosts
            .iter()
            .map(|host| json!({ "host": host.authority, "changed": changed.contains(&host.id) }))
            .collect();
        output::line(json!({ "hosts": hosts, "dry_run": desk.common.dry_run }))?;
        return Ok(());
    }
    for host in hosts {
        match changed.contains(&host.id) {
            true => output::line(format_args!("{} {}", host.authority, done(host)))?,
            false => output::line(format_args!("{} {same}", host.authority))?,
        }
    }
    Ok(())
}

fn human(delay: Duration) -> String {
    humantime::format_duration(delay).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_a_duration_of_at_most_a_day_or_none() {
        assert_eq!(delay("none"), Ok(OwnDelay(None)));
        assert_eq!(
            delay("1500ms"),
            Ok(OwnDelay(Some(Duration::from_millis(1500))))
        );
        assert!(delay("5").is_err());
        assert!(delay("25h").is_err());
    }
}
