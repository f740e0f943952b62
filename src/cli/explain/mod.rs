//! `pgcrawl explain URL`: what pgcrawl thinks of a URL, and what it knows of it.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

mod judged;
mod known;

use super::crawl::existing;
use super::database::{self, DatabaseArgs, Missing, Opened};
use super::{Context, Exit, output};
use crate::canon::{Canon, PageUrl};
use crate::config::FlagValue;
use crate::db::{Access, Part, query_text};

use known::Known;

/// Longest that one question to the database may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Flags of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The URL; a missing scheme means https
    url: String,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

/// One chapter: a heading and its facts.
type Chapter = (&'static str, Vec<(String, String)>);

impl ExplainArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        self.database.flags()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let url = PageUrl::seed(&self.url)?;
        let opened = database::open(&self.database, context, Missing::Refuse).await?;
        let known = explain(&url, context, &opened).await;
        opened.close().await?;
        let chapters = known?;
        output::print(if self.json {
            as_json(&chapters)?
        } else {
            as_text(&chapters)
        })?;
        Ok(Exit::Finished)
    }
}

/// Under the settings of the crawl, where one was begun.
async fn explain(
    url: &PageUrl,
    context: &Context,
    opened: &Opened,
) -> anyhow::Result<Vec<Chapter>> {
    let pool = opened.pool().await?;
    let terms = existing(&pool, &context.loaded).await;
    crate::db::close(pool).await;
    let context = Context {
        loaded: terms?.map_or_else(|| context.loaded.clone(), |terms| terms.loaded),
        quiet: context.quiet,
        surroundings: None,
    };
    chapters(url, &context, opened).await
}

async fn chapters(
    url: &PageUrl,
    context: &Context,
    opened: &Opened,
) -> anyhow::Result<Vec<Chapter>> {
    let known = Known::of(url, context, opened).await?;
    Ok(vec![
        ("url", names(url, &context.loaded.config.canon())),
        ("scope", judged::scope(url, &known, context, opened).await?),
        ("robots.txt", judged::robots(url, context, opened).await?),
        ("task", or(known.task, "unknown to this crawl")),
        ("host", or(known.host, "unknown to this crawl")),
        ("last visit", or(known.page, "none")),
    ])
}

fn names(url: &PageUrl, canon: &Canon) -> Vec<(String, String)> {
    [
        ("asked for", url.as_str().to_owned()),
        ("compared as", url.canonical(canon)),
        ("digest", uuid::Uuid::from(url.digest(canon)).to_string()),
        ("host", url.host().to_string()),
        ("site", url.host().site().as_str().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Returns the names and values of the first row of an answer, without its nulls.
async fn rows(opened: &Opened, statement: &str) -> anyhow::Result<Vec<(String, String)>> {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let mut receive = |part: Part<'_>| {
        match part {
            Part::Columns(columns) => {
                names = columns.iter().map(|column| column.name.clone()).collect();
            }
            Part::Row(row) if values.is_empty() => {
                values = row.iter().map(|value| value.map(str::to_owned)).collect();
            }
            Part::Row(_) | Part::End(_) => {}
        }
        Ok(())
    };
    query_text(
        &opened.reader_url,
        Access::Read,
        statement,
        TIMEOUT,
        &mut receive,
    )
    .await?;
    Ok(names
        .into_iter()
        .zip(values)
        .filter_map(|(name, value)| Some((name, value?)))
        .collect())
}

/// Returns the value of a name, if it is among the facts.
fn value_of<'a>(facts: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    let found = facts.iter().find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.as_str())
}

/// Quotes a text for SQL (with `standard_conforming_strings`, the server's default).
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the facts, or says what it means that there are none.
fn or(facts: Vec<(String, String)>, nothing: &str) -> Vec<(String, String)> {
    match facts.is_empty() {
        true => vec![(String::new(), nothing.to_owned())],
        false => facts,
    }
}

fn as_text(chapters: &[Chapter]) -> String {
    let mut text = String::new();
    for (heading, facts) in chapters {
        for (number, (name, value)) in facts.iter().enumerate() {
            let heading = if number == 0 { heading } else { "" };
            let name = if name.is_empty() {
                String::new()
            } else {
                format!("{name:<18}")
            };
            text.push_str(&format!("{heading:<12}{name}{value}\n"));
        }
    }
    text
}

fn as_json(chapters: &[Chapter]) -> anyhow::Result<String> {
    let object: Map<String, Value> = chapters
        .iter()
        .map(|(heading, facts)| {
            let known = facts.iter().filter(|(name, _)| !name.is_empty());
            let facts: Map<String, Value> = known
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect();
            let value = if facts.is_empty() {
                Value::Null
            } else {
                facts.into()
            };
            ((*heading).to_owned(), value)
        })
        .collect();
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_does_not_end_a_literal() {
        assert_eq!(literal("o'clock"), "'o''clock'");
    }
}
