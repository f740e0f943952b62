//! Changes of tasks: `retry`, `requeue`, `exclude`, `reprioritise`.

use clap::Args;
use serde_json::json;

use super::{Common, Course, Desk, counted, hinted};
use crate::cli::{Exit, output};
use crate::frontier::operate::{Change, Class, Condition, Ended, Tally};

/// Flags of `retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Only tasks of which this SQL condition is true
    ///
    /// Over the columns of the view visits, such as `http_status = 503 and url like '%/news/%'` or `authority = 'https://example.org'`.
    /// `pgcrawl sql "select * from visits where …"` shows what it is true of. Without it: all that are failed.
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,

    #[command(flatten)]
    pub(super) common: Common,
}

/// Flags of `requeue`.
#[derive(Debug, Args)]
pub struct RequeueArgs {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    pub(super) common: Common,
}

/// Flags of `exclude`.
#[derive(Debug, Args)]
pub struct ExcludeArgs {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    pub(super) common: Common,
}

/// Flags of `reprioritise`.
#[derive(Debug, Args)]
pub struct ReprioritiseArgs {
    /// The priority of tasks, a number, lower first; with --host high, normal or low
    ///
    /// Tasks of a host are visited in this order, -32768 to 32767, 0 as they are found; roughly, since many are under way at once. Of the hosts
    /// that are ready, those that are high come before all others, those that are low when nothing else is ready.
    #[arg(value_name = "PRIORITY", allow_hyphen_values = true)]
    priority: String,

    /// Tasks of which this SQL condition is true
    ///
    /// As for `pgcrawl retry`.
    #[arg(long = "where", value_name = "CONDITION", required_unless_present_any = ["all", "host"])]
    condition: Option<String>,

    /// All tasks
    #[arg(long, conflicts_with = "condition")]
    all: bool,

    /// The class of this host, instead of tasks
    ///
    /// `https://example.org:8443`, a URL, or example.org for all its schemes and ports.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["condition", "all"])]
    host: Option<String>,

    #[command(flatten)]
    pub(super) common: Common,
}

/// Which tasks.
#[derive(Debug, Clone, Args)]
struct Which {
    /// Tasks of which this SQL condition is true
    ///
    /// Over the columns of the view visits, such as `http_status = 503 and url like '%/news/%'` or `authority = 'https://example.org'`.
    /// `pgcrawl sql "select * from visits where …"` shows what it is true of.
    #[arg(
        long = "where",
        value_name = "CONDITION",
        required_unless_present = "all"
    )]
    condition: Option<String>,

    /// All tasks that can be meant
    #[arg(long, conflicts_with = "condition")]
    all: bool,
}

impl RetryArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        change(desk, Change::Retry, self.condition.as_deref()).await
    }
}

impl RequeueArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        change(desk, Change::Requeue, self.which.condition.as_deref()).await
    }
}

impl ExcludeArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        change(desk, Change::Exclude, self.which.condition.as_deref()).await
    }
}

impl ReprioritiseArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        if let Some(host) = &self.host {
            let class: Class = self.priority.parse().map_err(anyhow::Error::msg)?;
            return super::hosts::reprioritise(desk, host, class).await;
        }
        let Ok(priority) = self.priority.parse() else {
            let error = anyhow::anyhow!("{:?} is no priority of tasks", self.priority);
            let hint =
                "a number from -32768 to 32767, lower first; high, normal and low are for --host";
            return Err(crate::cli::database::with_hint(
                error,
                Some(hint.to_owned()),
            ));
        };
        let change_to = Change::Reprioritise(priority);
        change(desk, change_to, self.condition.as_deref()).await
    }
}

async fn change(desk: &Desk, change: Change, condition: Option<&str>) -> anyhow::Result<Exit> {
    let which = match condition {
        Some(text) => desk.operator.condition(text).await.map_err(hinted)?,
        None => Condition::every(),
    };
    let mut course = Course::start(desk);
    let mut between = |tally: &Tally| course.tell(tally);
    let tally = match desk.common.dry_run {
        true => desk.operator.count(change, &which, &mut between).await,
        false => desk.operator.change(change, &which, &mut between).await,
    };
    drop(course);
    let tally = tally.map_err(hinted)?;
    let is_whole = tally.ended == Ended::Whole;
    if desk.common.json {
        output::line(json!({
            "tasks": tally.tasks,
            "hosts": tally.hosts,
            "reopened_hosts": tally.reopened,
            "dry_run": desk.common.dry_run,
            "complete": is_whole,
        }))?;
    } else {
        output::line(told(change, &tally, desk.common.dry_run))?;
    }
    if tally.reopened > 0 {
        desk.say(format_args!(
            "{} that had failed {} asked again",
            counted(tally.reopened, "host"),
            if tally.reopened == 1 { "is" } else { "are" }
        ));
    }
    if !is_whole {
        desk.say("interrupted before the end; the same command does the rest");
        return Ok(Exit::Interrupted);
    }
    let makes_new = matches!(change, Change::Retry | Change::Requeue);
    if makes_new && tally.tasks > 0 && !desk.common.dry_run {
        desk.say_what_is_next().await?;
    }
    Ok(Exit::Finished)
}

/// What was done, or would be, in a sentence.
fn told(change: Change, tally: &Tally, is_dry: bool) -> String {
    let one = tally.tasks == 1;
    let done = match (change, is_dry) {
        (Change::Retry, true) => "would be tried again".to_owned(),
        (Change::Retry, false) => format!("{} to be tried again", be(one)),
        (Change::Requeue, true) => "would be visited again".to_owned(),
        (Change::Requeue, false) => format!("{} to be visited again", be(one)),
        (Change::Exclude, true) => "would be excluded".to_owned(),
        (Change::Exclude, false) => format!("{} excluded", be(one)),
        (Change::Reprioritise(priority), true) => format!("would get priority {priority}"),
        (Change::Reprioritise(priority), false) => {
            format!(
                "{} priority {priority} now",
                if one { "has" } else { "have" }
            )
        }
    };
    match tally.tasks {
        0 => format!(
            "no task {}",
            done.replace("are ", "is ").replace("have ", "has ")
        ),
        _ => format!(
            "{} of {} {done}",
            counted(tally.tasks, "task"),
            counted(tally.hosts, "host")
        ),
    }
}

fn be(one: bool) -> &'static str {
    if one { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_a_sentence() {
        let tally = |tasks, hosts| Tally {
            tasks,
            hosts,
            ..Tally::default()
        };
        let told = |change, tasks, hosts, is_dry| told(change, &tally(tasks, hosts), is_dry);
        assert_eq!(
            told(Change::Retry, 12, 3, false),
            "12 tasks of 3 hosts are to be tried again"
        );
        assert_eq!(
            told(Change::Retry, 1, 1, false),
            "1 task of 1 host is to be tried again"
        );
        assert_eq!(told(Change::Exclude, 0, 0, false), "no task is excluded");
        assert_eq!(
            told(Change::Reprioritise(-1), 0, 0, false),
            "no task has priority -1 now"
        );
        assert_eq!(
            told(Change::Requeue, 2, 1, true),
            "2 tasks of 1 host would be visited again"
        );
    }
}
