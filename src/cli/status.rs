//! `pgcrawl status`: how a crawl stands, in a few lines.

use chrono::{DateTime, Utc};
use clap::Args;

use super::database::{self, DatabaseArgs, Missing};
use super::{Context, Exit, output};
use crate::config::FlagValue;
use crate::status::{Status, status};

/// Flags of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

impl StatusArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        self.database.flags()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let opened = database::open(&self.database, context, Missing::Refuse).await?;
        let pool = opened.pool().await?;
        let read = status(&pool).await;
        crate::db::close(pool).await;
        opened.close().await?;
        let status = read?;
        output::print(if self.json {
            serde_json::to_string(&status)? + "\n"
        } else {
            as_text(&status)
        })?;
        Ok(Exit::Finished)
    }
}

fn as_text(status: &Status) -> String {
    let moment = |at: Option<DateTime<Utc>>| {
        at.map_or("never".into(), |at| {
            at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
        })
    };
    format!(
        "tasks     {} of {} hosts\n\
         new       {}\n\
         claimed   {}\n\
         done      {}\n\
         failed    {}\n\
         excluded  {}\n\
         pace      {:.1} pages/s over the last minute, {} in flight, {} processes\n\
         began     {}\n\
         last page {}\n",
        status.tasks,
        status.hosts,
        status.new,
        status.claimed,
        status.done,
        status.failed,
        status.excluded,
        status.pages_per_second,
        status.in_flight,
        status.workers,
        moment(status.first_activity_at),
        moment(status.last_activity_at),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_that_has_not_begun_says_so() {
        let text = as_text(&Status::default());
        assert!(text.starts_with("tasks     0 of 0 hosts\n"), "{text}");
        assert!(text.ends_with("last page never\n"), "{text}");
    }
}
