//! `pgcrawl crawls`: the crawls of the embedded server.

use std::time::Duration;

use clap::{Args, Subcommand};
use comfy_table::Table;
use serde_json::json;

use super::database::{hinted, settings};
use super::output::WithHint;
use super::{Context, Exit, output};
use crate::config::FlagValue;
use crate::db::embedded::Server;
use crate::db::{Access, Part, query_text};

/// Flags of `crawls`.
#[derive(Debug, Args)]
pub struct CrawlsArgs {
    #[command(subcommand)]
    command: Option<CrawlsCommand>,

    /// Print JSON objects, one a crawl
    #[arg(long)]
    json: bool,

    /// Folder of the embedded server
    ///
    /// Key database.data_dir.
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<String>,
}

#[derive(Debug, Subcommand)]
enum CrawlsCommand {
    /// Delete a crawl with all it has found; asks first
    Drop {
        /// The crawl
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// How a crawl stands, in one row; none where it is not a crawl (yet).
const STANDING: &str = "select tasks, new + claimed as open, done, failed, excluded, \
     to_char(last_activity_at, 'YYYY-MM-DD HH24:MI') as last_activity, \
     pg_size_pretty(pg_database_size(current_database())) as size from progress";

/// Its columns.
const COLUMNS: [&str; 7] = [
    "tasks",
    "open",
    "done",
    "failed",
    "excluded",
    "last_activity",
    "size",
];

impl CrawlsArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        let folder = self.data_dir.as_ref();
        folder
            .map(|folder| FlagValue::new("--data-dir", "database.data_dir", folder.as_str()))
            .into_iter()
            .collect()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let database = &context.loaded.config.database;
        if database.url.is_some() {
            return Err(anyhow::anyhow!(
                "with a database URL there is one crawl: that database"
            ))
            .hint("unset DATABASE_URL to see the crawls of the embedded server");
        }
        let server = Server::start(&settings(database)).await.map_err(hinted)?;
        let ended = match &self.command {
            None => list(&server, self.json).await,
            Some(CrawlsCommand::Drop { name, yes }) => drop_crawl(&server, name, *yes).await,
        };
        server.leave().await.map_err(hinted)?;
        ended
    }
}

async fn list(server: &Server, as_json: bool) -> anyhow::Result<Exit> {
    let names = server.databases().await.map_err(hinted)?;
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::UTF8_FULL_CONDENSED)
        .set_header(["crawl"].into_iter().chain(COLUMNS));
    for name in &names {
        let standing = standing(server, name).await;
        if as_json {
            let mut object = json!({ "crawl": name });
            for (column, value) in COLUMNS.iter().zip(&standing) {
                object[column] = value
                    .parse::<u64>()
                    .map_or_else(|_| json!(value), |number| json!(number));
            }
            output::line(object)?;
        } else {
            table.add_row(std::iter::once(name.clone()).chain(standing));
        }
    }
    match names.is_empty() {
        true => output::say("There is no crawl yet; `pgcrawl crawl SEEDS` makes one."),
        false if as_json => {}
        false => output::line(table)?,
    }
    Ok(Exit::Finished)
}

/// Returns the values of [`COLUMNS`]; none for a database that cannot say. Asks as the owner, who may learn the size too.
async fn standing(server: &Server, name: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut receive = |part: Part<'_>| {
        if let Part::Row(row) = part {
            values = row
                .iter()
                .map(|value| value.unwrap_or("-").to_owned())
                .collect();
        }
        Ok(())
    };
    let url = server.url(name);
    let asked = query_text(
        &url,
        Access::Read,
        STANDING,
        Duration::from_secs(10),
        &mut receive,
    );
    if let Err(error) = asked.await {
        tracing::debug!(crawl = name, %error, "the crawl cannot say how it stands");
    }
    values
}

async fn drop_crawl(server: &Server, name: &str, yes: bool) -> anyhow::Result<Exit> {
    let names = server.databases().await.map_err(hinted)?;
    if !names.iter().any(|known| known == name) {
        return Err(anyhow::anyhow!("there is no crawl {name:?}")).hint(match names.as_slice() {
            [] => "there is none at all".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        });
    }
    if !yes {
        let standing = standing(server, name).await;
        let tasks = standing.first().map_or("unknown", String::as_str);
        if !output::confirm(&format!(
            "Delete the crawl {name:?} ({tasks} tasks) for good?"
        ))? {
            output::say("Nothing was deleted.");
            return Ok(Exit::Finished);
        }
    }
    server.drop_database(name).await.map_err(hinted)?;
    output::say(format_args!("The crawl {name:?} is deleted."));
    Ok(Exit::Finished)
}
