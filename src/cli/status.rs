//! `pgcrawl status`: how a crawl stands, in a few lines.

use chrono::{DateTime, Utc};
use clap::Args;

use super::database::{self, DatabaseArgs, Missing};
use super::{Context, Exit, output};
use crate::config::FlagValue;
use crate::status::{Status, rejections, status};

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
        let read = match status(&pool).await {
            Ok(status) => rejections(&pool).await.map(|links| (status, links)),
            Err(error) => Err(error),
        };
        crate::db::close(pool).await;
        opened.close().await?;
        let (status, left_out) = read?;
        output::print(if self.json {
            let mut object = serde_json::to_value(&status)?;
            let left_out: serde_json::Map<_, _> = left_out
                .into_iter()
                .map(|(reason, links)| (reason, links.into()))
                .collect();
            object["links_left_out"] = left_out.into();
            object.to_string() + "\n"
        } else {
            as_text(&status) + &links(&left_out)
        })?;
        Ok(Exit::Finished)
    }
}

/// Links that were left out, where there are any.
fn links(left_out: &[(String, i64)]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let named: Vec<String> = left_out
        .iter()
        .map(|(reason, links)| format!("{links} {reason}"))
        .collect();
    format!("left out  {} (links)\n", named.join(", "))
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
