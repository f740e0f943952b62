//! `pgcrawl bench`: the laboratory, on a scratch database that leaves with it.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand, ValueEnum};

use super::crawl::signals::Signals;
use super::database::{self, DatabaseArgs, Missing, Opened};
use super::output::WithHint;
use super::{Context, Exit, output};
use crate::config::FlagValue;
use crate::lab::{Lab, LabError, LabSettings, Report, Scratch, Section};

mod render;

/// Flags of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Measure claims: locks, batches, indexes, deaths, sizes, and what is disputed
    ///
    /// Works in a database of its own on the embedded server (over TCP), or with DATABASE_URL in a schema of its own of that
    /// database, `pgcrawl_bench_<pid>`; drops it at the end, also after an error or Ctrl-C. No other table is touched. Figures
    /// of a debug build, or beside other work, are not worth quoting.
    Frontier(FrontierArgs),
}

/// Flags of `bench frontier`.
#[derive(Debug, Args)]
struct FrontierArgs {
    /// Only these sections, separated by commas
    ///
    /// a: plain SELECT, FOR UPDATE, SKIP LOCKED. b: batch size. c: the partial index. d: death, long locks, empty answers.
    /// e: workers, sizes, an open snapshot, wake-ups. f: what is disputed. Default: all.
    #[arg(
        long = "section",
        value_name = "LETTERS",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(["a", "b", "c", "d", "e", "f"]).try_map(|letter| letter.parse::<Section>())
    )]
    sections: Vec<Section>,

    /// How much to measure
    ///
    /// quick: up to a million tasks, a snapshot held for 20 s; three to four minutes on two cores. full: up to ten million tasks of
    /// a million hosts, a snapshot held for two minutes; half an hour and 10 GB of disk.
    #[arg(long, value_enum, default_value = "quick")]
    size: Size,

    /// Print a JSON object
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print Markdown, as docs/BENCHMARKS.md has it
    #[arg(long)]
    markdown: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

/// How much to measure.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Size {
    Quick,
    Full,
}

impl BenchArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        let BenchCommand::Frontier(args) = &self.command;
        args.database.flags()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let BenchCommand::Frontier(args) = self.command;
        args.run(context).await
    }
}

impl FrontierArgs {
    async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if let Some(name) = &self.database.crawl {
            return Err(anyhow::anyhow!(
                "the bench does not work on the crawl {name:?}"
            ))
            .hint("leave --crawl out: it makes a database of its own, and drops it at the end");
        }
        if cfg!(debug_assertions) {
            output::warn(
                "this is a debug build, which measures itself as much as the database",
                Some("cargo run --release -- bench frontier"),
            );
        }
        // From here on a signal is ours: whatever is made below is dropped again.
        let mut signals = Signals::new()?;
        let place = Place::open(&self.database, context).await?;
        let lab = Lab::new(place.scratch.clone(), self.settings());
        let sections = self.sections();
        let measured = tokio::select! {
            measured = lab.run(&sections) => Some(measured),
            () = signals.next() => None,
        };
        if measured.is_none() {
            output::say("dropping what was made; again to leave it and go");
        }
        let left = place.describe();
        let cleared = tokio::select! {
            cleared = place.clear() => cleared,
            () = signals.next() => {
                output::say(format_args!("{left} is left"));
                return Ok(Exit::Interrupted);
            }
        };
        let Some(measured) = measured else {
            cleared?;
            return Ok(Exit::Interrupted);
        };
        // What was measured is said first: it may have taken half an hour.
        let report = measured.map_err(hinted)?;
        output::print(self.render(&report)?)?;
        cleared?;
        Ok(Exit::Finished)
    }

    fn settings(&self) -> LabSettings {
        match self.size {
            Size::Quick => LabSettings::default(),
            Size::Full => LabSettings::full(),
        }
    }

    /// In the order of the letters, each once.
    fn sections(&self) -> Vec<Section> {
        Section::ALL
            .into_iter()
            .filter(|section| self.sections.is_empty() || self.sections.contains(section))
            .collect()
    }

    fn render(&self, report: &Report) -> anyhow::Result<String> {
        Ok(if self.json {
            serde_json::to_string_pretty(report)? + "\n"
        } else if self.markdown {
            render::markdown(report)
        } else {
            render::text(report)
        })
    }
}

/// Where the run works: a database of the embedded server, or a schema in the operator's.
struct Place {
    opened: Opened,
    scratch: Scratch,
    /// The crawl whose database it is, on the embedded server.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there is no embedded server"))]
    crawl: Option<String>,
}

impl Place {
    async fn open(args: &DatabaseArgs, context: &Context) -> anyhow::Result<Place> {
        if context.loaded.config.database.url.is_some() {
            let opened = database::open(args, context, Missing::Create).await?;
            let scratch = Scratch::schema(opened.url.clone()).await.map_err(hinted)?;
            return Ok(Place {
                opened,
                scratch,
                crawl: None,
            });
        }
        let crawl = format!("bench-{}", std::process::id());
        let args = DatabaseArgs {
            crawl: Some(crawl.clone()),
            ..args.clone()
        };
        let opened = database::open(&args, context, Missing::Create).await?;
        // Over TCP, as other machines come.
        #[cfg(unix)]
        let url = opened
            .server()
            .map_or_else(|| opened.url.clone(), |server| server.tcp_url(&crawl));
        #[cfg(not(unix))]
        let url = opened.url.clone();
        Ok(Place {
            scratch: Scratch::database(url),
            opened,
            crawl: Some(crawl),
        })
    }

    fn describe(&self) -> String {
        match &self.crawl {
            Some(crawl) => format!("the crawl {crawl} (`pgcrawl crawls drop {crawl}`)"),
            None => {
                let name = self.scratch.name();
                format!("the schema {name} (`drop schema {name} cascade`)")
            }
        }
    }

    async fn clear(self) -> anyhow::Result<()> {
        let cleared = self.scratch.clear().await.map_err(hinted);
        #[cfg(unix)]
        if let (Some(crawl), Some(server)) = (&self.crawl, self.opened.server()) {
            server
                .drop_database(crawl)
                .await
                .map_err(database::hinted)?;
        }
        self.opened.close().await?;
        cleared
    }
}

fn hinted(error: LabError) -> anyhow::Error {
    let hint = error.hint().map(str::to_owned);
    database::with_hint(error.into(), hint)
}
