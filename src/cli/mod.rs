//! The door: what is typed, what is printed, and with which code the process leaves.
//!
//! One file a command, each with its flags and a `run`. A command prints through [`output`] alone, shows progress through
//! [`progress`] alone, and returns an [`Exit`]; errors travel up to [`main`], which prints them once, with their hint.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::config::{FlagValue, Layers, Loaded, Problems, Surroundings};

pub mod bench;
pub mod config;
pub mod crawl;
#[cfg(unix)]
pub mod crawls;
pub mod database;
#[cfg(unix)]
pub mod db;
pub mod demo;
#[cfg(unix)]
pub mod doctor;
mod exit;
pub mod explain;
pub mod fetch;
#[cfg(unix)]
mod files;
pub mod flags;
pub mod logging;
pub mod operate;
pub mod output;
pub mod progress;

pub mod scope_flags;
pub mod seeds;
pub mod sql;
pub mod status;
pub mod work;
pub mod workers;

pub use exit::Exit;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "pgcrawl",
    version,
    about = "A web crawler whose URL frontier is a table in Postgres",
    after_help = "Start with `pgcrawl demo`, then `pgcrawl crawl seeds/example.txt`.",
    after_long_help = after_long_help(),
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalFlags,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalFlags {
    /// Configuration file
    ///
    /// Without it, pgcrawl.toml of the working directory is read, if there is one. `pgcrawl config show` prints what is in
    /// force; config/default.toml explains every key.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Form of the log on standard error
    ///
    /// `text` is for people, `json` writes one object a line. Key log.format, default text.
    #[arg(long, global = true, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub log: Option<String>,

    /// Log more; twice: still more
    ///
    /// -v also logs every visit (debug), -vv everything (trace). Wins over key log.level, default info.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,

    /// Log warnings and errors only, without progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Crawl from seeds; run again, it goes on
    Crawl(Box<crawl::CrawlArgs>),
    /// Join a crawl that was begun, on this or any other machine
    ///
    /// Give it the same DATABASE_URL. What all machines must agree on (scope, delays, limits, identity) it takes from there.
    Work(Box<work::WorkArgs>),
    /// Crawl a small site that this program serves itself, and look at the result
    Demo(demo::DemoArgs),
    /// Show how a crawl stands
    Status(status::StatusArgs),
    /// Show the processes of a crawl
    Workers(workers::WorkersArgs),
    /// Ask the database, one statement a call
    ///
    /// The table and view names are in docs/SQL.md; `select * from progress` is a beginning.
    Sql(sql::SqlArgs),
    /// What operators do to a crawl, whether it runs or not.
    #[command(flatten)]
    Operate(operate::OperateCommand),
    /// Say what pgcrawl thinks and knows of a URL
    ///
    /// Canonical form, scope, the line of robots.txt that decides, its task, its host and its last visit.
    Explain(explain::ExplainArgs),
    /// Fetch one URL as a crawl would, and print what is in it
    Fetch(fetch::FetchArgs),
    /// List the crawls of the embedded server, or drop one
    #[cfg(unix)]
    Crawls(crawls::CrawlsArgs),
    /// Start, stop and look at the embedded database server
    #[cfg(unix)]
    Db(db::DbArgs),
    /// Look whether a crawl has what it needs
    ///
    /// Database, clock, disk, name look-up, limits of the process, identity. Exit code 1 if something does not work.
    #[cfg(unix)]
    Doctor(doctor::DoctorArgs),
    /// Show the configuration, or change what all machines of a crawl share
    Config(config::ConfigArgs),
    /// Measure what is said of queues in Postgres, on a scratch database
    Bench(bench::BenchArgs),
}

/// What a command gets from the door.
#[derive(Debug)]
pub struct Context {
    /// The checked configuration, flags included.
    pub loaded: Loaded,
    /// Whether nothing but warnings, errors and data shall be seen.
    pub quiet: bool,
    /// What requests carry, and by which ways they go, where the command makes any: read once, since a pipe can be read no second time.
    surroundings: Option<Surroundings>,
}

impl Context {
    /// What requests carry, and by which ways they go.
    ///
    /// # Errors
    /// Everything that cannot be had or read, where the command was not thought to make requests.
    fn surroundings(&self) -> Result<Surroundings, Problems> {
        match &self.surroundings {
            Some(surroundings) => Ok(surroundings.clone()),
            None => surroundings(&self.loaded.config),
        }
    }
}

/// Runs the program: parses the command line, runs the command, prints its error, returns its code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => {
            // Help and version go to stdout, complaints to stderr; neither can fail in a way that matters.
            let _ = message.print();
            return if message.use_stderr() {
                Exit::Usage.into()
            } else {
                Exit::Finished.into()
            };
        }
    };
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(error) if output::is_broken_pipe(&error) => Exit::Finished.into(),
        Err(error) => output::report(&error).into(),
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    let layers = Layers::new()
        .file(cli.global.config.as_deref())
        .environment(variables())
        .flags(cli.global.values())
        .flags(cli.command.flags());
    let loaded = match cli.command.is_of_a_crawl() {
        true => layers.finish_with_the_crawl()?,
        false => layers.finish()?,
    };
    // A secret that is missing is told before anything has begun.
    let surroundings = match cli.command.makes_requests() {
        true => Some(surroundings(&loaded.config)?),
        false => None,
    };
    logging::start(&loaded.config.log);
    #[cfg(unix)]
    files::raise_limit();
    for warning in &loaded.warnings {
        output::warn(&warning.to_string(), warning.hint.as_deref());
    }
    let context = Context {
        loaded,
        quiet: cli.global.quiet,
        surroundings,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(cli.command.run(&context));
    // A read of standard input cannot be cancelled; waiting for it would keep a finished process alive.
    runtime.shutdown_background();
    ended
}

/// Looks up what requests are to carry and by which ways they go, secrets from the environment and from files included.
fn surroundings(config: &crate::config::Config) -> Result<Surroundings, Problems> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    });
    config.surroundings(&|name| std::env::var(name).ok(), now)
}

/// Returns the environment; what is not UTF-8 is none of our variables.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

impl GlobalFlags {
    fn values(&self) -> Vec<FlagValue> {
        let level = match (self.quiet, self.verbose) {
            (true, _) => Some(("--quiet", "warn")),
            (false, 0) => None,
            (false, 1) => Some(("--verbose", "debug")),
            (false, _) => Some(("--verbose", "trace")),
        };
        let format = self
            .log
            .as_ref()
            .map(|format| FlagValue::new("--log", "log.format", format.as_str()));
        let level = level.map(|(flag, level)| FlagValue::new(flag, "log.level", level));
        format.into_iter().chain(level).collect()
    }
}

impl Command {
    /// Whether what is left out here is the crawl's: then this machine's own values need not go with the defaults of that.
    fn is_of_a_crawl(&self) -> bool {
        match self {
            Command::Crawl(_)
            | Command::Work(_)
            | Command::Workers(_)
            | Command::Status(_)
            | Command::Sql(_)
            | Command::Operate(_)
            | Command::Explain(_) => true,
            Command::Config(args) => args.is_of_a_crawl(),
            _ => false,
        }
    }

    /// Whether it asks servers, so that the secrets for them must be at hand.
    fn makes_requests(&self) -> bool {
        matches!(
            self,
            Command::Crawl(_) | Command::Work(_) | Command::Fetch(_)
        )
    }

    /// Returns the settings among the command's flags.
    fn flags(&self) -> Vec<FlagValue> {
        match self {
            Command::Crawl(args) => args.flags(),
            Command::Work(args) => args.flags(),
            Command::Workers(args) => args.flags(),
            Command::Demo(args) => args.flags(),
            Command::Fetch(args) => args.flags(),
            Command::Config(args) => args.flags(),
            Command::Bench(args) => args.flags(),
            Command::Status(args) => args.flags(),
            Command::Sql(args) => args.flags(),
            Command::Operate(command) => command.flags(),
            #[cfg(unix)]
            Command::Db(args) => args.flags(),
            #[cfg(unix)]
            Command::Crawls(args) => args.flags(),
            Command::Explain(args) => args.flags(),
            #[cfg(unix)]
            Command::Doctor(args) => args.flags(),
        }
    }

    async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self {
            Command::Crawl(args) => args.run(context).await,
            Command::Work(args) => args.run(context).await,
            Command::Workers(args) => args.run(context).await,
            Command::Demo(args) => args.run(context).await,
            Command::Fetch(args) => args.run(context).await,
            Command::Config(args) => args.run(context).await,
            Command::Bench(args) => args.run(context).await,
            Command::Status(args) => args.run(context).await,
            Command::Sql(args) => args.run(context).await,
            Command::Operate(command) => command.run(context).await,
            #[cfg(unix)]
            Command::Db(args) => args.run(context).await,
            #[cfg(unix)]
            Command::Crawls(args) => args.run(context).await,
            Command::Explain(args) => args.run(context).await,
            #[cfg(unix)]
            Command::Doctor(args) => args.run(context).await,
        }
    }
}

/// The exit codes, below `--help`.
fn after_long_help() -> String {
    let codes = Exit::ALL.map(|exit| format!("  {}  {}", exit.code(), exit.meaning()));
    format!(
        "Exit codes:\n{}\n\nStart with `pgcrawl demo`, then `pgcrawl crawl seeds/example.txt`.",
        codes.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn exit_codes_are_distinct() {
        for (number, exit) in Exit::ALL.iter().enumerate() {
            assert_eq!(usize::from(exit.code()), number, "{exit:?}");
        }
    }
}
