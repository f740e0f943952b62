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
