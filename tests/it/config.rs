//! The configuration: one list of keys, three layers, all complaints at once.

use std::path::Path;

use pgcrawl::config::{Config, DEFAULT_TOML, FlagValue, KEYS, Layers, Origin, Problem};

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn complaints(text: &str) -> Vec<Problem> {
    Layers::new()
        .toml(Path::new("pgcrawl.toml"), text)
        .finish()
        .expect_err("the file is wrong")
        .0
}

#[test]
fn the_default_file_holds_every_key_with_its_default() {
    let path = Path::new("config/default.toml");
    let loaded = Layers::new().toml(path, DEFAULT_TOML).finish().unwrap();
    let plain = Config::default();
    for key in KEYS {
        assert!(
            matches!(loaded.origin(&key.path()), Origin::File(..)),
            "{} is missing",
            key.path()
        );
        assert_eq!(key.show(&loaded.config), key.show(&plain), "{}", key.path());
    }
}

#[test]
fn the_default_file_explains_each_key_and_marks_its_reach() {
    let lines: Vec<&str> = DEFAULT_TOML.lines().collect();
    let mut keys = KEYS.iter();
    for (number, line) in lines.iter().enumerate() {
        let Some((name, rest)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let key = keys
            .next()
            .expect("the file has no more keys than the program");
        assert_eq!(name, key.name, "the file is in the order of the list");
        assert!(
            lines[number - 1].starts_with("# "),
            "{} has no comment",
            key.path()
        );
        let mark = if key.shared {
            "# shared"
        } else {
            "# this machine"
        };
        assert!(
            rest.ends_with(mark),
            "{} is not marked `{mark}`",
            key.path()
        );
    }
    assert!(keys.next().is_none());
}

#[test]
fn the_later_layer_wins_and_is_named_as_the_origin() {
    let file = "[politeness]\ndelay = \"2s\"\n\n[fetch]\nmax_body = \"1MiB\"\ninsecure = true\n";
    let environment = [
        ("PGCRAWL_POLITENESS_DELAY", "3s"),
        ("PGCRAWL_FETCH_MAX_BODY", "2MiB"),
        ("PGCRAWL_LOG_LEVEL", ""),
    ];
    let loaded = Layers::new()
        .toml(Path::new("pgcrawl.toml"), file)
        .environment(variables(&environment))
        .flags([FlagValue::new("--delay", "politeness.delay", "4s")])
        .finish()
        .unwrap();
    assert_eq!(loaded.config.politeness.delay.as_secs(), 4);
    assert_eq!(*loaded.origin("politeness.delay"), Origin::Flag("--delay"));
    assert_eq!(loaded.config.fetch.max_body.as_u64(), 2 << 20);
    assert_eq!(
        loaded.origin("fetch.max_body").to_string(),
        "PGCRAWL_FETCH_MAX_BODY"
    );
    assert!(loaded.config.fetch.insecure);
    assert_eq!(
        loaded.origin("fetch.insecure").to_string(),
        "pgcrawl.toml:6"
    );
    assert_eq!(
        loaded.config.log.level, "info",
        "an empty variable is not set"
    );
    assert_eq!(*loaded.origin("log.level"), Origin::Default);
}

#[test]
fn all_complaints_come_at_once_each_with_its_line() {
    let found = complaints(
        "colour = 1\n[politeness]\ndealy = \"1s\"\nper_host = \"4\"\n[frontier]\nlease = \"30s\"\nmax_depth = 3\n[fetsch]\n",
    );
    let places: Vec<&str> = found
        .iter()
        .filter_map(|problem| problem.place.as_deref())
        .collect();
    let lines = [1, 3, 4, 7, 8, 6].map(|line| format!("pgcrawl.toml:{line}"));
    assert_eq!(places, lines);
    let hint = |line: usize| {
        found
            .iter()
            .find(|p| p.place == Some(format!("pgcrawl.toml:{line}")))
            .and_then(|p| p.hint.clone())
    };
    assert_eq!(hint(3).as_deref(), Some("did you mean `delay`?"));
    assert_eq!(hint(7).as_deref(), Some("`max_depth` stands in [crawl]"));
    assert_eq!(hint(8).as_deref(), Some("did you mean [fetch]?"));
    assert!(
        hint(6).is_some(),
        "a lease shorter than two fetches has advice"
    );
}

#[test]
fn a_syntax_error_is_told_with_its_line() {
    let found = complaints("[fetch]\nproxy = \n");
    assert_eq!(found[0].place.as_deref(), Some("pgcrawl.toml:2"));
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    for (text, key) in [
        ("[frontier]\nheartbeat = \"60s\"", "frontier.dead_after"),
        (
            "[fetch]\nconnect_timeout = \"61s\"",
            "fetch.connect_timeout",
        ),
        ("[fetch]\ntotal_timeout = \"0s\"", "fetch.total_timeout"),
        ("[fetch]\nmax_body = \"1B\"", "fetch.max_body"),
        ("[fetch]\nproxy = \"ftp://proxy.example\"", "fetch.proxy"),
        ("[frontier]\nhold = \"90s\"", "frontier.hold"),
        ("[shutdown]\ngrace = \"3m\"", "shutdown.grace"),
        ("[politeness]\nper_host = 2", "politeness.per_host"),
        ("[politeness]\nrate = 0", "politeness.rate"),
        ("[politeness]\nconcurrency = 0", "politeness.concurrency"),
        ("[retry]\njitter = 1.5", "retry.jitter"),
        ("[crawl]\nmax_depth = 40000", "crawl.max_depth"),
        ("[crawl]\nmax_pages = 0", "crawl.max_pages"),
        (
            "[identity]\nrobots_token = \"bot/1.0\"",
            "identity.robots_token",
        ),
        ("[identity]\nuser_agent = \"bot\\n\"", "identity.user_agent"),
        ("[identity]\ncontact = \"me\"", "identity.contact"),
        (
            "[database]\nurl = \"mysql://db.example/crawl\"",
            "database.url",
        ),
        ("[log]\nlevel = \"loud\"", "log.level"),
    ] {
        let found = complaints(text);
        assert!(
            found
                .iter()
                .any(|problem| problem.message.starts_with(&format!("{key}: "))),
            "{text}: {found:?}"
        );
        assert!(
            found.iter().all(|problem| problem.hint.is_some()),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn a_rate_so_low_that_no_request_gets_its_turn_is_refused_and_the_delay_recommended() {
    let rate = |rate: &str| format!("[politeness]\nrate = {rate}");
    let file = Path::new("pgcrawl.toml");
    assert!(Layers::new().toml(file, &rate("0.05")).finish().is_ok());
    let found = complaints(&rate("0.049"));
    let [problem] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert!(
        problem.message.starts_with("politeness.rate: "),
        "{problem}"
    );
    let hint = problem.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("politeness.delay"), "{hint}");
}

#[test]
fn a_fetch_must_fit_into_the_time_after_which_its_process_counts_as_gone() {
    let timeout = |span: &str| {
        format!(
            "[fetch]\ntotal_timeout = \"{span}\"\n[frontier]\nlease = \"1h\"\ndead_after = \"75s\""
        )
    };
    let file = Path::new("pgcrawl.toml");
    assert!(Layers::new().toml(file, &timeout("60s")).finish().is_ok());
    let found = complaints(&timeout("60s 1ms"));
    let [problem] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(problem.place.as_deref(), Some("pgcrawl.toml:5"));
    assert!(problem.message.contains("fetch.total_timeout"), "{problem}");
    assert!(problem.hint.is_some());
}

#[test]
fn a_span_of_ages_is_a_complaint_and_no_panic() {
    let ages = "500000000000y";
    for key in [
        "fetch]\ntotal_timeout",
        "frontier]\nheartbeat",
        "frontier]\ndead_after",
    ] {
        assert!(!complaints(&format!("[{key} = \"{ages}\"")).is_empty());
    }
}

#[test]
fn a_secret_is_in_no_complaint_and_in_no_debug_output() {
    let text = "[fetch]\nproxy = \"ftp://me:hunter2@proxy.example\"\n[database]\nurl = \"hunter2\"";
    assert!(!format!("{:?}", complaints(text)).contains("hunter2"));
    let environment = variables(&[("DATABASE_URL", "postgres://me:hunter2@db.example/crawl")]);
    let loaded = Layers::new().environment(environment).finish().unwrap();
    assert!(!format!("{loaded:?}").contains("hunter2"));
}

#[test]
fn a_mistyped_variable_of_ours_warns_and_a_strangers_does_not() {
    let environment = variables(&[
        ("PGCRAWL_FETCH_PROXI", "x"),
        ("PGCRAWL_SERVICE_HOST", "10.0.0.1"),
    ]);
    let loaded = Layers::new().environment(environment).finish().unwrap();
    let [warning] = loaded.warnings.as_slice() else {
        panic!("{:?}", loaded.warnings)
    };
    assert_eq!(warning.place.as_deref(), Some("PGCRAWL_FETCH_PROXI"));
    assert_eq!(
        warning.hint.as_deref(),
        Some("did you mean PGCRAWL_FETCH_PROXY?")
    );
}

#[test]
fn the_precise_variable_wins_over_the_common_one() {
    let environment = [
        ("DATABASE_URL", "postgres://common/a"),
        ("PGCRAWL_DATABASE_URL", "postgres://precise/b"),
    ];
    let loaded = Layers::new()
        .environment(variables(&environment))
        .finish()
        .unwrap();
    assert_eq!(
        loaded.origin("database.url").to_string(),
        "PGCRAWL_DATABASE_URL"
    );
}

#[test]
fn a_named_file_must_exist_and_the_usual_one_need_not() {
    let missing = Path::new("/nowhere/pgcrawl.toml");
    let found = Layers::new().file(Some(missing)).finish().unwrap_err().0;
    assert!(found[0].message.starts_with("cannot read"));
    assert!(Layers::new().file(None).finish().is_ok());
}

#[test]
fn a_statement_may_take_a_quarter_of_the_lease_at_most_and_the_default_gives_way() {
    let of = |text: &str| {
        let loaded = Layers::new()
            .toml(Path::new("pgcrawl.toml"), text)
            .finish()
            .unwrap();
        loaded.config.db_settings()
    };
    let second = std::time::Duration::from_secs(1);
    assert_eq!(of("").statement_timeout, 30 * second);
    let short = of(
        "[fetch]\nconnect_timeout = \"5s\"\nidle_timeout = \"5s\"\ntotal_timeout = \"10s\"\n[frontier]\nlease = \"40s\"\n",
    );
    assert_eq!(short.statement_timeout, 10 * second);
    assert!(short.lock_timeout <= short.statement_timeout / 2);
    let told = complaints("[database]\nstatement_timeout = \"31s\"\n");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.contains("database.statement_timeout"));
    assert!(told[0].hint.is_some());
}

#[test]
fn a_direct_url_needs_the_poolers_beside_it_and_neither_is_shown() {
    let direct = "[database]\ndirect_url = \"postgres://me:hunter2@db.example/crawl\"\n";
    let told = complaints(direct);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.contains("database.direct_url"));
    let both = format!("{direct}url = \"postgres://me:hunter2@pool.example:6432/crawl\"\n");
    let loaded = Layers::new()
        .toml(Path::new("pgcrawl.toml"), &both)
        .finish()
        .unwrap();
    assert!(loaded.config.crawl_db_settings().through_pooler);
    assert!(!loaded.config.db_settings().through_pooler);
    let key = KEYS
        .iter()
        .find(|key| key.path() == "database.direct_url")
        .unwrap();
    assert!(!key.show(&loaded.config).to_string().contains("hunter2"));
}
