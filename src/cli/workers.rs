//! `pgcrawl workers`: the processes of a crawl.

use bytesize::ByteSize;
use chrono::{DateTime, Utc};
use clap::Args;
use comfy_table::{Table, presets};

use super::database::{self, DatabaseArgs, Missing};
use super::{Context, Exit, output};
use crate::config::FlagValue;
use crate::status::{Worker, workers};

/// Flags of `workers`.
#[derive(Debug, Args)]
pub struct WorkersArgs {
    /// Show those that left, too
    #[arg(long)]
    all: bool,

    /// Print a JSON array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

impl WorkersArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        self.database.flags()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let opened = database::open(&self.database, context, Missing::Refuse).await?;
        let pool = opened.pool().await?;
        let read = workers(&pool, self.all).await;
        crate::db::close(pool).await;
        opened.close().await?;
        let read = read?;
        output::print(if self.json {
            serde_json::to_string(&read)? + "\n"
        } else {
            as_text(&read, Utc::now())
        })?;
        Ok(Exit::Finished)
    }
}

fn as_text(workers: &[Worker], now: DateTime<Utc>) -> String {
    if workers.is_empty() {
        return "no process is in this crawl now; --all shows those that left\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "id",
        "process",
        "version",
        "state",
        "heartbeat",
        "in flight",
        "pages/s",
        "done",
        "failed",
        "received",
    ]);
    for worker in workers {
        table.add_row([
            worker.worker_id.to_string(),
            worker.name.clone(),
            worker.version.clone(),
            worker.state.clone(),
            ago(now, worker.heartbeat),
            worker.in_flight.to_string(),
            format!("{:.1}", worker.pages_per_second),
            worker.done.to_string(),
            worker.failed.to_string(),
            ByteSize::b(worker.bytes.unsigned_abs()).to_string(),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}

/// Whole seconds since a moment. Both clocks are shown to people only.
fn ago(now: DateTime<Utc>, then: DateTime<Utc>) -> String {
    let span = (now - then).to_std().unwrap_or_default();
    let seconds = std::time::Duration::from_secs(span.as_secs());
    format!("{} ago", humantime::format_duration(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_without_processes_says_so() {
        assert!(as_text(&[], Utc::now()).starts_with("no process is in this crawl"));
    }

    #[test]
    fn a_process_is_one_line() {
        let now = Utc::now();
        let worker = Worker {
            worker_id: 7,
            name: "crawler-1:4711".into(),
            host_name: "crawler-1".into(),
            version: "0.1.0".into(),
            state: "alive".into(),
            heartbeat: now - chrono::Duration::seconds(12),
            in_flight: 64,
            pages_per_second: 41.5,
            done: 1000,
            failed: 2,
            bytes: 3 << 20,
            ..Worker::default()
        };
        let text = as_text(&[worker], now);
        let line = text.lines().nth(1).unwrap();
        for word in [
            "7",
            "crawler-1:4711",
            "alive",
            "12s ago",
            "64",
            "41.5",
            "1000",
            "3.0 MiB",
        ] {
            assert!(line.contains(word), "{word}: {line}");
        }
    }
}
