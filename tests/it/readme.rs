//! The README says what the program says.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use pgcrawl::cli::{Cli, Exit};

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Returns the block of code behind a marker comment.
fn block<'a>(text: &'a str, marker: &str) -> &'a str {
    let (_, rest) = text
        .split_once(&format!("<!-- {marker} -->"))
        .expect("the marker is there");
    let (_, rest) = rest
        .split_once("```text\n")
        .expect("a block follows the marker");
    rest.split_once("```").expect("the block ends").0
}

#[test]
fn its_usage_equals_the_help() {
    let help = Cli::command().term_width(100).render_help().to_string();
    assert_eq!(block(&file("README.md"), "pgcrawl -h"), help);
}

#[test]
fn its_exit_codes_are_those_of_the_program() {
    let readme = file("README.md");
    for exit in Exit::ALL {
        let row = format!("| {} | {} |", exit.code(), exit.meaning());
        assert!(readme.contains(&row), "{row}");
    }
}

#[test]
fn every_file_it_links_to_is_there() {
    for document in [
        "README.md",
        "CONTRIBUTING.md",
        "docs/ARCHITECTURE.md",
        "docs/BENCHMARKS.md",
        "docs/OPERATING.md",
        "docs/RFC9309.md",
        "docs/SQL.md",
        "docs/GLOSSARY.md",
    ] {
        let text = file(document);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
        let folder = folder.parent().unwrap();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'))
            .map(|(link, _)| link)
        {
            let target = link.split('#').next().unwrap();
            let local = !target.is_empty() && !target.contains("://");
            assert!(
                !local || folder.join(target).exists(),
                "{document} links to {target}"
            );
        }
    }
}
