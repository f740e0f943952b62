//! `pgcrawl config show`: the values in force and where each came from.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, Exit, output};
use crate::config::{FlagValue, KEYS};

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
}

impl ConfigArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        Vec::new()
    }

    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let ConfigCommand::Show { json } = self.command;
        output::print(if json {
            as_json(context)?
        } else {
            as_toml(context)
        })?;
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
    text
}

fn as_json(context: &Context) -> anyhow::Result<String> {
    let entries: serde_json::Map<String, serde_json::Value> = KEYS
        .iter()
        .map(|key| {
            let origin = context.loaded.origin(&key.path()).to_string();
            let value = json!({ "value": key.show(&context.loaded.config), "origin": origin, "shared": key.shared });
            (key.path(), value)
        })
        .collect();
    Ok(serde_json::to_string_pretty(&entries)? + "\n")
}
