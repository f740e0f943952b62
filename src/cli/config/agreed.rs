//! What a crawl has agreed on: shown, and changed.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;
use sqlx::PgPool;

use super::super::Context;
use super::super::database::{self, DatabaseArgs, Missing};
use super::super::output::{self, WithHint};
use crate::canon::{self, PageUrl};
use crate::config::{KEYS, judge};
use crate::frontier::{Agreement, Frontier, FrontierSettings};
use crate::scope::{Scope, ScopeKind};

/// Changes that may come between while one is judged.
const TRIES: usize = 5;

/// Prints the settings of a crawl.
pub(super) async fn show(
    context: &Context,
    database: &DatabaseArgs,
    json: bool,
) -> anyhow::Result<()> {
    let agreement = with(context, database, async |frontier| {
        agreement(frontier).await
    })
    .await?;
    if json {
        let text = serde_json::to_string_pretty(&agreement.settings)?;
        return Ok(output::line(text)?);
    }
    let mut text = format!("# version {}\n", agreement.version);
    let mut section = "";
    for key in KEYS {
        let Some(value) = agreement.settings.get(&key.path()) else {
            continue;
        };
        if key.section != section {
            section = key.section;
            let _ = write!(text, "\n[{section}]\n");
        }
        // JSON of texts, numbers, truths and lists of texts is TOML.
        let _ = writeln!(text, "{} = {value}", key.name);
    }
    Ok(output::print(text)?)
}

/// Changes a setting of a crawl.
pub(super) async fn set(
    context: &Context,
    database: &DatabaseArgs,
    key: &str,
    text: &str,
) -> anyhow::Result<()> {
    with(context, database, async |frontier| {
        for _ in 0..TRIES {
            let agreed = agreement(frontier).await?;
            let value = judge(key, text, &agreed.settings)?;
            if agreed.settings.get(key) == Some(&value) {
                output::say(format_args!("{key} is {value} already"));
                return Ok(());
            }
            let rules = match key {
                "crawl.scope" => Some(rules_of(frontier, &value, &agreed).await?),
                // Which URLs are one page is in the digest of each task. An empty set of rules takes the place of one that is empty as long
                // as no seed has come.
                key if key.starts_with("canon.") => {
                    if agreed.last_rule > 0 {
                        return Err(anyhow::anyhow!(
                            "{key} is settled: this crawl has seeds, and told their URLs apart by it"
                        ))
                        .hint("begin another crawl with it: `pgcrawl crawl --crawl OTHER …`");
                    }
                    Some(Vec::new())
                }
                _ => None,
            };
            let changed = frontier.set(key, &value, &agreed, rules.as_deref()).await?;
            if changed.is_some() {
                output::say(format_args!(
                    "{key} is {value} now; running processes follow within seconds"
                ));
                return Ok(());
            }
        }
        Err(anyhow::anyhow!("the settings are being changed by others")).hint("try it again")
    })
    .await
}

/// The rules that the seeds of a crawl, and what they redirected to, make under another scope.
async fn rules_of(
    frontier: &Frontier,
    scope: &Value,
    agreed: &Agreement,
) -> anyhow::Result<Vec<(String, String, &'static str)>> {
    let kind_of = |scope: &Value| scope.as_str().unwrap_or_default().parse::<ScopeKind>();
    let kind = kind_of(scope)?;
    let old = agreed
        .settings
        .get("crawl.scope")
        .map(kind_of)
        .transpose()?;
    let old = old.unwrap_or_default();
    let mut rules = Vec::new();
    // Rules of a kind of their own stay; seeds that have no others make none under the new scope either.
    let mut plain = HashSet::new();
    let mut after = 0;
    loop {
        let some = frontier.rules_after(after).await?;
        let Some(last) = some.last() else { break };
        after = last.id;
        for rule in some {
            match Scope::own_kind(&rule.rule) {
                Some(_) => rules.push((rule.rule, rule.host, "seed")),
                None => {
                    plain.insert(rule.rule);
                }
            }
        }
    }
    let mut after = 0;
    loop {
        let (last, roots) = frontier.roots_after(after).await?;
        for (url, is_seed) in roots {
            if let Ok(url) = PageUrl::parse(&url)
                && plain.contains(&Scope::rule_for(old, &url))
            {
                let source = if is_seed { "seed" } else { "redirect" };
                rules.push((
                    Scope::rule_for(kind, &url),
                    url.host().host().to_owned(),
                    source,
                ));
            }
        }
        // As many seeds of one host make one rule.
        rules.sort_unstable();
        rules.dedup();
        match last {
            Some(last) => after = last,
            None => return Ok(rules),
        }
    }
}

async fn agreement(frontier: &Frontier) -> anyhow::Result<Agreement> {
    match frontier.agreement(canon::VERSION).await? {
        Some(agreement) => Ok(agreement),
        None => Err(anyhow::anyhow!("no crawl was begun in this database"))
            .hint("`pgcrawl crawl SEEDS` begins one"),
    }
}

async fn with<T>(
    context: &Context,
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&Frontier) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let opened = database::open(args, context, Missing::Refuse).await?;
    let pool: PgPool = opened.pool().await?;
    let frontier = Frontier::new(pool.clone(), FrontierSettings::default());
    let done = work(&frontier).await;
    crate::db::close(pool).await;
    opened.close().await?;
    done
}
