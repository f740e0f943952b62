//! docs/RFC9309.md names a test for each clause, and each of them is there.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All sources under a folder, as one text.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

/// The names in back quotes in the last column of a row.
fn tests_of(row: &str) -> Vec<&str> {
    let cells: Vec<&str> = row.trim().trim_matches('|').split(" | ").collect();
    cells[cells.len() - 1]
        .split('`')
        .skip(1)
        .step_by(2)
        .collect()
}

/// The names of all tests in a text: functions with a test's attribute among the attributes and remarks above them.
fn tests(code: &str) -> HashSet<&str> {
    let (mut tests, mut is_test) = (HashSet::new(), false);
    for line in code.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            let name = line.strip_prefix("async ").unwrap_or(line);
            let name = name
                .strip_prefix("fn ")
                .and_then(|name| name.split_once('('));
            tests.extend(name.filter(|_| is_test).map(|(name, _)| name));
            is_test = false;
        }
    }
    tests
}

#[test]
fn a_function_is_a_test_by_its_attribute() {
    let code = "#[test]\n/// Why.\n#[ignore]\nfn one() {}\nfn two() {}\n  #[tokio::test(x)]\n  async fn three() {}\n#[test]\n\nfn four() {}";
    assert_eq!(tests(code), HashSet::from(["one", "three"]));
}

#[test]
fn each_clause_of_rfc_9309_names_tests_that_are_there() {
    let table = fs::read_to_string(root().join("docs/RFC9309.md")).unwrap();
    let code = sources(&root().join("src")) + &sources(&root().join("tests/it"));
    let known = tests(&code);
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| §"))
        .collect();
    assert!(rows.len() > 20, "{} rows", rows.len());
    for row in rows {
        let tests = tests_of(row);
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            assert!(known.contains(test), "{test} of {row}");
        }
    }
}
