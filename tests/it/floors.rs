//! A module imports from lower floors only (docs/ARCHITECTURE.md).

use std::fs;
use std::path::{Path, PathBuf};

/// The floors from the ground up, with the modules of each.
const FLOORS: [&[&str]; 6] = [
    &["canon", "clock", "exchange"],
    &["extract", "robots", "schedule", "scope"],
    &["db", "fetch", "frontier", "pages", "politeness"],
    &["crawl"],
    &["lab", "status"],
    &["cli", "config"],
];

/// Neighbours that may know each other.
const NEIGHBOURS: [(&str, &[&str]); 4] = [
    ("exchange", &["clock"]),
    ("frontier", &["db", "pages"]),
    ("pages", &["db"]),
    ("cli", &["config"]),
];

/// Crates that only some modules may know.
const CRATES: [(&str, &[&str]); 9] = [
    ("sqlx", &["db", "frontier", "lab", "pages", "status", "cli"]),
    ("reqwest", &["fetch"]),
    ("hyper", &["fetch"]),
    ("hickory_resolver", &["fetch"]),
    ("robotxt", &["robots"]),
    (
        "tokio",
        &[
            "crawl",
            "db",
            "fetch",
            "frontier",
            "lab",
            "pages",
            "politeness",
            "status",
            "cli",
        ],
    ),
    ("clap", &["cli"]),
    ("axum", &["cli"]),
    ("indicatif", &["cli"]),
];

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|modules| modules.contains(&module))
}

fn may_know(module: &str, other: &str) -> bool {
    let neighbours = NEIGHBOURS
        .iter()
        .find(|(name, _)| *name == module)
        .map_or(&[][..], |(_, others)| others);
    let views_know_the_crawl = floor(module) == Some(4) && other == "crawl";
    module == other
        || neighbours.contains(&other)
        || (floor(other) < floor(module) && !views_know_the_crawl)
}

/// Names the modules of this crate that a source names, by `crate::name` or `crate::{name, …}`.
fn imports(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        match rest.strip_prefix('{') {
            Some(group) => found.extend(heads(group)),
            None => found.push(word(rest)),
        }
    }
    found
}

/// Returns the first word of each member of a `{…}` group, of its outer level alone.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut heads) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                heads.push(word(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    heads
}

fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

fn complaints(module: &str, source: &str) -> Vec<String> {
    let modules = imports(source)
        .into_iter()
        .filter(|other| floor(other).is_some() && !may_know(module, other));
    let crates = CRATES.iter().filter(|(name, modules)| {
        let path = format!("{name}::");
        let mut code = source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        !modules.contains(&module)
            && code.any(|line| {
                line.match_indices(&path).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                })
            })
    });
    modules
        .chain(crates.map(|(name, _)| (*name).to_owned()))
        .collect()
}

/// Returns every source file with its module.
fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(&root).unwrap();
                let first = below
                    .components()
                    .next()
                    .unwrap()
                    .as_os_str()
                    .to_string_lossy();
                found.push((first.trim_end_matches(".rs").to_owned(), path));
            }
        }
    }
    found
}

#[test]
fn every_module_imports_from_lower_floors_only() {
    let mut found = Vec::new();
    for (module, path) in sources()
        .iter()
        .filter(|(module, _)| module != "lib" && module != "main")
    {
        assert!(
            floor(module).is_some(),
            "{} stands on no floor",
            path.display()
        );
        for other in complaints(module, &fs::read_to_string(path).unwrap()) {
            found.push(format!("{} knows {other}", path.display()));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn one_module_prints() {
    // The last is a test, which says how many pages it read.
    let may = [
        "cli/output.rs",
        "cli/logging.rs",
        "cli/progress.rs",
        "extract/differential.rs",
    ];
    for (_, path) in sources() {
        let source = fs::read_to_string(&path).unwrap();
        let printer = ["io::stdout()", "io::stderr()", "println!("]
            .into_iter()
            .find(|printer| source.contains(printer));
        let allowed = may.iter().any(|file| path.ends_with(file));
        assert!(
            allowed || printer.is_none(),
            "{} has {printer:?}",
            path.display()
        );
    }
}

#[test]
fn an_import_from_a_higher_floor_is_found_in_each_way_of_writing_it() {
    assert_eq!(
        complaints("scope", "use crate::frontier::Task;"),
        ["frontier"]
    );
    assert_eq!(
        complaints(
            "scope",
            "use crate::{canon::{PageUrl, host}, db, crawl::run};"
        ),
        ["db", "crawl"]
    );
    assert_eq!(
        complaints("fetch", "    let x = crate::config::Config::default();"),
        ["config"]
    );
    assert_eq!(complaints("status", "use crate::crawl::run;"), ["crawl"]);
    assert_eq!(
        complaints("fetch", "use crate::frontier::Task;"),
        ["frontier"]
    );
    assert_eq!(complaints("crawl", "use sqlx::PgPool;"), ["sqlx"]);
    assert_eq!(
        complaints("extract", "async fn f() { tokio::task::yield_now().await }"),
        ["tokio"]
    );
    assert!(
        complaints(
            "crawl",
            "//! [`crate::cli`] calls it.\nuse crate::{fetch, frontier::Claim};"
        )
        .is_empty()
    );
    assert!(complaints("cli", "use crate::config::Config;\nuse axum::Router;").is_empty());
}
