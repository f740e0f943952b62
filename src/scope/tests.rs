use super::*;

#[test]
fn a_rule_of_a_kind_of_its_own_is_no_rule_of_another() {
    let seed = url("http://www.a.test/docs/x");
    let covers = |kind: ScopeKind, own: ScopeKind| {
        let mut scope = Scope::new(kind, TrapLimits::default());
        scope.insert(&Scope::own_rule_for(own, &seed));
        [
            "http://www.a.test/docs/y",
            "http://www.a.test/y",
            "http://a.test/y",
            "http://b.test/y",
        ]
        .iter()
        .filter(|text| scope.contains(&url(text)))
        .count()
    };
    for kind in [ScopeKind::Host, ScopeKind::Site, ScopeKind::Prefix] {
        let own = [
            ScopeKind::Prefix,
            ScopeKind::Host,
            ScopeKind::Site,
            ScopeKind::Any,
        ];
        assert_eq!(own.map(|own| covers(kind, own)), [1, 2, 3, 4], "{kind}");
    }
    // A site that is called as a host of another seed's rule.
    let mut scope = Scope::new(ScopeKind::Host, TrapLimits::default());
    scope.insert("a.test");
    assert!(!scope.contains(&url("http://www.a.test/")));
    assert_eq!(Scope::own_kind("a.test"), None);
    assert_eq!(
        Scope::own_kind("site a.test"),
        Some((ScopeKind::Site, "a.test"))
    );
}

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn scope(kind: ScopeKind, seeds: &[&str]) -> Scope {
    let mut scope = Scope::new(kind, TrapLimits::default());
    for seed in seeds {
        scope.insert(&Scope::rule_for(kind, &url(seed)));
    }
    scope
}

fn check(scope: &Scope, inside: &[&str], outside: &[&str]) {
    for text in inside {
        assert!(
            scope.contains(&url(text)),
            "{text} belongs to {:?}",
            scope.kind()
        );
    }
    for text in outside {
        assert!(
            !scope.contains(&url(text)),
            "{text} does not belong to {:?}",
            scope.kind()
        );
    }
}

#[test]
fn a_seeds_rule_is_a_text_that_people_can_read() {
    for (kind, seed, rule) in [
        (ScopeKind::Host, "https://Example.org/docs/x", "example.org"),
        (ScopeKind::Host, "http://127.0.0.1:8080/", "127.0.0.1:8080"),
        (ScopeKind::Host, "http://[::1]:81/", "[::1]:81"),
        (
            ScopeKind::Site,
            "https://www.example.co.uk:8443/docs/x",
            "example.co.uk",
        ),
        (
            ScopeKind::Prefix,
            "https://example.org/docs/x?y=/z",
            "https://example.org/docs/",
        ),
        (
            ScopeKind::Prefix,
            "https://example.org/%7eme/",
            "https://example.org/~me/",
        ),
        (
            ScopeKind::Prefix,
            "http://example.org:81",
            "http://example.org:81/",
        ),
        (ScopeKind::Any, "https://example.org/", "*"),
    ] {
        assert_eq!(Scope::rule_for(kind, &url(seed)), rule);
    }
}

#[test]
fn host_scope_is_the_hosts_of_the_seeds_over_http_and_https() {
    let scope = scope(
        ScopeKind::Host,
        &["https://example.org/docs/", "http://127.0.0.1:8080/"],
    );
    check(
        &scope,
        &[
            "http://example.org/",
            "https://EXAMPLE.org/x?y",
            "http://127.0.0.1:8080/a",
            "https://127.0.0.1:8080/a",
        ],
        &[
            "https://www.example.org/",
            "https://example.org:8443/",
            "http://127.0.0.1/",
            "http://127.0.0.1:8081/",
        ],
    );
}

#[test]
fn site_scope_is_all_hosts_of_the_registrable_domain() {
    let scope = scope(
        ScopeKind::Site,
        &[
            "https://www.example.co.uk/",
            "https://me.github.io/",
            "http://127.0.0.1:81/",
        ],
    );
    check(
        &scope,
        &[
            "https://a.b.example.co.uk:81/",
            "http://example.co.uk/",
            "https://me.github.io/x",
            "http://127.0.0.1:82/",
        ],
        &[
            "https://other.co.uk/",
            "https://you.github.io/",
            "https://notexample.co.uk/",
            "http://127.0.0.2/",
        ],
    );
}

#[test]
fn prefix_scope_is_the_folder_of_the_seed() {
    let scope = scope(
        ScopeKind::Prefix,
        &["https://example.org/docs/start.html", "http://o.test/"],
    );
    check(
        &scope,
        &[
            "http://example.org/docs/",
            "https://example.org/docs/a/b?c",
            "https://example.org/d%6fcs/a",
            "https://o.test/x/y",
        ],
        &[
            "https://example.org/",
            "https://example.org/docs",
            "https://example.org/docs2/",
            "https://example.org/Docs/",
            "https://example.org:81/docs/",
        ],
    );
}

#[test]
fn any_scope_needs_no_rules_and_other_kinds_do() {
    let far = url("https://far.test/");
    assert!(Scope::new(ScopeKind::Any, TrapLimits::default()).contains(&far));
    for kind in [ScopeKind::Host, ScopeKind::Site, ScopeKind::Prefix] {
        assert!(!Scope::new(kind, TrapLimits::default()).contains(&far));
        let mut scope = Scope::new(kind, TrapLimits::default());
        ["", "  ", "http://["]
            .into_iter()
            .for_each(|rule| scope.insert(rule));
        assert!(!scope.contains(&far));
    }
}

#[test]
fn what_is_outside_is_rejected_before_any_limit_is_looked_at() {
    let scope = scope(ScopeKind::Host, &["http://h/"]);
    assert_eq!(scope.decide(&url("http://h/a"), 20), Decision::Accept);
    assert_eq!(
        scope.decide(&url("http://o/a"), 99),
        Decision::Reject(Reason::OutOfScope)
    );
}

#[test]
fn each_limit_is_the_last_value_that_passes() {
    let scope = scope(ScopeKind::Host, &["http://h/"]);
    let path = |segments: usize| {
        format!(
            "http://h/{}",
            (0..segments).map(|n| format!("{n}/")).collect::<String>()
        )
    };
    let long = |length: usize| format!("http://h/{}", "x".repeat(length - "http://h/".len()));
    for (text, depth, decision) in [
        ("http://h/".to_owned(), 20, Decision::Accept),
        (
            "http://h/".to_owned(),
            21,
            Decision::Reject(Reason::TooDeep),
        ),
        (long(2048), 0, Decision::Accept),
        (long(2049), 0, Decision::Reject(Reason::TooLong)),
        (path(20), 0, Decision::Accept),
        (path(21), 0, Decision::Reject(Reason::TooManySegments)),
        ("http://h/a/b/a/b/a/b/".to_owned(), 0, Decision::Accept),
        (
            "http://h/a/b/a/b/a/b/a".to_owned(),
            0,
            Decision::Reject(Reason::RepeatedSegment),
        ),
        ("http://h/a//b//c//d////".to_owned(), 0, Decision::Accept),
        ("http://h/a?a/a/a/a/a/a".to_owned(), 0, Decision::Accept),
    ] {
        assert_eq!(scope.decide(&url(&text), depth), decision, "{text}");
    }
}

#[test]
fn a_link_without_scheme_that_stacks_up_ends_after_three_repeats() {
    let scope = scope(ScopeKind::Host, &["http://h/"]);
    let mut page = url("http://h/p/");
    let mut steps = 0;
    while scope.decide(&page, 0) == Decision::Accept {
        page = page.join("www.partner.test/pol/").unwrap();
        steps += 1;
    }
    assert_eq!(
        (steps, scope.decide(&page, 0)),
        (4, Decision::Reject(Reason::RepeatedSegment))
    );
}

#[test]
fn a_seeds_redirect_to_itself_with_www_or_https_widens() {
    for (seed, target, does) in [
        ("http://example.org/", "https://example.org/", true),
        ("http://example.org/", "https://www.example.org/", true),
        (
            "https://www.example.org/a?b",
            "https://example.org/a?b",
            true,
        ),
        ("https://example.org/", "http://www.example.org/", true),
        ("http://h.test:81/a", "http://www.h.test:81/a", true),
        // The front page leads where the owner wants it.
        ("http://example.org/", "https://www.example.org/en/", true),
        ("http://example.org/a", "https://www.example.org/en/", false),
        ("http://example.org/?a", "https://www.example.org/", false),
        ("http://example.org/", "https://m.example.org/", false),
        ("http://example.org/", "https://other.org/", false),
        ("http://example.org/", "https://www.www.example.org/", false),
        ("http://example.org:81/", "https://example.org/", false),
        ("http://example.org/", "http://example.org/", false),
        ("http://example.org/", "http://example.org/b", false),
    ] {
        assert_eq!(widens(&url(seed), &url(target)), does, "{seed} to {target}");
    }
}

#[test]
fn a_seed_with_a_scope_of_its_own_widens_by_that() {
    let mut scope = Scope::new(ScopeKind::Host, TrapLimits::default());
    for (rule, seed, added) in [
        (
            "prefix https://e.org/docs/",
            "https://e.org/docs/",
            "prefix https://www.e.org/docs/",
        ),
        ("site s.org", "https://a.s.org/", "site s.org"),
        ("f.org", "https://f.org/docs/", "www.f.org"),
        // Nobody knows whose it is.
        ("prefix https://g.org/docs/", "https://g.org/", "www.g.org"),
        // Two seeds of one URL: the wider one.
        ("e.org", "https://e.org/docs/", "www.e.org"),
    ] {
        scope.insert(rule);
        let target = seed.replace("https://", "https://www.");
        assert_eq!(scope.widened(&url(seed), &url(&target)), added, "{rule}");
    }
}

#[test]
fn kinds_are_written_and_read_as_the_same_word() {
    for kind in ScopeKind::ALL {
        assert_eq!(kind.to_string().parse::<ScopeKind>().unwrap(), kind);
        assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
    }
    assert_eq!(
        "Host".parse::<ScopeKind>().unwrap_err().to_string(),
        "scope \"Host\" is none of host, site, prefix, any"
    );
}

#[test]
fn a_million_rules_take_less_than_64_mb_also_while_the_table_grows() {
    let mut scope = Scope::new(ScopeKind::Host, TrapLimits::default());
    (0..1_000_000).for_each(|n| scope.insert(&format!("h{n}.test")));
    assert_eq!(scope.rules.len(), 1_000_000);
    // A slot is a rule and a control byte; the capacity is 7/8 of the slots, and the table before was half as large.
    let bytes = scope.rules.capacity() * 8 / 7 * (size_of::<u128>() + 1);
    assert!(bytes + bytes / 2 < 64_000_000, "{bytes} bytes");
    check(
        &scope,
        &["https://h999999.test/"],
        &["https://h1000000.test/"],
    );
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn the_last_rule_that_has_an_opinion_decides_and_without_one_the_seeds_do() {
    let scope = scope(ScopeKind::Host, &["http://h.test/"]).with_rules(&rules(&[
        "exclude glob /cal/**",
        "include glob /cal/today",
        "include host o.test",
        "exclude depth >2 on o.test",
    ]));
    let says = |text: &str, depth| scope.decide(&url(text), depth);
    let by_rule = Decision::Reject(Reason::Rule);
    for (text, depth, decision) in [
        ("http://h.test/x", 5, Decision::Accept),
        ("http://h.test/cal/2031", 0, by_rule),
        ("http://h.test/cal/today", 0, Decision::Accept),
        ("http://o.test/", 2, Decision::Accept),
        ("http://o.test/", 3, by_rule),
        ("http://o.test/cal/today", 3, by_rule),
        ("http://o.test/cal/2031", 1, Decision::Accept),
        ("http://p.test/", 0, Decision::Reject(Reason::OutOfScope)),
    ] {
        assert_eq!(says(text, depth), decision, "{text} at depth {depth}");
    }
    let far = url("http://o.test/");
    let judgement = scope.judge(&far, Place::at_depth(3));
    assert_eq!(
        judgement.by,
        By::Rule(&"exclude depth >2 on o.test".parse().unwrap())
    );
}

#[test]
fn each_kind_of_rule_holds_for_what_it_says_and_for_nothing_else() {
    for (rule, yes, no) in [
        (
            "host example.org",
            "https://example.org:81/",
            "http://www.example.org/",
        ),
        (
            "host example.org:81",
            "http://example.org:81/",
            "http://example.org/",
        ),
        (
            "host example.org:80",
            "http://example.org/",
            "https://example.org/",
        ),
        (
            "host *.example.org",
            "http://a.b.example.org/",
            "http://example.org/",
        ),
        (
            "host *.example.org",
            "http://www.example.org/",
            "http://notexample.org/",
        ),
        (
            "host Bücher.example",
            "http://xn--bcher-kva.example/",
            "http://bucher.example/",
        ),
        ("host [::1]:81", "http://[::1]:81/", "http://[::1]/"),
        ("host *", "http://any.test/", "mailto:x"),
        (
            "site example.co.uk",
            "http://a.b.example.co.uk/",
            "http://other.co.uk/",
        ),
        (
            "prefix example.org/docs",
            "http://example.org/docs2/x",
            "http://example.org/doc",
        ),
        (
            "prefix https://example.org/%7eme/",
            "http://example.org/~me/a",
            "http://example.org/me/a",
        ),
        (
            "glob *.pdf",
            "http://h.test/a/b.pdf?x=1",
            "http://h.test/b.pdf/c",
        ),
        (
            "glob /a/*",
            "http://h.test/a/b?next=/c",
            "http://h.test/a/b/c",
        ),
        ("glob /a/**", "http://h.test/a/b/c?d", "http://h.test/b/a/c"),
        ("glob /a?b=*", "http://h.test/a?b=1", "http://h.test/a?c=1"),
        (
            "glob **/print",
            "http://h.test/a/b/print",
            "http://h.test/a/printer",
        ),
        (
            "glob http://*.test/{a,b}/[0-9]*",
            "http://x.test/b/7th",
            "https://x.test/b/7th",
        ),
        ("glob /a.b", "http://h.test/a.b", "http://h.test/aXb"),
        (
            "glob /~me/**",
            "http://h.test/%7Eme/a",
            "http://h.test/me/a",
        ),
        (
            "glob /%7eme/*.{b,%63}",
            "http://h.test/~me/a.c",
            "http://h.test/~me/a.d",
        ),
        (
            "glob http://h.test/größe/*",
            "http://h.test/gr%c3%b6%C3%9Fe/1",
            "http://h.test/gr%F6%DFe/1",
        ),
        (
            "glob ü b.*",
            "http://h.test/x/ü b.pdf",
            "http://h.test/x/b.pdf",
        ),
        ("glob /[!x]", "http://h.test/y", "http://h.test/x"),
        (
            r"regex /cal/\d{4}",
            "http://h.test/x/cal/2031/1",
            "http://h.test/cal/jan",
        ),
        ("scheme http", "http://h.test/", "https://h.test/"),
        ("port 8080", "http://h.test:8080/", "http://h.test/"),
        ("port 443", "https://h.test/", "http://h.test/"),
    ] {
        let rule: Rule = format!("exclude {rule}").parse().unwrap();
        assert_eq!(rule.opinion(&url(yes), 0), Some(false), "{rule}: {yes}");
        if let Ok(no) = PageUrl::parse(no) {
            assert_eq!(rule.opinion(&no, 0), None, "{rule}: {no}");
        }
    }
}

#[test]
fn a_rule_about_media_types_has_no_opinion_of_urls_and_its_own_of_answers() {
    let scope = Scope::new(ScopeKind::Any, TrapLimits::default()).with_rules(&rules(&[
        "include type image/*",
        "exclude type image/gif",
        "include type image/gif on gifs.test",
        "exclude type text/plain",
    ]));
    let wants = |text: &str, media_type| scope.wants_type(&url(text), media_type);
    assert_eq!(wants("http://h.test/", "image/png"), Some(true));
    assert_eq!(wants("http://h.test/", "image/gif"), Some(false));
    assert_eq!(wants("http://gifs.test/", "image/gif"), Some(true));
    assert_eq!(wants("http://h.test/", "text/plain"), Some(false));
    assert_eq!(wants("http://h.test/", "text/html"), None);
    assert_eq!(
        scope.decide(&url("http://h.test/a.gif"), 0),
        Decision::Accept
    );
}

#[test]
fn what_is_wrong_with_a_rule_is_said_with_the_rule() {
    let said = |text: &str| text.parse::<Rule>().unwrap_err().to_string();
    for (rule, words) in [
        ("", r#"begins with "include" or "exclude""#),
        ("allow glob *", r#"begins with "include" or "exclude""#),
        ("exclude", r#""" is none of host, site"#),
        ("exclude path /x", r#""path" is none of host, site"#),
        ("exclude glob", "an empty glob"),
        ("exclude glob a/b", "a glob begins with /"),
        ("exclude glob /[a", "a [ without its ]"),
        ("exclude glob /[/]", "a set [/] of other than"),
        ("exclude glob /{a", "a { without its }"),
        ("exclude glob /[ä]", "a set [ä] of other than"),
        (
            "exclude glob http://bücher.test/**",
            "write the host as xn--",
        ),
        ("exclude regex größe", "as %C3%B6"),
        ("exclude prefix http://h.test/a?b=1", "has a query"),
        (
            "exclude prefix http://h.test/a#b",
            "has a query or a fragment",
        ),
        ("exclude regex a(b", "unclosed group"),
        ("exclude regex (a{500}){500}", "more than 256 KiB"),
        ("exclude depth 3", "write >3 or <3"),
        ("exclude depth >70000", "write >3 or <3"),
        ("exclude scheme ftp", "neither http nor https"),
        ("exclude port 70000", "no port"),
        ("exclude type pdf", "no media type"),
        ("exclude host a/b", "no host"),
        ("exclude host *.*", "no host"),
        ("exclude glob *.pdf on a/b", "no host"),
        (
            "exclude prefix http://[",
            "a prefix is the beginning of a URL",
        ),
    ] {
        let said = said(rule);
        assert!(said.contains(words), "{rule}: {said}");
        assert!(said.contains(&format!("{rule:?}")), "{rule}: {said}");
    }
    let long = format!("exclude glob /{}", "x".repeat(3_000));
    assert!(said(&long).contains("a rule of 3014 characters"));
}

#[test]
fn a_pattern_that_would_take_a_backtracker_for_ever_takes_no_time() {
    let rule: Rule = "exclude regex (a*)*(a*)*(a*)*b$".parse().unwrap();
    let glob: Rule = format!("exclude glob /{}b", "*a".repeat(60))
        .parse()
        .unwrap();
    let long = url(&format!("http://h.test/{}", "a".repeat(2_000)));
    assert_eq!(rule.opinion(&long, 0), None);
    assert_eq!(glob.opinion(&long, 0), None);
}

#[test]
fn a_url_that_is_too_long_is_no_business_of_the_rules() {
    let scope = scope(ScopeKind::Host, &["http://h.test/"])
        .with_rules(&rules(&["include regex a", "exclude glob /**"]));
    let long = |host: &str| url(&format!("http://{host}/{}", "a".repeat(3_000)));
    assert_eq!(
        scope.decide(&long("h.test"), 0),
        Decision::Reject(Reason::TooLong)
    );
    assert_eq!(
        scope.decide(&long("o.test"), 0),
        Decision::Reject(Reason::OutOfScope)
    );
}

#[test]
fn extra_hops_take_in_what_no_rule_speaks_of_and_nothing_that_one_leaves_out() {
    let scope = scope(ScopeKind::Host, &["http://in.test/"])
        .with_rules(&rules(&["exclude host bad.test"]))
        .with_extra_hops(1);
    let judge = |text: &str, outside| {
        let place = Place { depth: 1, outside };
        scope.judge(&url(text), place).decision
    };
    assert_eq!(judge("http://in.test/", 1), Decision::Accept);
    assert_eq!(judge("http://out.test/", 1), Decision::Accept);
    assert_eq!(
        judge("http://out.test/", 2),
        Decision::Reject(Reason::OutOfScope)
    );
    assert_eq!(judge("http://bad.test/", 1), Decision::Reject(Reason::Rule));
    assert!(!scope.is_inside(&url("http://out.test/"), 1));
    // Of a URL of which only the depth is known no hop is allowed.
    assert_eq!(
        scope.decide(&url("http://out.test/"), 1),
        Decision::Reject(Reason::OutOfScope)
    );
}

#[test]
fn seeds_rules_of_several_kinds_do_not_mix() {
    let mut scope = Scope::new(ScopeKind::Host, TrapLimits::default());
    scope.insert("h.test");
    scope.insert_as(ScopeKind::Site, "s.test");
    scope.insert_as(ScopeKind::Prefix, "http://p.test/docs/");
    check(
        &scope,
        &["http://h.test/", "http://a.s.test/", "http://p.test/docs/a"],
        &["http://a.h.test/", "http://p.test/"],
    );
    scope.insert_as(ScopeKind::Any, "*");
    check(&scope, &["http://far.test/"], &[]);
}

#[test]
fn what_grows_in_a_query_has_its_limits() {
    let scope = scope(ScopeKind::Host, &["http://h/"]);
    let query = |n: usize, pair: &dyn Fn(usize) -> String| {
        let pairs: Vec<String> = (0..n).map(pair).collect();
        format!("http://h/?{}", pairs.join("&"))
    };
    let facets = |n| query(n, &|k| format!("f={k}"));
    let again = |n| query(n, &|_| "x=1".to_owned());
    let reject = Decision::Reject;
    for (text, decision) in [
        (facets(30), Decision::Accept),
        (facets(31), reject(Reason::TooManyParameters)),
        (again(3), Decision::Accept),
        (again(4), reject(Reason::RepeatedParameter)),
        ("http://h/?a=%252525x".to_owned(), Decision::Accept),
        (
            "http://h/?a=%25252525x".to_owned(),
            reject(Reason::NestedEscapes),
        ),
        ("http://h/?a&amp;amp;amp;b".to_owned(), Decision::Accept),
        (
            "http://h/?a&amp;amp;amp;amp;b".to_owned(),
            reject(Reason::NestedEscapes),
        ),
        ("http://h/?%25&%25&%25a&%25b".to_owned(), Decision::Accept),
    ] {
        assert_eq!(scope.decide(&url(&text), 0), decision, "{text}");
    }
}

#[test]
fn dates_far_ahead_are_a_calendars_and_numbers_are_no_dates() {
    let mut scope = scope(ScopeKind::Host, &["http://h/"]);
    let far = url("http://h/cal/2032/01");
    assert_eq!(
        scope.decide(&far, 0),
        Decision::Accept,
        "nobody said what year it is"
    );
    scope.set_year(2026);
    for text in [
        "http://h/cal/2032/01",
        "http://h/events/2032-1-7/",
        "http://h/?year=2032",
        "http://h/?date=20320101",
        "http://h/?d=2032-01",
        "http://h/?calendar=2032",
        "http://h/?y=2032&m=5",
        "http://h/?from=2032-05-01",
        "http://h/?month=203205",
        "http://h/?birthyear=2040",
    ] {
        assert_eq!(
            scope.decide(&url(text), 0),
            Decision::Reject(Reason::FarDate),
            "{text}"
        );
    }
    for text in [
        "http://h/cal/2031/12",
        "http://h/archive/1899/12",
        "http://h/item/2099",
        "http://h/item/2099/77",
        "http://h/?id=2099",
        "http://h/?year=3200",
        "http://h/20990/12",
        "http://h/model-2050-x/",
        "http://h/thread/2345/2",
        "http://h/?from=2040",
        "http://h/?x=3&y=2048",
        "http://h/?y=2048&m=77",
        "http://h/?candidate=2040",
        "http://h/?calendar=2999",
        "http://h/item/203512/3",
    ] {
        assert_eq!(scope.decide(&url(text), 0), Decision::Accept, "{text}");
    }
}

/// T05 of the field cases.
#[test]
fn a_root_relative_path_one_deeper_each_time_ends() {
    let scope = scope(ScopeKind::Host, &["http://h/"]);
    let mut path = "/d/1/".to_owned();
    let mut pages = 0;
    while scope.decide(&url(&format!("http://h{path}")), 0) == Decision::Accept {
        path.push_str("1/");
        pages += 1;
    }
    assert_eq!(pages, 3);
}

/// T06 of the field cases: the site echoes its query, escaped once more each time.
#[test]
fn a_query_that_is_escaped_once_more_each_time_ends() {
    let scope = scope(ScopeKind::Host, &["http://h/"]);
    for escape in [
        |query: &str| query.replace('&', "&amp;"),
        |query: &str| query.replace('%', "%25").replace('&', "%26"),
        |query: &str| query.to_owned(),
    ] {
        let mut query = "a=1&b=2".to_owned();
        let mut pages = 0;
        while scope.decide(&url(&format!("http://h/?{query}")), 0) == Decision::Accept {
            query = format!("{}&x=1", escape(&query));
            pages += 1;
        }
        assert!((2..=6).contains(&pages), "{pages} pages, then {query}");
    }
}

#[test]
fn reasons_have_words_of_their_own() {
    let mut words: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    for (place, reason) in Reason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, place, "counters stand in this order");
        assert_eq!(reason.of_redirect(), format!("redirect_{reason}"));
    }
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Reason::ALL.len());
}
