//! `pgcrawl config`: the values in force and where each came from; what a crawl has agreed on.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, Exit, database, output};
use crate::config::{FlagValue, KEYS, Origin};

mod agreed;

/// Flags of `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every key with the value in force and where it came from
    ///
    /// The form is that of the file, so the output can become a pgcrawl.toml. Secrets are redacted.
    Show {
        /// Print a JSON object instead: path, value, origin and reach of each key
        #[arg(long)]
        json: bool,
    },
    /// Print what all machines of a crawl agreed on
    ///
    /// The keys that config/default.toml marks as shared, as the crawl's database has them.
    Agreed {
        /// Print a JSON object
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        database: database::DatabaseArgs,
    },
    /// Change a value for all machines of a crawl
    ///
    /// They follow within seconds: what is in flight is finished, and nothing is claimed under the old value from the moment
    /// of the change. What was claimed before is finished as it was, also the wait behind it: after politeness.delay is raised from 1 s
    /// to 60 s each host is asked once more after 1 s. A new scope counts for links that are found from then on.
    Set {
        /// `section.name`, one that config/default.toml marks as shared
        key: String,

        /// As in pgcrawl.toml; a text needs no quotes
        value: String,

        #[command(flatten)]
        database: database::DatabaseArgs,
    },
}

impl ConfigArgs {
    /// Whether it is about what a crawl has, and not about this machine.
    pub(super) fn is_of_a_crawl(&self) -> bool {
        !matches!(self.command, ConfigCommand::Show { .. })
    }

    pub(super) fn flags(&self) -> Vec<FlagValue> {
        match &self.command {
            ConfigCommand::Show { .. } => Vec::new(),
            ConfigCommand::Agreed { database, .. } | ConfigCommand::Set { database, .. } => {
                database.flags()
            }
        }
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            ConfigCommand::Show { json } => output::print(if json {
                as_json(context)?
            } else {
                as_toml(context)
            })?,
            ConfigCommand::Agreed { json, database } => {
                agreed::show(context, &database, json).await?;
            }
            ConfigCommand::Set {
                key,
                value,
                database,
            } => agreed::set(context, &database, &key, &value).await?,
        }
        Ok(Exit::Finished)
    }
}

fn as_toml(context: &Context) -> String {
    let mut text = String::new();
    let mut section = "";
    for key in KEYS {
        if key.section != section {
            let gap = if section.is_empty() { "" } else { "\n" };
            section = key.section;
            text.push_str(&format!("{gap}[{section}]\n"));
        }
        let assignment = format!("{} = {}", key.name, key.show(&context.loaded.config));
        text.push_str(&format!(
            "{assignment:<48}# {}\n",
            context.loaded.origin(&key.path())
        ));
    }
    let proxies = &context.loaded.config.proxies;
    if !proxies.is_empty() {
        text.push_str("\n[proxies]\n");
    }
    for entry in proxies {
        let origin = entry.origin.as_ref().unwrap_or(&Origin::Default);
        let line = format!("{} = {}", entry.label, entry.show());
        text.push_str(&format!("{line:<48}# {origin}\n"));
    }
    for entry in &context.loaded.config.hosts {
        let origin = entry.origin.as_ref().unwrap_or(&Origin::Default);
        text.push_str(&format!("\n{:<48}# {origin}\n", "[[hosts]]"));
        for (name, value) in entry.show() {
            text.push_str(&format!("{name} = {value}\n"));
        }
    }
    text
}

fn as_json(context: &Context) -> anyhow::Result<String> {
    let mut entries: serde_json::Map<String, serde_json::Value> = KEYS
        .iter()
        .map(|key| {
            let origin = context.loaded.origin(&key.path()).to_string();
            let value = json!({ "value": key.show(&context.loaded.config), "origin": origin, "shared": key.shared });
            (key.path(), value)
        })
        .collect();
    for entry in &context.loaded.config.proxies {
        let origin = entry.origin.as_ref().unwrap_or(&Origin::Default);
        let value = json!({ "value": entry.show(), "origin": origin.to_string(), "shared": false });
        entries.insert(format!("proxies.{}", entry.label), value);
    }
    for (number, entry) in context.loaded.config.hosts.iter().enumerate() {
        let values: serde_json::Map<String, serde_json::Value> = entry
            .show()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let origin = entry
            .origin
            .as_ref()
            .unwrap_or(&Origin::Default)
            .to_string();
        let value = json!({ "value": values, "origin": origin, "shared": false });
        entries.insert(format!("hosts.{number}"), value);
    }
    Ok(serde_json::to_string_pretty(&entries)? + "\n")
}
