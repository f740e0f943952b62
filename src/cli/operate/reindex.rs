//! `reindex`: the frontier's indexes anew.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{Common, Course, Desk, hinted};
use crate::cli::{Exit, output};
use crate::frontier::operate::{Indexes, Patience, Rebuilt};

/// The statements of a crawl are over long before.
const OLD: Duration = Duration::from_secs(10);

/// Flags of `reindex`.
#[derive(Debug, Args)]
pub struct ReindexArgs {
    /// All indexes of the crawl's tables
    ///
    /// Without it, those that claims, recycling and retries walk through. The others are large, and building them takes as much room again.
    #[arg(long)]
    all: bool,

    /// Wait for transactions that are older
    ///
    /// Each index waits for every transaction of the database that began before. Without it, one that is older than 10 s is named and nothing is done.
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    pub(super) common: Common,
}

impl ReindexArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        let which = if self.all { Indexes::All } else { Indexes::Hot };
        if desk.common.dry_run {
            return sizes(desk, which).await;
        }
        let patience = match self.wait {
            true => Patience::Wait,
            false => Patience::Refuse(OLD),
        };
        let course = Course::start(desk);
        let mut printed = Ok(());
        let mut each = |one: &Rebuilt| {
            if printed.is_ok() && !desk.common.json {
                printed = output::line(format_args!(
                    "{:<24}{:>12} to {:>12}",
                    one.name,
                    size(one.before_bytes),
                    size(one.after_bytes)
                ));
            }
        };
        let rebuilt = desk
            .operator
            .reindex(which, patience, &course.stop, &mut each)
            .await;
        let is_whole = !course.stop.is_cancelled();
        drop(course);
        let rebuilt = rebuilt.map_err(hinted)?;
        printed?;
        if desk.common.json {
            let indexes: Vec<_> = rebuilt
                .iter()
                .map(|one| json!({ "index": one.name, "before_bytes": one.before_bytes, "after_bytes": one.after_bytes }))
                .collect();
            output::line(json!({ "indexes": indexes, "dry_run": false, "complete": is_whole }))?;
        }
        if !is_whole {
            desk.say(format_args!(
                "interrupted; {} of them done, and nothing half-built is left",
                rebuilt.len()
            ));
            return Ok(Exit::Interrupted);
        }
        Ok(Exit::Finished)
    }
}

async fn sizes(desk: &Desk, which: Indexes) -> anyhow::Result<Exit> {
    let indexes = desk.operator.indexes(which).await.map_err(hinted)?;
    if desk.common.json {
        let indexes: Vec<_> = indexes
            .iter()
            .map(|index| json!({ "index": index.name, "before_bytes": index.bytes }))
            .collect();
        output::line(json!({ "indexes": indexes, "dry_run": true }))?;
    } else {
        for index in &indexes {
            output::line(format_args!("{:<24}{:>12}", index.name, size(index.bytes)))?;
        }
    }
    let old = desk.operator.older_than(OLD).await.map_err(hinted)?;
    if let Some(old) = old {
        let age = humantime::format_duration(Duration::from_secs(old.age.as_secs()));
        let whose = old
            .pid
            .map_or_else(|| "prepared".to_owned(), |pid| format!("of session {pid}"));
        output::warn(
            &format!(
                "a transaction {whose} ({:?}), {age} old, would have to be waited for",
                old.name
            ),
            None,
        );
    }
    Ok(Exit::Finished)
}

fn size(bytes: u64) -> String {
    bytesize::ByteSize(bytes).display().iec().to_string()
}
