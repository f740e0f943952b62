//! `pgcrawl scope`: the operator's rules, shown and changed, with what follows for the tasks that are there.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, Desk, counted, hinted};
use crate::canon::{self, PageUrl};
use crate::cli::crawl::{Terms, existing};
use crate::cli::database::with_hint;
use crate::cli::{Exit, output};
use crate::clock;
use crate::config::{Loaded, judge};
use crate::frontier::operate::{Against, Judged};
use crate::frontier::{Frontier, NotCounted, Step, TaskId, TaskKind};
use crate::scope::{By, Decision, Place, Reason, Rule, Scope};

/// Changes that may come between while one is judged.
const TRIES: usize = 5;

/// The key that holds the rules.
const KEY: &str = "scope.rules";

/// Flags of `scope`.
#[derive(Debug, Args)]
pub struct ScopeArgs {
    #[command(subcommand)]
    command: ScopeCommand,
}

#[derive(Debug, Subcommand)]
enum ScopeCommand {
    /// Print the rules, each with its number
    Show {
        #[command(flatten)]
        common: Common,
    },
    /// Add a rule behind the others, where it has the last word
    Add {
        /// Like 'exclude glob /print/**' or 'exclude depth >2 on example.org'
        #[arg(value_name = "RULE", num_args = 1.., required = true)]
        words: Vec<String>,

        #[command(flatten)]
        common: Common,
    },
    /// Remove a rule
    Remove {
        /// The rule, or its number as `scope show` prints it
        #[arg(value_name = "RULE", num_args = 1.., required = true)]
        words: Vec<String>,

        #[command(flatten)]
        common: Common,
    },
    /// Put these rules, each one argument, in the place of those that are there
    Set {
        /// Rules in their order; none of them removes all
        #[arg(value_name = "RULE")]
        rules: Vec<Rule>,

        #[command(flatten)]
        common: Common,
    },
    /// Judge the tasks that are there by the scope as it is
    ///
    /// After `pgcrawl config set` changed crawl.scope, crawl.max_depth, scope.extra_hops, a limit of traps or a budget of hosts, which
    /// count for links that are found from then on.
    Apply {
        #[command(flatten)]
        common: Common,
    },
    /// Say of a URL whether it belongs to the crawl, and what decides
    Check {
        /// The URL; a missing scheme means https
        url: String,

        /// Links from a seed
        #[arg(long, value_name = "LINKS", default_value_t = 0)]
        depth: u16,

        #[command(flatten)]
        common: Common,
    },
}

impl ScopeArgs {
    pub(super) fn common(&self) -> &Common {
        match &self.command {
            ScopeCommand::Show { common }
            | ScopeCommand::Add { common, .. }
            | ScopeCommand::Remove { common, .. }
            | ScopeCommand::Set { common, .. }
            | ScopeCommand::Apply { common }
            | ScopeCommand::Check { common, .. } => common,
        }
    }

    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        match self.command {
            ScopeCommand::Show { .. } => show(desk).await,
            ScopeCommand::Add { words, .. } => {
                let rule: Rule = words.join(" ").parse()?;
                change(desk, |rules| {
                    // Said again, it has the last word again.
                    rules.retain(|known| *known != rule);
                    rules.push(rule.clone());
                    Ok(())
                })
                .await
            }
            ScopeCommand::Remove { words, .. } => {
                let named = words.join(" ");
                change(desk, |rules| remove(rules, &named)).await
            }
            ScopeCommand::Set { rules: new, .. } => {
                change(desk, |rules| {
                    rules.clone_from(&new);
                    Ok(())
                })
                .await
            }
            ScopeCommand::Apply { .. } => {
                let loaded = of_the_crawl(desk).await?.loaded;
                apply(desk, &loaded).await
            }
            ScopeCommand::Check { url, depth, .. } => check(desk, &url, depth).await,
        }
    }
}

fn remove(rules: &mut Vec<Rule>, named: &str) -> anyhow::Result<()> {
    let at = match named.parse::<usize>() {
        Ok(number) => number.checked_sub(1).filter(|at| *at < rules.len()),
        Err(_) => {
            let words: Vec<&str> = named.split_ascii_whitespace().collect();
            let text = words.join(" ");
            rules.iter().position(|rule| rule.as_str() == text)
        }
    };
    let Some(at) = at else {
        let hint = "`pgcrawl scope show` prints them with their numbers";
        return Err(with_hint(
            anyhow::anyhow!("the crawl has no rule {named:?}"),
            Some(hint.to_owned()),
        ));
    };
    rules.remove(at);
    Ok(())
}

async fn of_the_crawl(desk: &Desk) -> anyhow::Result<Terms> {
    let terms = existing(desk.operator.frontier().pool(), &desk.loaded).await?;
    terms.ok_or_else(|| {
        with_hint(
            anyhow::anyhow!("no crawl was begun in this database"),
            Some("`pgcrawl crawl SEEDS` begins one".to_owned()),
        )
    })
}

async fn show(desk: &Desk) -> anyhow::Result<Exit> {
    let config = of_the_crawl(desk).await?.loaded.config;
    let rules = &config.scope.rules;
    if desk.common.json {
        let rules: Vec<&str> = rules.iter().map(Rule::as_str).collect();
        output::line(json!({
            "scope": config.crawl.scope,
            "max_depth": config.crawl.max_depth,
            "extra_hops": config.scope.extra_hops,
            "rules": rules,
        }))?;
        return Ok(Exit::Finished);
    }
    output::line(format_args!(
        "0  include {} of the seeds, {} links deep, {} outside",
        config.crawl.scope, config.crawl.max_depth, config.scope.extra_hops
    ))?;
    for (number, rule) in (1..).zip(rules) {
        output::line(format_args!("{number}  {rule}"))?;
    }
    Ok(Exit::Finished)
}

/// Changes the rules for all machines, then what follows for the tasks.
async fn change(
    desk: &Desk,
    edit: impl Fn(&mut Vec<Rule>) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let frontier = desk.operator.frontier();
    for _ in 0..TRIES {
        let Terms {
            mut loaded,
            version,
        } = of_the_crawl(desk).await?;
        let agreed = frontier.agreement(canon::VERSION).await?;
        let agreed = agreed.context("the crawl is gone")?;
        if agreed.version != version {
            // The rules that were read are not those that this version would take the place of.
            continue;
        }
        edit(&mut loaded.config.scope.rules)?;
        let texts: Vec<&str> = loaded.config.scope.rules.iter().map(Rule::as_str).collect();
        let value = judge(KEY, &Value::from(texts).to_string(), &agreed.settings)?;
        if desk.common.dry_run {
            return apply(desk, &loaded).await;
        }
        let is_there = agreed.settings.get(KEY) == Some(&value);
        // The rules first: what is found from here on is judged by them, and what was found before is looked at now.
        if is_there || frontier.set(KEY, &value, &agreed, None).await?.is_some() {
            return apply(desk, &loaded).await;
        }
    }
    Err(with_hint(
        anyhow::anyhow!("the settings are being changed by others"),
        Some("try it again".to_owned()),
    ))
}

/// What tasks are excluded by, and may come back from.
fn reasons() -> Vec<&'static str> {
    let all = Reason::ALL.into_iter();
    all.filter(|reason| reason.is_of_rules() || *reason == Reason::HostPages)
        .map(Reason::as_str)
        .collect()
}

/// Judges all tasks anew.
async fn apply(desk: &Desk, loaded: &Loaded) -> anyhow::Result<Exit> {
    let frontier = desk.operator.frontier();
    let scope = whole_scope(frontier, loaded).await?;
    let (reasons, is_dry) = (reasons(), desk.common.dry_run);
    let pages_per_host = loaded.config.budget().pages_per_host;
    let (mut excluded, mut brought_back, mut after) = (0, 0, 0);
    let mut rooms = std::collections::HashMap::new();
    loop {
        let looked = desk.operator.judged_after(after, &reasons).await;
        let (last, tasks) = looked.map_err(hinted)?;
        let Some(last) = last else { break };
        let mut against = Vec::new();
        let mut back: Vec<TaskId> = Vec::new();
        for task in tasks {
            let rejected = match task.is_judged {
                true => judged(frontier, &scope, &task).await?,
                false => None,
            };
            match (rejected, &task.excluded) {
                (Some(one), None) => against.push(one),
                (None, Some(reason)) => {
                    if reason == Reason::HostPages.as_str()
                        && let Some(most) = pages_per_host
                    {
                        let room = match rooms.get_mut(&task.host) {
                            Some(room) => room,
                            None => {
                                let all = NotCounted::default();
                                let counts = frontier.host_visits(&[task.host], most, all).await?;
                                let visits =
                                    counts.first().map_or(0, |host| host.visited + host.claimed);
                                rooms
                                    .entry(task.host)
                                    .or_insert(most.saturating_sub(visits))
                            }
                        };
                        let Some(left) = room.checked_sub(1) else {
                            continue;
                        };
                        *room = left;
                    }
                    back.push(task.task);
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        if is_dry {
            excluded += against.len() as u64;
            brought_back += back.len() as u64;
        } else {
            let changed = desk.operator.decide_against(&against).await;
            excluded += changed.map_err(hinted)?;
            let changed = desk.operator.bring_back(&back, &reasons).await;
            brought_back += changed.map_err(hinted)?;
        }
        after = last;
    }
    if desk.common.json {
        output::line(json!({
            "excluded": excluded,
            "brought_back": brought_back,
            "dry_run": is_dry,
        }))?;
    } else {
        let (would, are) = if is_dry {
            ("would be ", "would be ")
        } else {
            ("", "")
        };
        output::line(format_args!(
            "{} {would}excluded, {} {are}brought back",
            counted(excluded, "task"),
            counted(brought_back, "task")
        ))?;
    }
    if brought_back > 0 && !is_dry {
        desk.say_what_is_next().await?;
    }
    Ok(Exit::Finished)
}

/// The scope with all rules that seeds made.
async fn whole_scope(frontier: &Frontier, loaded: &Loaded) -> anyhow::Result<Scope> {
    let mut scope = loaded.config.scope();
    scope.set_year(clock::year());
    let mut after = 0;
    loop {
        let rules = frontier.rules_after(after).await?;
        let Some(last) = rules.last() else {
            return Ok(scope);
        };
        after = last.id;
        rules.iter().for_each(|rule| scope.insert(&rule.rule));
    }
}

/// Why a task does not belong to the crawl; none if it does.
async fn judged(
    frontier: &Frontier,
    scope: &Scope,
    task: &Judged,
) -> anyhow::Result<Option<Against>> {
    let against = |reason: Reason, detail: &str| Against {
        task: task.task,
        reason: reason.as_str(),
        detail: detail.to_owned(),
    };
    let Ok(url) = PageUrl::parse(&task.url) else {
        return Ok(None);
    };
    let mut place = match task.kind {
        TaskKind::Asset => Place::TRANSCLUDED,
        _ => Place {
            depth: task.depth,
            outside: 1,
        },
    };
    let is_allowed = |place| scope.judge(&url, place);
    if task.kind != TaskKind::Asset && matches!(is_allowed(place).by, By::ExtraHop(_)) {
        // One hop outside would do; it may be more.
        let way = frontier.way(task.task, 64).await?;
        place.outside = outside(scope, &way);
    }
    let judgement = is_allowed(place);
    Ok(match (judgement.decision, judgement.by) {
        (Decision::Accept, _) => None,
        (Decision::Reject(reason), By::Rule(rule)) if reason == Reason::Rule => {
            Some(against(reason, rule.as_str()))
        }
        (Decision::Reject(reason), _) => Some(against(reason, "by the scope as it is now")),
    })
}

/// Links at the end of a way that led outside.
fn outside(scope: &Scope, way: &[Step]) -> u16 {
    let outside = way.iter().take_while(|step| {
        !step.is_seed
            && PageUrl::parse(&step.url).is_ok_and(|url| !scope.is_inside(&url, step.depth))
    });
    let links = outside.filter(|step| step.hops == 0).count();
    u16::try_from(links).unwrap_or(u16::MAX).max(1)
}

async fn check(desk: &Desk, url: &str, depth: u16) -> anyhow::Result<Exit> {
    let loaded = of_the_crawl(desk).await?.loaded;
    let scope = whole_scope(desk.operator.frontier(), &loaded).await?;
    let url = PageUrl::seed(url)?;
    let judgement = scope.judge(&url, Place { depth, outside: 1 });
    let by = match judgement.by {
        By::Rule(rule) => rule.to_string(),
        By::Seeds => format!("crawl.scope = {}", scope.kind()),
        By::ExtraHop(_) => format!("scope.extra_hops = {}", scope.extra_hops()),
    };
    let reason = match judgement.decision {
        Decision::Accept => None,
        Decision::Reject(reason) => Some(reason.as_str()),
    };
    if desk.common.json {
        output::line(json!({ "belongs": reason.is_none(), "reason": reason, "by": by }))?;
    } else {
        output::line(match reason {
            None => format!("belongs to the crawl: {by}"),
            Some(reason) => format!("does not belong to the crawl: {reason}; {by}"),
        })?;
    }
    Ok(Exit::Finished)
}
