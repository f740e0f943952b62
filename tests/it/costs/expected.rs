//! The figures that are kept, and the comparison with them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use toml::{Table, Value};

const RENEW: &str = "PGCRAWL_RENEW_COSTS=1 cargo test --test it costs::";

/// Tests of one binary run at the same time, and each renews its own section.
static FILE: Mutex<()> = Mutex::new(());

/// What was counted of one piece of work.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) got: u64,
    /// By how much it may differ, either way: what became cheaper shall stay so.
    pub(crate) tolerance_percent: u64,
}

impl Figure {
    /// What is wrong with it, given what was expected.
    fn complaint(&self, expected: Option<u64>) -> Option<String> {
        let Some(expected) = expected else {
            return Some(format!("{}: got {}, none is kept", self.name, self.got));
        };
        let apart = self.got.abs_diff(expected);
        (apart * 100 > expected * self.tolerance_percent).then(|| {
            let change = (self.got as f64 / expected as f64 - 1.0) * 100.0;
            format!(
                "{}: expected {expected}, got {}: {change:+.1} %, and {} % is the tolerance",
                self.name, self.got, self.tolerance_percent
            )
        })
    }
}

/// Compares figures with those of a section of the file, or puts them there, if the environment asks for it.
pub(crate) fn check(section: &str, figures: &[Figure]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/costs/expected.toml");
    let _one_at_a_time = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = std::fs::read_to_string(&path).expect("the figures are kept");
    let mut kept: Table = text.parse().expect("the figures are TOML");
    if std::env::var_os("PGCRAWL_RENEW_COSTS").is_some() {
        let table = figures
            .iter()
            .map(|figure| (figure.name.to_owned(), whole(figure.got)))
            .collect();
        kept.insert(section.to_owned(), Value::Table(table));
        let head: String = text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .fold(String::new(), |head, line| head + line + "\n");
        std::fs::write(&path, format!("{head}\n{kept}")).expect("the checkout is writable");
        return;
    }
    let mut complaints = String::new();
    for figure in figures {
        let expected = kept.get(section).and_then(|table| table.get(figure.name));
        let expected = expected
            .and_then(Value::as_integer)
            .and_then(|n| u64::try_from(n).ok());
        if let Some(complaint) = figure.complaint(expected) {
            writeln!(complaints, "  {complaint}").unwrap();
        }
    }
    assert!(
        complaints.is_empty(),
        "what it costs has changed ({section}):\n{complaints}If that is meant, and its reason is in the commit: {RENEW}"
    );
}

fn whole(n: u64) -> Value {
    Value::Integer(i64::try_from(n).expect("a count"))
}

#[test]
fn a_figure_may_differ_by_its_tolerance_and_no_more_either_way() {
    let complaint = |got| {
        let tolerance_percent = 5;
        let name = "work";
        let figure = Figure {
            name,
            got,
            tolerance_percent,
        };
        figure.complaint(Some(1_000))
    };
    assert_eq!(complaint(1_050), None);
    assert_eq!(complaint(950), None);
    let dearer = "work: expected 1000, got 1051: +5.1 %, and 5 % is the tolerance";
    assert_eq!(complaint(1_051).as_deref(), Some(dearer));
    assert!(complaint(949).is_some());
}
