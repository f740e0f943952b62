//! The configuration: one list of keys, three layers, all complaints at once.

use std::path::Path;

use pgcrawl::config::{Config, DEFAULT_TOML, FlagValue, KEYS, Layers, Origin, Problem, Problems};
use pgcrawl::fetch::{HostRules, Login};
use secrecy::ExposeSecret as _;

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
        ("[fetch]\nheaders = { Cookie = \"a=1\" }", "fetch.headers"),
        (
            "[fetch]\nheaders = { Authorization = \"x\" }",
            "fetch.headers",
        ),
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

/// The settings that a file of entries makes for a URL, as they would be sent.
fn host_rules(text: &str, variables: &[(&str, &str)]) -> Result<HostRules, Problems> {
    let variables = variables_map(variables);
    let file = Path::new("pgcrawl.toml");
    let loaded = Layers::new().toml(file, text).finish()?;
    loaded
        .config
        .host_rules(&|name| variables.get(name).cloned())
}

fn variables_map(pairs: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
    variables(pairs).into_iter().collect()
}

#[test]
fn an_entry_of_hosts_holds_for_its_host_with_its_secrets_from_where_they_stand() {
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("p");
    std::fs::write(&password, "hunter2\n").unwrap();
    let text = format!(
        "[[hosts]]\nhost = [\"a.example\", \"*.b.example\"]\nheaders = {{ X-Api-Key = \"env:API_KEY\" }}\n\
         username = \"me\"\npassword = \"file:{}\"\n\n[[hosts]]\nhost = \"c.example\"\nbearer = \"env:TOKEN\"\n",
        password.display()
    );
    let rules = host_rules(&text, &[("API_KEY", "sesame"), ("TOKEN", "t0ken")]).unwrap();
    let of = |url: &str| rules.of(&url.parse().unwrap());
    let both = of("https://x.b.example/").unwrap();
    assert_eq!(both.headers["x-api-key"], "sesame");
    let Some(Login::Basic { username, password }) = &both.login else {
        panic!("{both:?}")
    };
    assert_eq!(
        (username.as_str(), password.expose_secret()),
        ("me", "hunter2")
    );
    let Some(Login::Bearer(token)) = &of("https://c.example/").unwrap().login else {
        panic!("{rules:?}")
    };
    assert_eq!(token.expose_secret(), "t0ken");
    assert!(of("https://d.example/").is_none());
}

/// What is wrong with a file when requests are about to be made.
fn session_complaints(text: &str) -> Vec<String> {
    let file = Path::new("pgcrawl.toml");
    let loaded = Layers::new().toml(file, text).finish().unwrap();
    let Problems(found) = loaded.config.sessions(&|_| None, 1_000).unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_cookie_file_is_read_and_its_bad_lines_are_told_with_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cookies.txt");
    let text = format!(
        "[fetch]\ncookie_file = \"{}\"\ncookies = \"host\"\nheaders = {{ X-A = \"env:A\" }}\n[[hosts]]\nhost = \"a.example\"\nbearer = \"env:B\"\n",
        path.display()
    );
    let bad = "# c\na.example\tFALSE\t/\tFALSE\t0\tn\thunter2\na.example\tFALSE\t/\tFALSE\tsoon\tn\thunter2\nhunter2\n";
    std::fs::write(&path, bad).unwrap();
    let told = session_complaints(&text);
    let place = |line: usize| format!("{}:{line}: ", path.display());
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        told[0].contains("fetch.headers: x-a: the variable A"),
        "{told:?}"
    );
    assert!(told[1].contains("hosts.bearer: the variable B"), "{told:?}");
    assert!(
        told[2].starts_with(&place(3)) && told[3].starts_with(&place(4)),
        "{told:?}"
    );
    assert!(!told.concat().contains("hunter2"));

    let text = format!("[fetch]\ncookie_file = \"{}\"\n", path.display());
    std::fs::write(&path, "a.example\tFALSE\t/\tFALSE\t999\tn\tv\n").unwrap();
    assert!(session_complaints(&text)[0].contains("have run out"));
    std::fs::remove_file(&path).unwrap();
    assert!(session_complaints(&text)[0].contains("cannot read the cookie file"));
}

#[test]
fn headers_for_all_hosts_are_a_table_in_the_file_and_the_environment() {
    let file = "[fetch]\nheaders = { Accept-Language = \"de\", X-A = \"env:A\" }\n";
    let loaded = Layers::new()
        .toml(Path::new("pgcrawl.toml"), file)
        .finish()
        .unwrap();
    let sessions = loaded.config.sessions(&|_| Some("a".into()), 0).unwrap();
    assert_eq!(sessions.headers["accept-language"], "de");
    assert_eq!(sessions.headers["x-a"], "a");
    let environment = variables(&[("PGCRAWL_FETCH_HEADERS", "{ X-B = \"b\" }")]);
    let loaded = Layers::new().environment(environment).finish().unwrap();
    let sessions = loaded.config.sessions(&|_| None, 0).unwrap();
    assert_eq!(sessions.headers["x-b"], "b");
}

#[test]
fn every_secret_that_is_missing_is_told_with_its_line() {
    let text = "[[hosts]]\nhost = \"a.example\"\nbearer = \"env:TOKEN\"\n\
                headers = { X-A = \"env:A\", X-B = \"file:/no/such\" }\n\
                [[hosts]]\nhost = \"b.example\"\nusername = \"me\"\npassword = \"env:P\"\n";
    let Problems(found) = host_rules(text, &[]).unwrap_err();
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    let place = |line: usize| format!("pgcrawl.toml:{line}: hosts.");
    assert_eq!(told.len(), 4, "{told:?}");
    for (told, (line, what)) in told.iter().zip([
        (1, "A is not set"),
        (1, "/no/such"),
        (1, "TOKEN is not set"),
        (5, "P is not set"),
    ]) {
        assert!(
            told.starts_with(&place(line)) && told.contains(what),
            "{told}"
        );
    }
}

#[test]
fn complaints_about_hosts_come_all_at_once_with_their_lines_and_without_secrets() {
    let found = complaints(
        "[[hosts]]\nhost = \"https://me:hunter2@a.example\"\nbaerer = \"hunter2\"\n\
         [[hosts]]\nheaders = { Host = \"hunter2\", \"X Y\" = \"hunter2\" }\n\
         [[hosts]]\nhost = \"*.co.uk\"\nbearer = 3\n\
         [[hosts]]\nhost = \"b.example\"\nusername = \"me\"\n\
         [[hosts]]\nhost = \"b.example\"\nusername = \"m:e\"\npassword = \"\"\nbearer = \"hunter2\"\n",
    );
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
    for (line, what) in [
        (2, "no user name or password"),
        (3, "unknown key `baerer`"),
        (5, "Host cannot be set"),
        (5, "\"X Y\" is no name"),
        (4, "has no host"),
        (7, "public suffix"),
        (8, "hosts.bearer"),
        (9, "go together"),
        (12, "b.example has an entry already"),
        (12, "more than one login"),
        (12, "colons"),
    ] {
        let place = format!("pgcrawl.toml:{line}: ");
        assert!(
            told.iter()
                .any(|told| told.starts_with(&place) && told.contains(what)),
            "{line} {what}: {told:#?}"
        );
    }
    let hint = |line: usize| {
        let place = Some(format!("pgcrawl.toml:{line}"));
        found
            .iter()
            .find(|problem| problem.place == place)
            .and_then(|problem| problem.hint.clone())
    };
    assert_eq!(hint(3).as_deref(), Some("did you mean `bearer`?"));
    let found = complaints("[hosts]\nhost = \"a.example\"\n[[host]]\n");
    assert_eq!(
        found[0].hint.as_deref(),
        Some("write [[hosts]], once for each host")
    );
}

#[test]
fn an_identity_that_no_header_or_robots_txt_can_hold_is_refused() {
    for (text, key) in [
        ("user_agent = \"bot\\r\\nx: y\"", "identity.user_agent"),
        ("user_agent = \"b\u{f6}t/1.0\"", "identity.user_agent"),
        ("user_agent = \" \"", "identity.user_agent"),
        ("contact = \"a@example.org\\n\"", "identity.contact"),
        ("contact = \"somewhere\"", "identity.contact"),
        ("robots_token = \"bot/1.0\"", "identity.robots_token"),
        ("robots_token = \"*\"", "identity.robots_token"),
        ("robots_token = \"\"", "identity.robots_token"),
    ] {
        let found = complaints(&format!("[identity]\n{text}\n"));
        assert!(found[0].to_string().contains(key), "{text}: {found:?}");
    }
}

#[test]
fn a_robots_token_that_the_user_agent_does_not_say_is_doubted() {
    let warnings = |text: &str| {
        let loaded = Layers::new().toml(Path::new("p.toml"), text).finish();
        let warnings = loaded.unwrap().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let own = "[identity]\nuser_agent = \"ExampleBot/1.0\"\n";
    let found = warnings(own);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("pgcrawl does not occur in the user agent"),
        "{found:?}"
    );
    assert!(warnings(&format!("{own}robots_token = \"examplebot\"\n")).is_empty());
    assert!(warnings("").is_empty());
}
