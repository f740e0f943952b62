//! `pgcrawl work`: one more process in a crawl that others began.

use clap::Args;

use super::crawl::{Begin, Order, crawl};
use super::database::{self, DatabaseArgs, Missing};
use super::flags::CrawlFlags;
use super::{Context, Exit};
use crate::config::FlagValue;
use crate::crawl::Until;

/// Flags of `work`.
#[derive(Debug, Args)]
pub struct WorkArgs {
    /// End when nothing is left to do anywhere, as `crawl` does
    ///
    /// Without it the process stays until it is stopped, and waits for new tasks, retries, and a crawl that was not begun
    /// yet.
    #[arg(long)]
    until_empty: bool,

    /// Flags that are settings.
    #[command(flatten)]
    flags: CrawlFlags,

    /// Which database.
    #[command(flatten)]
    database: DatabaseArgs,
}

impl WorkArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        let settings = self.flags.values().into_iter();
        settings.chain(self.database.flags()).collect()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let opened = database::open(&self.database, context, Missing::Refuse).await?;
        let begin = Begin::Join;
        let order = Order {
            until: if self.until_empty {
                Until::Finished
            } else {
                Until::Stopped
            },
            quiet: context.quiet,
            crawl: self.database.crawl.clone(),
        };
        let ended = crawl(context, &opened, begin, order).await;
        opened.close().await?;
        ended
    }
}
