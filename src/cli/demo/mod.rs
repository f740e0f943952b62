//! `pgcrawl demo`: the very same crawl as `crawl`, of a small site that this process serves on loopback.
//!
//! The site knows what a crawler owes each of its resources and counts its requests, so the demo can say whether the
//! crawl was right, and not only that it ended.

use clap::Args;

use super::crawl::{Begin, Order, crawl};
use super::database::{self, DatabaseArgs, Missing, Opened};
use super::output::WithHint;
use super::seeds::Source;
use super::{Context, Exit, output, sql};
use crate::canon::PageUrl;
use crate::config::FlagValue;
use crate::crawl::Until;

mod prose;
mod questions;
mod serve;
mod site;
mod verdict;

use questions::{QUESTIONS, Question};
use serve::Server;

/// The demo's crawl on the embedded server.
const CRAWL: &str = "demo";

/// Flags of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Only serve the site, until Ctrl-C
    ///
    /// On the ports of seeds/demo.txt, for `pgcrawl crawl seeds/demo.txt` or any other crawler; then say whether what was
    /// asked for is what should have been.
    #[arg(long)]
    serve: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

impl DemoArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        // Whatever a pgcrawl.toml says: what is owed to the site was worked out for these. The delay is short because the
        // servers are our own.
        let own = [
            ("politeness.delay", "15ms"),
            ("politeness.per_host", "1"),
            ("crawl.scope", "host"),
            ("crawl.max_depth", "20"),
            ("crawl.max_pages", "none"),
            ("crawl.max_duration", "none"),
            ("crawl.obey_robots", "true"),
            ("fetch.proxy", "none"),
        ];
        let own = own
            .into_iter()
            .map(|(key, value)| FlagValue::new("demo", key, value));
        own.chain(self.database.flags()).collect()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if let Some(name) = &self.database.crawl {
            // It is deleted first: a slip must not cost somebody a crawl.
            return Err(anyhow::anyhow!("the demo's crawl is not called {name:?}")).hint(format!(
                "leave --crawl out: it is called {CRAWL:?}, and made anew each time"
            ));
        }
        let server = Server::start().await?;
        output::say(format_args!("serving {}", verdict::inventory(&server.site)));
        for base in server.seeds() {
            output::say(format_args!("  {base}/"));
        }
        if self.serve {
            tokio::signal::ctrl_c().await?;
            return judge(&server);
        }
        let opened = self.open(context).await?;
        let ended = visit(context, &opened, &server).await;
        opened.close().await?;
        ended
    }

    /// Opens a database without a crawl: a new one of the embedded server, or the operator's if it is empty.
    async fn open(&self, context: &Context) -> anyhow::Result<Opened> {
        let embedded = context.loaded.config.database.url.is_none();
        let args = DatabaseArgs {
            crawl: embedded.then(|| CRAWL.to_owned()),
            ..self.database.clone()
        };
        let opened = database::open(&args, context, Missing::Create).await?;
        #[cfg(unix)]
        if let Some(server) = opened.server() {
            server
                .drop_database(args.crawl())
                .await
                .map_err(database::hinted)?;
            server
                .create_database(args.crawl())
                .await
                .map_err(database::hinted)?;
            return Ok(opened);
        }
        let pool = opened.pool().await?;
        let status = crate::status::status(&pool).await;
        crate::db::close(pool).await;
        match status?.tasks {
            0 => Ok(opened),
            tasks => Err(anyhow::anyhow!(
                "the database holds a crawl of {tasks} tasks"
            ))
            .hint("the demo wants an empty one; unset DATABASE_URL to use the embedded server"),
        }
    }
}

/// Crawls the site, judges the crawl, and asks the database about it.
async fn visit(context: &Context, opened: &Opened, server: &Server) -> anyhow::Result<Exit> {
    let seeds = server
        .seeds()
        .map(|base| PageUrl::parse(base).map(Source::Url));
    let begin = Begin::Seeds {
        sources: seeds.collect::<Result<_, _>>()?,
        format: None,
        refresh: false,
    };
    let order = Order {
        until: Until::Finished,
        quiet: context.quiet,
        crawl: Some(CRAWL.to_owned()),
    };
    let exit = crawl(context, opened, begin, order).await?;
    if exit != Exit::Finished {
        return Ok(exit);
    }
    let pool = opened.pool().await?;
    let status = crate::status::status(&pool).await;
    crate::db::close(pool).await;
    output::line("")?;
    let judged = match verdict::miscounted(&server.site, &status?) {
        None => judge(server)?,
        Some(complaint) => {
            output::line(complaint)?;
            Exit::Error
        }
    };
    for Question {
        words,
        sql: statement,
    } in QUESTIONS
    {
        output::line(format_args!("\n{words}\n\n{statement};\n"))?;
        sql::show(&opened.reader_url, statement).await?;
    }
    Ok(judged)
}

/// Prints whether the site was asked for exactly what it should have been.
fn judge(server: &Server) -> anyhow::Result<Exit> {
    let faults = verdict::faults(&server.site, &server.bases, &server.requests());
    if faults.is_empty() {
        output::line(
            "Each page was asked for once, and nothing that should have been left alone.",
        )?;
        return Ok(Exit::Finished);
    }
    output::line(format_args!(
        "{} URLs were asked for too often or too seldom:",
        faults.len()
    ))?;
    for fault in faults.iter().take(10) {
        output::line(format_args!(
            "  {} (asked for {} times, not {})",
            fault.url, fault.asked, fault.owed
        ))?;
    }
    Ok(Exit::Error)
}
