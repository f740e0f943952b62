//! `pgcrawl crawl`: seeds in, rows out; run again, it goes on.

use std::ffi::OsString;

use clap::Args;

use super::{
    Context, Exit,
    database::{self, DatabaseArgs, Missing},
    flags::CrawlFlags,
    output::WithHint,
    seeds::{Format, Source},
};
use crate::config::FlagValue;
use crate::crawl::Until;

mod advice;
mod agree;
mod run;
pub(super) mod signals;
mod summary;

pub(super) use agree::{Terms, existing};
pub(super) use run::{Begin, Order, crawl};

/// Flags of `crawl`.
#[derive(Debug, Args)]
pub struct CrawlArgs {
    /// Files of seeds, URLs, or - for standard input
    ///
    /// A file has one URL a line; blank lines and `#` comments say nothing, a missing scheme means
    /// https. Files called *.jsonl and *.csv have the columns url, priority, depth, label, scope.
    /// Without seeds a crawl that was begun goes on.
    #[arg(value_name = "SEEDS")]
    seeds: Vec<OsString>,

    /// How seeds are written, in all files and on standard input
    ///
    /// A URL a line (text), a JSON object a line (jsonl), or CSV with the columns' names first. Without it a
    /// file's name tells: *.jsonl, *.ndjson and *.csv have columns.
    #[arg(long, value_name = "FORMAT", value_parser = Format::WORDS, help_heading = "What to crawl", hide_short_help = true)]
    seed_format: Option<String>,

    /// Visit again what is done or failed
    ///
    /// Done and failed tasks become new before the crawl starts. Without it a finished crawl has
    /// nothing to do.
    #[arg(long, help_heading = "What to crawl")]
    refresh: bool,

    /// Flags that are settings.
    #[command(flatten)]
    flags: CrawlFlags,

    /// Which database.
    #[command(flatten)]
    database: DatabaseArgs,
}

impl CrawlArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        let settings = self.flags.values().into_iter();
        settings.chain(self.database.flags()).collect()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut sources = Vec::with_capacity(self.seeds.len());
        for seed in &self.seeds {
            sources.push(match Source::of(seed) {
                Ok(source) => source,
                Err(error) => {
                    let hint = error.hint();
                    return match hint {
                        Some(hint) => Err(error).hint(hint),
                        None => Err(error.into()),
                    };
                }
            });
        }
        let missing = if sources.is_empty() {
            Missing::Refuse
        } else {
            Missing::Create
        };
        let opened = database::open(&self.database, context, missing).await?;
        let begin = Begin::Seeds {
            sources,
            format: self.seed_format.as_deref().and_then(Format::of),
            refresh: self.refresh,
        };
        let order = Order {
            until: Until::Finished,
            quiet: context.quiet,
            crawl: self.database.crawl.clone(),
        };
        let ended = crawl(context, &opened, begin, order).await;
        opened.close().await?;
        ended
    }
}
