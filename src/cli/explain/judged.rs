//! What the rules of the crawl say to a URL: its scope, its guards against traps, robots.txt.

use std::time::Duration;

use super::{known::Known, literal, or, rows, value_of};
use crate::canon::PageUrl;
use crate::cli::Context;
use crate::cli::database::Opened;
use crate::robots::{Access, Answer, MAX_CRAWL_DELAY, Robots, Verdict, access};
use crate::scope::{By, Decision, Place, Scope, ScopeKind, TrapLimits, block, shape};

type Facts = Vec<(String, String)>;

/// Asks the scope of the crawl in the database: only the rules that could cover the URL are read.
pub(super) async fn scope(
    url: &PageUrl,
    known: &Known,
    context: &Context,
    opened: &Opened,
) -> anyhow::Result<Facts> {
    let crawl = rows(
        opened,
        "select value #>> '{}' as scope from settings where key = 'crawl.scope'",
    )
    .await?;
    let Some(kind) = value_of(&crawl, "scope").and_then(|kind| kind.parse::<ScopeKind>().ok())
    else {
        return Ok(or(Vec::new(), "the crawl has not begun"));
    };
    let limits = context.loaded.config.trap_limits();
    let mut scope = context.loaded.config.scope();
    scope.set_year(crate::clock::year());
    let mut matched = Vec::new();
    let own = ScopeKind::ALL.into_iter().flat_map(|kind| {
        let rules = candidates(kind, url).into_iter();
        rules.map(move |rule| format!("{kind} {rule}"))
    });
    for rule in candidates(kind, url).into_iter().chain(own) {
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
    let depth = value_of(&known.task, "depth").and_then(|depth| depth.parse().ok());
    let place = match value_of(&known.task, "kind") {
        Some("asset") => Place::TRANSCLUDED,
        _ => Place {
            depth: depth.unwrap_or(0),
            outside: 1,
        },
    };
    let judgement = scope.judge(url, place);
    let decision = match judgement.decision {
        Decision::Accept => "belongs to the crawl".to_owned(),
        Decision::Reject(reason) => format!("does not belong to the crawl: {}", reason.as_str()),
    };
    for entry in block::candidates(url) {
        let statement = format!(
            "select l.name || ' line ' || e.line as source from block_entries e join block_lists l on l.id = e.list_id \
             where e.entry = {} and e.gone_at is null limit 1",
            literal(&entry)
        );
        if let Some((_, source)) = rows(opened, &statement).await?.first() {
            matched.push(("blocked".to_owned(), format!("{entry} ({source})")));
        }
    }
    let mut facts = vec![
        ("kind".to_owned(), kind.to_string()),
        ("decision".to_owned(), decision),
    ];
    match judgement.by {
        By::Seeds => {}
        By::Rule(rule) => facts.push(("decided by".to_owned(), rule.to_string())),
        By::ExtraHop(0) => {
            facts.push((
                "decided by".to_owned(),
                "the page that has it: it is an asset".to_owned(),
            ));
        }
        By::ExtraHop(_) => facts.push((
            "decided by".to_owned(),
            "scope.extra_hops, where a page inside links to it".to_owned(),
        )),
    }
    facts.extend(matched);
    if let Some(shape) = shape::of(url.as_url()) {
        let authority = literal(url.host().as_str());
        let parked = rows(
            opened,
            &format!(
                "select t.parked_at from trap_shapes t where t.authority = {authority} and t.shape = {}",
                literal(&shape)
            ),
        )
        .await?;
        let said = match value_of(&parked, "parked_at") {
            Some(since) => format!("{shape}, left out since {since}"),
            None => shape,
        };
        facts.push(("shape".to_owned(), said));
    }
    facts.push(("guards".to_owned(), guards(url, depth, &limits)));
    Ok(facts)
}

/// What the guards against traps measure of a URL, each with its limit.
fn guards(url: &PageUrl, depth: Option<u16>, limits: &TrapLimits) -> String {
    let mut segments: Vec<&str> = url.as_url().path().split('/').collect();
    segments.retain(|segment| !segment.is_empty());
    let count = segments.len();
    segments.sort_unstable();
    let runs = segments.chunk_by(|a, b| a == b).map(<[&str]>::len);
    let depth = depth.map_or_else(|| "unknown".to_owned(), |depth| depth.to_string());
    format!(
        "depth {depth} of {}, {} of {} characters, {count} of {} segments, one of them {} of {} times",
        limits.max_depth,
        url.as_str().len(),
        limits.max_url_length,
        limits.max_segments,
        runs.max().unwrap_or(0),
        limits.max_repeats,
    )
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
pub(super) async fn robots(
    url: &PageUrl,
    context: &Context,
    opened: &Opened,
) -> anyhow::Result<Facts> {
    let config = &context.loaded.config;
    if !config.crawl.obey_robots {
        return Ok(or(Vec::new(), "not asked for: crawl.obey_robots is off"));
    }
    let authority = literal(url.host().as_str());
    let mut stored = rows(
        opened,
        &format!(
            "select encode(r.body, 'hex') as body, r.fetched_at, r.http_status, r.error, r.hops, r.final_url, h.robots_until, \
             h.robots_until > now() as counts, cardinality(r.sitemaps) as sitemaps \
             from robots r join hosts h on h.id = r.host_id where h.authority = {authority}"
        ),
    )
    .await?;
    if stored.is_empty() {
        return Ok(or(
            Vec::new(),
            "not yet known: it is fetched before the first page",
        ));
    }
    let body = value_of(&stored, "body").map(unhex);
    let counts = value_of(&stored, "counts") == Some("t");
    let answer = answer(value_of(&stored, "http_status"), value_of(&stored, "error"));
    stored.retain(|(name, value)| match name.as_str() {
        "body" | "counts" => false,
        "hops" => value != "0",
        _ => true,
    });
    let mut facts = Vec::new();
    let mut say = |name: &str, value: String| facts.push((name.to_owned(), value));
    if access(answer) == Access::Defer {
        // A body that is there is an older one, which counts no more.
        say(
            "decision",
            "not known: nothing is fetched until it is had".to_owned(),
        );
    } else {
        let body = body.unwrap_or_default();
        let token = &config.identity.robots_token;
        let robots = Robots::parse(&body, token);
        let verdict = robots.judge(url.as_url());
        let line = Robots::deciding_line(&body, token, url.as_url())
            .map(|line| format!("line {}: {}", line.number, line.text));
        say("decision", decision(&verdict, line));
        if !counts {
            say(
                "due",
                "it counts no more, and is fetched before the next page".to_owned(),
            );
        }
        if let Some(asked) = robots.asked_delay() {
            say("crawl delay", delay(asked));
        }
        if let Some(usage) = robots.content_usage(url.as_url()) {
            say("content usage", usage.to_owned());
        }
    }
    facts.extend(stored);
    Ok(facts)
}

/// What was answered, as the crawl has stored it: the status and the class of the error.
fn answer(status: Option<&str>, error: Option<&str>) -> Answer {
    match (status.and_then(|status| status.parse().ok()), error) {
        (_, Some("too_many_redirects")) => Answer::RedirectsWithoutEnd,
        (Some(status), _) => Answer::Status(status),
        (None, _) => Answer::Silence,
    }
}

fn decision(verdict: &Verdict, line: Option<String>) -> String {
    match (verdict, line) {
        (Verdict::Allowed, Some(line)) => format!("allowed by {line}"),
        (Verdict::Allowed, None) => "allowed: no rule speaks of it".to_owned(),
        (Verdict::Disallowed { .. }, Some(line)) => format!("forbidden by {line}"),
        (Verdict::Disallowed { rule }, None) => format!("forbidden by {rule}"),
    }
}

/// The delay that a file asks for, and what is kept of it.
fn delay(asked: Duration) -> String {
    let shown = |span: Duration| humantime::format_duration(span).to_string();
    if asked > MAX_CRAWL_DELAY {
        format!(
            "{}, the most that is kept; it asks for {}",
            shown(MAX_CRAWL_DELAY),
            shown(asked)
        )
    } else {
        shown(asked)
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Reason;

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
    fn the_guards_count_as_the_scope_does() {
        let limits = TrapLimits::default();
        let said = |path: &str| {
            let url = PageUrl::parse(&format!("http://h.test{path}")).unwrap();
            guards(&url, Some(3), &limits)
        };
        assert_eq!(
            said("/a/b/a//c"),
            "depth 3 of 20, 22 of 2048 characters, 4 of 20 segments, one of them 2 of 3 times"
        );
        assert!(said("/").ends_with("0 of 20 segments, one of them 0 of 3 times"));

        let scope = Scope::new(ScopeKind::Any, limits);
        let check = |depth: u16, path: &str, shown: &str, expected: Decision| {
            let url = PageUrl::parse(&format!("http://h.test{path}")).unwrap();
            let said = guards(&url, Some(depth), &limits);
            assert!(said.contains(shown), "{said}: {shown}");
            assert_eq!(scope.decide(&url, depth), expected, "{said}");
        };
        let beyond = Decision::Reject;
        check(20, "/", "depth 20 of 20", Decision::Accept);
        check(21, "/", "depth 21 of 20", beyond(Reason::TooDeep));
        let long = |length: usize| format!("/{}", "x".repeat(length - "http://h.test/".len()));
        check(0, &long(2_048), "2048 of 2048", Decision::Accept);
        check(0, &long(2_049), "2049 of 2048", beyond(Reason::TooLong));
        let deep = |n: usize| (0..n).map(|n| format!("//{n}")).collect::<String>();
        check(0, &deep(20), "20 of 20 segments", Decision::Accept);
        check(
            0,
            &deep(21),
            "21 of 20 segments",
            beyond(Reason::TooManySegments),
        );
        let again = |n: usize| "/a/b".repeat(n);
        check(0, &again(3), "3 of 3 times", Decision::Accept);
        check(
            0,
            &again(4),
            "4 of 3 times",
            beyond(Reason::RepeatedSegment),
        );
    }

    #[test]
    fn what_is_stored_of_an_answer_is_judged_as_the_answer_was() {
        for (status, error, expected) in [
            (Some("302"), Some("too_many_redirects"), Access::AllowAll),
            (Some("302"), None, Access::Defer),
            (Some("404"), None, Access::AllowAll),
            (Some("200"), None, Access::Rules),
            (None, Some("connect"), Access::Defer),
        ] {
            assert_eq!(access(answer(status, error)), expected, "{status:?}");
        }
    }

    #[test]
    fn a_delay_above_the_most_is_flagged() {
        assert_eq!(delay(Duration::from_millis(2_500)), "2s 500ms");
        assert_eq!(delay(Duration::from_secs(300)), "5m");
        assert_eq!(
            delay(Duration::from_secs(86_400)),
            "5m, the most that is kept; it asks for 1day"
        );
        assert!(delay(Duration::MAX).starts_with("5m, the most"));
        assert_eq!(unhex("00ff7a"), [0, 255, b'z']);
    }
}
