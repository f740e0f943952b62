//! `pgcrawl explain URL`: what pgcrawl thinks of a URL, and what it knows of it.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::crawl::existing;
use super::database::{self, DatabaseArgs, Missing, Opened};
use super::{Context, Exit, output};
use crate::canon::PageUrl;
use crate::config::FlagValue;
use crate::db::{Access, Part, query_text};
use crate::robots::{Robots, Verdict};
use crate::scope::{Decision, Scope, ScopeKind};

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
    };
    chapters(url, &context, opened).await
}

async fn chapters(
    url: &PageUrl,
    context: &Context,
    opened: &Opened,
) -> anyhow::Result<Vec<Chapter>> {
    let authority = literal(url.host().as_str());
    let digest = uuid::Uuid::from(url.digest());
    let task = rows(
        opened,
        &format!(
            "select t.id, t.status, t.reason, t.detail, t.depth, t.attempts, t.claimed_by, t.claimed_at, t.available_at, \
             t.discovered_at, v.url as found_on, t.url as fetched_as \
             from tasks t join hosts h on h.id = t.host_id left join tasks v on v.id = t.via \
             where h.authority = {authority} and t.url_digest = '{digest}'"
        ),
    )
    .await?;
    let host = rows(
        opened,
        &format!(
            "select state, note, visits, new_tasks, delay_ms, failures, deferred_until, given_up_at, robots_status, \
             robots_fetched_at from host_progress where authority = {authority}"
        ),
    )
    .await?;
    let page = rows(
        opened,
        &format!(
            "select p.fetched_at, p.http_status, p.error, p.error_detail, p.final_url, p.redirect_to, p.content_type, \
             p.charset, p.title, p.canonical_url, p.robots, p.links, p.fetch_ms, p.body_bytes, p.truncated \
             from pages p join tasks t on t.id = p.task_id join hosts h on h.id = t.host_id \
             where h.authority = {authority} and t.url_digest = '{digest}'"
        ),
    )
    .await?;
    let depth = task
        .iter()
        .find(|(name, _)| name == "depth")
        .and_then(|(_, depth)| depth.parse().ok());
    Ok(vec![
        ("url", names(url, &digest)),
        (
            "scope",
            scope(url, depth.unwrap_or(0), context, opened).await?,
        ),
        ("robots.txt", robots(url, context, opened).await?),
        ("task", or(task, "unknown to this crawl")),
        ("host", or(host, "unknown to this crawl")),
        ("last visit", or(page, "none")),
    ])
}

fn names(url: &PageUrl, digest: &uuid::Uuid) -> Vec<(String, String)> {
    [
        ("asked for", url.as_str().to_owned()),
        ("compared as", url.canonical()),
        ("digest", digest.to_string()),
        ("host", url.host().to_string()),
        ("site", url.host().site().as_str().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Asks the scope of the crawl in the database: only the rules that could cover the URL are read.
async fn scope(
    url: &PageUrl,
    depth: u16,
    context: &Context,
    opened: &Opened,
) -> anyhow::Result<Vec<(String, String)>> {
    let crawl = rows(
        opened,
        "select value #>> '{}' as scope from settings where key = 'crawl.scope'",
    )
    .await?;
    let Some(kind) = crawl
        .first()
        .and_then(|(_, kind)| kind.parse::<ScopeKind>().ok())
    else {
        return Ok(or(Vec::new(), "the crawl has not begun"));
    };
    let mut scope = Scope::new(kind, context.loaded.config.trap_limits());
    let mut matched = Vec::new();
    for rule in candidates(kind, url) {
        let found = rows(
            opened,
            &format!(
                "select source from scope_rules where rule = {}",
                literal(&rule)
            ),
        )
        .await?;
        if let Some((_, source)) = found.first() {
            scope.insert(&rule);
            matched.push(("rule".to_owned(), format!("{rule} ({source})")));
        }
    }
    let decision = match scope.decide(url, depth) {
        Decision::Accept => "belongs to the crawl".to_owned(),
        Decision::Reject(reason) => format!("does not belong to the crawl: {}", reason.as_str()),
    };
    let mut facts = vec![
        ("kind".to_owned(), kind.to_string()),
        ("decision".to_owned(), decision),
    ];
    facts.extend(matched);
    Ok(facts)
}

/// Returns every rule that could cover a URL, over http and over https.
fn candidates(kind: ScopeKind, url: &PageUrl) -> Vec<String> {
    let own = Scope::rule_for(kind, url);
    if kind != ScopeKind::Prefix {
        return vec![own];
    }
    let (_, rest) = own.split_once("://").unwrap_or(("", &own));
    let folders = rest.match_indices('/').map(|(at, _)| &rest[..=at]);
    folders
        .flat_map(|folder| ["https", "http"].map(|scheme| format!("{scheme}://{folder}")))
        .collect()
}

/// Judges by the robots.txt that the crawl has stored.
async fn robots(
    url: &PageUrl,
    context: &Context,
    opened: &Opened,
) -> anyhow::Result<Vec<(String, String)>> {
    let authority = literal(url.host().as_str());
    let stored = rows(
        opened,
        &format!(
            "select encode(r.body, 'hex') as body, r.fetched_at, r.http_status, r.error \
             from robots r join hosts h on h.id = r.host_id where h.authority = {authority}"
        ),
    )
    .await?;
    if stored.is_empty() {
        return Ok(or(Vec::new(), "not fetched yet"));
    }
    let body = stored
        .iter()
        .find(|(name, _)| name == "body")
        .map(|(_, hex)| unhex(hex));
    let robots = body.map_or_else(Robots::allow_all, |body| {
        Robots::parse(&body, &context.loaded.config.identity.robots_token)
    });
    let verdict = match robots.judge(url.as_url()) {
        Verdict::Allowed => "allowed".to_owned(),
        Verdict::Disallowed { rule } => format!("forbidden by `{rule}`"),
    };
    let mut facts = vec![("decision".to_owned(), verdict)];
    facts.extend(stored.into_iter().filter(|(name, _)| name != "body"));
    Ok(facts)
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
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
    fn every_folder_above_a_url_is_a_candidate_for_its_prefix_rule() {
        let url = PageUrl::parse("http://example.org/a/b/c?d=/e/").unwrap();
        let found = candidates(ScopeKind::Prefix, &url);
        for rule in [
            "http://example.org/",
            "https://example.org/a/",
            "http://example.org/a/b/",
        ] {
            assert!(
                found.iter().any(|candidate| candidate == rule),
                "{rule} is not among {found:?}"
            );
        }
        assert_eq!(found.len(), 6);
        assert_eq!(candidates(ScopeKind::Host, &url), ["example.org"]);
    }

    #[test]
    fn a_quote_does_not_end_a_literal() {
        assert_eq!(literal("o'clock"), "'o''clock'");
        assert_eq!(unhex("00ff7a"), [0, 255, b'z']);
    }
}
