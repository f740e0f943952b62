//! The last words of a crawl: what it came to, what stood out, what to type next, and its exit code.

use std::time::Duration;

use bytesize::ByteSize;
use sqlx::PgPool;

use super::super::{Exit, output};
use super::run;
use crate::crawl::{End, Summary, Tally};
use crate::frontier::Ending;
use crate::status::Status;

/// Hosts that are named at most, of each kind.
const NAMED: usize = 3;

/// How a run becomes a code.
pub(super) fn exit(summary: &Summary) -> Exit {
    match (summary.end, &summary.ending) {
        (End::Limit, _) => Exit::LimitReached,
        (End::Interrupted | End::Resettled, _) => Exit::Interrupted,
        (End::Finished, Some(ending)) => exit_of(ending),
        (End::Finished, None) => Exit::Finished,
    }
}

/// What a crawl without anything open came to.
pub(super) fn exit_of(ending: &Ending) -> Exit {
    if !ending.any_page && ending.any_robots && !ending.any_failed {
        Exit::RobotsBlocked
    } else if !ending.any_page {
        Exit::SeedsFailed
    } else if !ending.parked.is_empty() || ending.given_up_total > 0 {
        Exit::HostsLeft
    } else {
        Exit::Finished
    }
}

/// Tells how it went, on standard error.
pub(super) async fn say(pool: &PgPool, tally: &Tally, summary: &Summary, crawl: Option<&str>) {
    let counts = &summary.counts;
    let seconds = summary.took.as_secs_f64().max(0.001);
    #[allow(clippy::cast_precision_loss, reason = "a rate for the eye")]
    let rate = counts.done as f64 / seconds;
    output::say(format_args!(
        "{} in {}: {} pages ({rate:.1}/s, {}), {} failed, {} to be tried again, {} excluded",
        match summary.end {
            End::Finished => "finished",
            End::Limit => "limit reached",
            End::Interrupted | End::Resettled => "interrupted",
        },
        humantime::format_duration(round(summary.took)),
        counts.done,
        ByteSize::b(counts.bytes),
        counts.failed,
        counts.retried,
        counts.excluded,
    ));
    if counts.refused > 0 {
        output::say(format_args!(
            "{} visits lost their lease and are made again",
            counts.refused
        ));
    }
    hosts(tally);
    if let Some(ending) = &summary.ending {
        left(ending);
    }
    if let Some(status) = run::figures(pool).await {
        output::say(format_args!(
            "the crawl holds {} tasks: {} done, {} new, {} failed, {} excluded",
            status.tasks,
            status.done,
            status.new + status.claimed,
            status.failed,
            status.excluded
        ));
        next(&status, summary.end, crawl);
    }
}

fn hosts(tally: &Tally) {
    let slow = tally.top_hosts(NAMED, |host| {
        (host.answers > 0).then(|| host.time.as_secs_f64() / f64_of(host.answers))
    });
    if slow.len() > 1 {
        let named: Vec<String> = slow
            .iter()
            .map(|(host, tally)| {
                let mean = tally.time.as_secs_f64() / f64_of(tally.answers);
                format!("{host} ({:.0} ms a page)", mean * 1e3)
            })
            .collect();
        output::say(format_args!("slowest hosts: {}", named.join(", ")));
    }
    let failing = tally.top_hosts(NAMED, |host| {
        (host.failures > 0).then_some(f64_of(host.failures))
    });
    if !failing.is_empty() {
        let named: Vec<String> = failing
            .iter()
            .map(|(host, tally)| format!("{host} ({} times)", tally.failures))
            .collect();
        output::say(format_args!(
            "hosts without an answer: {}",
            named.join(", ")
        ));
    }
}

/// Names the hosts that were left.
pub(super) fn left(ending: &Ending) {
    for host in &ending.parked {
        output::say(format_args!("parked by an operator: {host}"));
    }
    for (host, note) in ending.given_up.iter().take(10) {
        output::say(format_args!("given up: {host}: {note}"));
    }
    if ending.given_up_total > 10 {
        output::say(format_args!(
            "… and {} more hosts were given up",
            ending.given_up_total - 10
        ));
    }
}

fn next(status: &Status, end: End, crawl: Option<&str>) {
    let name = crawl.map_or(String::new(), |name| format!(" --crawl {name}"));
    output::say("next:");
    if end != End::Finished {
        output::say(format_args!("  pgcrawl crawl{name}    # goes on"));
    }
    output::say(format_args!(
        "  pgcrawl sql{name} \"select * from recent_pages\""
    ));
    if status.failed > 0 {
        output::say(format_args!(
            "  pgcrawl sql{name} \"select * from failures\""
        ));
    }
}

/// Whole milliseconds below a minute, whole seconds above.
fn round(span: Duration) -> Duration {
    if span < Duration::from_secs(60) {
        Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    } else {
        Duration::from_secs(span.as_secs())
    }
}

#[allow(clippy::cast_precision_loss, reason = "a mean for the eye")]
fn f64_of(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending() -> Ending {
        Ending {
            any_page: true,
            ..Ending::default()
        }
    }

    #[test]
    fn a_crawl_with_pages_is_finished_whatever_failed() {
        assert_eq!(
            exit_of(&Ending {
                any_failed: true,
                any_robots: true,
                ..ending()
            }),
            Exit::Finished
        );
    }

    #[test]
    fn hosts_that_were_left_have_a_code_of_their_own() {
        assert_eq!(
            exit_of(&Ending {
                parked: vec!["https://a.test".into()],
                ..ending()
            }),
            Exit::HostsLeft
        );
        assert_eq!(
            exit_of(&Ending {
                given_up_total: 1,
                ..ending()
            }),
            Exit::HostsLeft
        );
    }

    #[test]
    fn without_a_page_it_tells_robots_from_failures() {
        let none = Ending::default();
        assert_eq!(exit_of(&none), Exit::SeedsFailed);
        assert_eq!(
            exit_of(&Ending {
                any_robots: true,
                ..none.clone()
            }),
            Exit::RobotsBlocked
        );
        assert_eq!(
            exit_of(&Ending {
                any_robots: true,
                any_failed: true,
                ..none
            }),
            Exit::SeedsFailed
        );
    }
}
