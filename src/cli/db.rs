//! `pgcrawl db`: the embedded server by hand.

use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::json;

use super::database::{self, DatabaseArgs, Missing, hinted};
use super::output::WithHint;
use super::{Context, Exit, output};
use crate::config::FlagValue;
use crate::db::Access;
use crate::db::embedded::{Server, Status, StopMode, status, stop};

/// Flags of `db`.
#[derive(Debug, Args)]
pub struct DbArgs {
    #[command(subcommand)]
    command: DbCommand,
}

#[derive(Debug, Subcommand)]
enum DbCommand {
    /// Start the embedded server and leave it running
    Start {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Stop the embedded server
    Stop {
        /// Also while other pgcrawl processes use it
        ///
        /// They lose the database. What they had not committed is done again by the next run.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Show whether the embedded server runs, and where
    Status {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Print the database's URL, with its password
    ///
    /// For other programs of this machine. The server must run: see `db start`, or a crawl.
    Url {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Run psql on the crawl's database
    ///
    /// As a role that can only read; --write connects as the one that owns the crawl.
    Psql {
        /// As the role that owns the crawl
        #[arg(long)]
        write: bool,
        /// Passed on to psql
        #[arg(last = true, value_name = "ARGUMENT")]
        arguments: Vec<String>,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

impl DbCommand {
    fn database(&self) -> &DatabaseArgs {
        match self {
            Self::Start { database }
            | Self::Stop { database, .. }
            | Self::Status { database, .. }
            | Self::Url { database }
            | Self::Psql { database, .. } => database,
        }
    }
}

impl DbArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        self.command.database().flags()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let config = &context.loaded.config.database;
        let mut settings = database::settings(config);
        if let Some(url) = &config.url {
            return on_a_foreign_server(&self.command, url.expose_secret());
        }
        match self.command {
            DbCommand::Start { .. } => {
                settings.keep = true;
                let server = Server::start(&settings).await.map_err(hinted)?;
                output::say(format_args!(
                    "PostgreSQL {} runs on 127.0.0.1:{}, its data are in {}",
                    server.major(),
                    server.port(),
                    server.data_dir().display()
                ));
                output::say("`pgcrawl db stop` stops it");
                server.leave().await.map_err(hinted)?;
            }
            DbCommand::Stop { force, .. } => {
                let mode = if force {
                    StopMode::Force
                } else {
                    StopMode::IfUnused
                };
                let ran = stop(&settings, mode).await.map_err(hinted)?;
                output::say(if ran { "stopped" } else { "it did not run" });
            }
            DbCommand::Status { json, .. } => {
                let status = status(&settings).await.map_err(hinted)?;
                output::print(if json {
                    as_json(&status)?
                } else {
                    as_text(&status)
                })?;
            }
            DbCommand::Url { database } => {
                let status = status(&settings).await.map_err(hinted)?;
                if status.running.is_none() {
                    return Err(anyhow::anyhow!("the embedded server does not run"))
                        .hint("`pgcrawl db start` starts it");
                }
                let opened = database::open(&database, context, Missing::Create).await?;
                if let Some(server) = opened.server() {
                    output::line(server.tcp_url(database.crawl()).expose_secret())?;
                }
                opened.close().await?;
            }
            DbCommand::Psql {
                write,
                arguments,
                database,
            } => {
                let opened = database::open(&database, context, Missing::Refuse).await?;
                let access = if write { Access::Write } else { Access::Read };
                let status = match opened.server() {
                    Some(server) => {
                        let psql = server.psql(database.crawl(), access).map_err(hinted)?;
                        let mut command = tokio::process::Command::new(&psql.program);
                        command
                            .env("PGPASSFILE", &psql.pgpass)
                            .arg(&psql.conninfo)
                            .args(arguments);
                        run_psql(command).await
                    }
                    None => Ok(Exit::Finished),
                };
                opened.close().await?;
                return status;
            }
        }
        Ok(Exit::Finished)
    }
}

/// With a URL there is nothing to start or to stop.
fn on_a_foreign_server(command: &DbCommand, url: &str) -> anyhow::Result<Exit> {
    match command {
        DbCommand::Url { .. } => output::line(url)?,
        DbCommand::Psql { arguments, .. } => {
            // Nothing of ours outlives it, so it may take our place.
            let error = Command::new("psql")
                .env("DATABASE_URL", url)
                .arg(url)
                .args(arguments)
                .exec();
            return Err(error).hint("is psql installed?");
        }
        DbCommand::Start { .. } | DbCommand::Stop { .. } | DbCommand::Status { .. } => {
            return Err(anyhow::anyhow!(
                "a database URL is set, so the embedded server is not used"
            ))
            .hint("unset DATABASE_URL to use it");
        }
    }
    Ok(Exit::Finished)
}

/// Runs psql beside our share in the server. It handles Ctrl-C itself, so we let it pass.
async fn run_psql(mut command: tokio::process::Command) -> anyhow::Result<Exit> {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return Err(error)
                .hint("is psql installed? `pgcrawl db url` prints the address for other programs");
        }
    };
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    Ok(if status.success() {
        Exit::Finished
    } else {
        Exit::Error
    })
}

fn as_text(status: &Status) -> String {
    let data = match status.major {
        Some(major) => format!("{}, PostgreSQL {major}", status.data_dir.display()),
        None => format!("{}, nothing there yet", status.data_dir.display()),
    };
    let server = match &status.running {
        None => "stopped".to_owned(),
        Some(running) => {
            let used = if running.in_use { "in use" } else { "unused" };
            let kept = if running.kept {
                "stays until `pgcrawl db stop`"
            } else {
                "ends with its last user"
            };
            let socket = running.socket_folder.display();
            format!(
                "running, {used}, {kept}\naddress  127.0.0.1:{}, socket in {socket}",
                running.port
            )
        }
    };
    format!(
        "data     {data}\nserver   {server}\nlog      {}\n",
        status.log.display()
    )
}

fn as_json(status: &Status) -> anyhow::Result<String> {
    let running = status.running.as_ref().map(|running| {
        json!({
            "port": running.port,
            "socket_folder": running.socket_folder.display().to_string(),
            "in_use": running.in_use,
            "kept": running.kept,
        })
    });
    let value = json!({
        "data_dir": status.data_dir.display().to_string(),
        "major": status.major,
        "log": status.log.display().to_string(),
        "running": running,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
