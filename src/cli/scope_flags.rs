//! Flags that say what belongs to the crawl and how much of it is fetched.

use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use super::flags::{switch, text};
use crate::config::FlagValue;
use crate::scope::Rule;

/// Flags of the commands that crawl.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What to crawl")]
pub struct ScopeFlags {
    /// Take in what this glob covers; repeatable
    ///
    /// `/docs/**` is a path, `http://*/docs/**` a whole URL, `*.html` the last segment of a path. The last of all --include and --exclude
    /// flags that covers a URL decides, whatever --scope says; seeds are visited in any case. They take the place of scope.rules in the
    /// file. Key scope.rules, default none.
    #[arg(long, value_name = "GLOB", value_parser = |text: &str| InOrder::new("include glob", text))]
    include: Vec<InOrder>,

    /// Leave out what this glob covers; repeatable
    ///
    /// As for --include.
    #[arg(long, value_name = "GLOB", value_parser = |text: &str| InOrder::new("exclude glob", text))]
    exclude: Vec<InOrder>,

    /// Take in URLs in which this regex is found; repeatable
    ///
    /// As for --include.
    #[arg(long, value_name = "REGEX", value_parser = |text: &str| InOrder::new("include regex", text), hide_short_help = true)]
    include_regex: Vec<InOrder>,

    /// Leave out URLs in which this regex is found; repeatable
    ///
    /// As for --include.
    #[arg(long, value_name = "REGEX", value_parser = |text: &str| InOrder::new("exclude regex", text), hide_short_help = true)]
    exclude_regex: Vec<InOrder>,

    /// Any rule of the scope, like 'exclude depth >2 on example.org'; repeatable
    ///
    /// config/default.toml lists what a rule may look at. As for --include.
    #[arg(long, value_name = "RULE", value_parser = |text: &str| InOrder::new("", text), hide_short_help = true)]
    rule: Vec<InOrder>,

    /// Also fetch pages outside, so many links behind those inside
    ///
    /// 1 shows where links lead; only links back inside are followed from there. Key scope.extra_hops, default 0.
    #[arg(long, value_name = "HOPS", hide_short_help = true)]
    extra_hops: Option<String>,

    /// Keep a row for each link that is left out
    ///
    /// Excluded, with its reason. Without it only those that look like traps have one, and all are counted. Key scope.keep_excluded,
    /// default false.
    #[arg(long, hide_short_help = true)]
    keep_excluded: bool,

    /// End the whole crawl after so many visits
    ///
    /// Of all machines and runs since it began. Exit code 4. Key budget.pages, default none.
    #[arg(long, value_name = "COUNT", hide_short_help = true)]
    budget_pages: Option<String>,

    /// End the whole crawl after so many payload bytes
    ///
    /// A size like 500MiB. Of all machines and runs. Exit code 4. Key budget.bytes, default none.
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    budget_bytes: Option<String>,

    /// End the whole crawl so long after it began
    ///
    /// A duration like 2days. By the database's clock. Exit code 4. Key budget.duration, default none.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    budget_duration: Option<String>,

    /// Visit so many pages of each host
    ///
    /// Over all machines; the rest becomes excluded. A number, none, or auto: 10000 with --scope site or any. Key budget.pages_per_host,
    /// default auto.
    #[arg(long, value_name = "COUNT", hide_short_help = true)]
    max_pages_per_host: Option<String>,

    /// Make tasks of so many URLs of each host
    ///
    /// Over all machines; further ones are counted. A number, none, or auto: 100000 with --scope site or any. Key budget.urls_per_host,
    /// default auto.
    #[arg(long, value_name = "COUNT", hide_short_help = true)]
    max_urls_per_host: Option<String>,
}

/// A rule with its place among the flags: the last that has an opinion decides, whichever flags they are.
#[derive(Debug, Clone)]
struct InOrder {
    place: usize,
    rule: Rule,
}

impl InOrder {
    /// Flags are read from left to right.
    fn new(begin: &str, text: &str) -> Result<InOrder, crate::scope::RuleError> {
        static PLACES: AtomicUsize = AtomicUsize::new(0);
        Ok(InOrder {
            rule: format!("{begin} {text}").parse()?,
            place: PLACES.fetch_add(1, Ordering::Relaxed),
        })
    }
}

impl ScopeFlags {
    /// Returns the settings that were given.
    pub fn values(&self) -> Vec<FlagValue> {
        let all = [
            self.rules(),
            text("--extra-hops", "scope.extra_hops", &self.extra_hops),
            switch(
                "--keep-excluded",
                "scope.keep_excluded",
                self.keep_excluded,
                "true",
            ),
            text("--budget-pages", "budget.pages", &self.budget_pages),
            text("--budget-bytes", "budget.bytes", &self.budget_bytes),
            text(
                "--budget-duration",
                "budget.duration",
                &self.budget_duration,
            ),
            text(
                "--max-pages-per-host",
                "budget.pages_per_host",
                &self.max_pages_per_host,
            ),
            text(
                "--max-urls-per-host",
                "budget.urls_per_host",
                &self.max_urls_per_host,
            ),
        ];
        all.into_iter().flatten().collect()
    }

    fn rules(&self) -> Option<FlagValue> {
        let lists: [(&str, &[InOrder]); 5] = [
            ("--include", &self.include),
            ("--exclude", &self.exclude),
            ("--include-regex", &self.include_regex),
            ("--exclude-regex", &self.exclude_regex),
            ("--rule", &self.rule),
        ];
        let flag = lists.iter().find(|(_, list)| !list.is_empty())?.0;
        let mut rules: Vec<&InOrder> = lists.iter().flat_map(|(_, list)| *list).collect();
        rules.sort_unstable_by_key(|rule| rule.place);
        let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        Some(FlagValue::new(
            flag,
            "scope.rules",
            toml::Value::from(texts).to_string(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::{Key, Layers};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: ScopeFlags,
    }

    fn shown(line: &[&str], key: &str) -> String {
        let line = Line::try_parse_from(["x"].iter().chain(line)).unwrap();
        let loaded = Layers::new().flags(line.flags.values()).finish().unwrap();
        Key::find_path(key)
            .unwrap()
            .show(&loaded.config)
            .to_string()
    }

    #[test]
    fn rules_keep_the_order_in_which_their_flags_were_typed() {
        let line = [
            "--exclude",
            "**",
            "--include-regex",
            "/docs/[0-9]+",
            "--exclude",
            "*.pdf",
            "--rule",
            "include type image/png",
            "--include",
            "/a/**",
        ];
        assert_eq!(
            shown(&line, "scope.rules"),
            r#"["exclude glob **", "include regex /docs/[0-9]+", "exclude glob *.pdf", "include type image/png", "include glob /a/**"]"#
        );
    }

    #[test]
    fn every_flag_sets_its_key() {
        for (line, key, value) in [
            (&["--extra-hops", "1"][..], "scope.extra_hops", "1"),
            (&["--keep-excluded"], "scope.keep_excluded", "true"),
            (&["--budget-pages", "9"], "budget.pages", "9"),
            (&["--budget-bytes", "1MiB"], "budget.bytes", "\"1MiB\""),
            (
                &["--budget-duration", "2days"],
                "budget.duration",
                "\"2days\"",
            ),
            (&["--max-pages-per-host", "7"], "budget.pages_per_host", "7"),
            (
                &["--max-urls-per-host", "none"],
                "budget.urls_per_host",
                "\"none\"",
            ),
        ] {
            assert_eq!(shown(line, key), value);
        }
    }

    #[test]
    fn a_rule_that_is_none_is_refused_where_it_was_typed() {
        let refused = Line::try_parse_from(["x", "--exclude-regex", "a(b"]);
        let said = refused.err().unwrap().to_string();
        assert!(
            said.contains("--exclude-regex") && said.contains("unclosed group"),
            "{said}"
        );
    }
}
