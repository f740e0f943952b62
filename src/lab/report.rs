//! What the laboratory found, as data: tables of figures, and findings in words that are computed from them.
//!
//! The door renders it as text, Markdown or JSON. A figure keeps its unit in its type and its full value, so that the
//! JSON has numbers where the text has `1.4 GiB`.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// One run of the laboratory.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// Where it was measured.
    pub machine: Machine,
    /// What was asked for, in order.
    pub sections: Vec<SectionReport>,
    /// The field's rules of thumb beside what was measured; those alone that the run has figures for.
    pub rules: Vec<RuleOfThumb>,
}

/// What the figures of a run depend on.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Machine {
    /// By the database's clock, RFC 3339 in UTC.
    pub measured_at: String,
    /// Version of this program.
    pub pgcrawl: &'static str,
    /// `release` or `debug`: how this program was built. A debug build measures itself as much as the server.
    pub build: &'static str,
    /// The server's `server_version`.
    pub server: String,
    /// Cores that this process may use; the server shares them where it runs on the same machine.
    pub cores: usize,
    /// How the sessions reach the server: its address, or `socket`.
    pub reached_by: String,
    /// `fsync`, `synchronous_commit`, `shared_buffers` and others that a figure hangs on, as the server has them.
    pub settings: Vec<(String, String)>,
    /// Median of a commit that writes one row: what a transaction costs here, however little it does. In ms.
    pub commit_ms: f64,
    /// Load average of the last minute before the run, where the system tells it: what else was going on. Far above 0, the figures are not to
    /// be quoted.
    pub load: Option<f64>,
    /// Which size of run: `quick`, `full`, or what a caller made of them.
    pub size: &'static str,
}

/// What one section found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SectionReport {
    /// Its letter.
    pub section: super::Section,
    /// What it is about.
    pub title: &'static str,
    /// On which tables it was measured: raw ones of a few columns, or the schema of a crawl.
    pub tables_used: &'static str,
    /// The figures.
    pub tables: Vec<Table>,
    /// What they say, each computed from them.
    pub findings: Vec<Finding>,
    /// How long the section took, preparations included, in seconds.
    pub took_s: f64,
}

impl SectionReport {
    pub(super) fn new(
        section: super::Section,
        title: &'static str,
        tables_used: &'static str,
    ) -> SectionReport {
        SectionReport {
            section,
            title,
            tables_used,
            tables: Vec::new(),
            findings: Vec::new(),
            took_s: 0.0,
        }
    }

    pub(super) fn observe(&mut self, text: String) {
        self.findings.push(Finding {
            kind: Kind::Observed,
            text,
        });
    }

    /// A goal that the frontier sets itself, met or missed.
    pub(super) fn goal(&mut self, met: bool, text: String) {
        let kind = if met { Kind::Met } else { Kind::Missed };
        self.findings.push(Finding { kind, text });
    }
}

/// A sentence that the figures say.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Whether it answers to a goal.
    pub kind: Kind,
    /// The sentence.
    pub text: String,
}

/// Of which kind a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What was seen.
    Observed,
    /// A goal of the frontier, met in this run.
    Met,
    /// A goal of the frontier, missed in this run.
    Missed,
}

/// A rule of thumb of the field, and what this run measured about it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RuleOfThumb {
    /// As one hears it.
    pub rule: &'static str,
    /// The figures of this run.
    pub measured: String,
}

/// A table of figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// What its rows compare.
    pub title: String,
    columns: &'static [(&'static str, &'static str)],
    rows: Vec<Vec<Cell>>,
    /// How it was measured, and what to beware of; printed below it.
    pub notes: Vec<String>,
}

impl Table {
    /// A table without rows. A column is its key in JSON, with its unit, and its heading for people.
    pub(super) fn new(
        title: impl Into<String>,
        columns: &'static [(&'static str, &'static str)],
    ) -> Table {
        Table {
            title: title.into(),
            columns,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len(), "{}", self.title);
        self.rows.push(cells.into());
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Headings, in order.
    pub fn headings(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(_, heading)| *heading)
    }

    /// Rows, a cell a column.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}

/// A figure with its unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A mean of numbers.
    Mean(f64),
    /// Milliseconds.
    Ms(f64),
    /// Seconds.
    Seconds(f64),
    /// Things a second.
    Rate(f64),
    /// How many times the row that it is compared with.
    Ratio(f64),
    /// Bytes.
    Bytes(u64),
    /// Yes or no.
    Is(bool),
    /// Not measured, or does not apply.
    Nothing,
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    pub(super) fn ms(span: std::time::Duration) -> Cell {
        Cell::Ms(span.as_secs_f64() * 1_000.0)
    }

    pub(super) fn seconds(span: std::time::Duration) -> Cell {
        Cell::Seconds(span.as_secs_f64())
    }

    /// `part / whole`; nothing where the whole is.
    pub(super) fn ratio(part: f64, whole: f64) -> Cell {
        if part.is_finite() && whole > 0.0 {
            Cell::Ratio(part / whole)
        } else {
            Cell::Nothing
        }
    }

    /// Whether it is a figure, which stands to the right.
    pub fn is_figure(&self) -> bool {
        !matches!(self, Cell::Text(_) | Cell::Is(_))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(n) => grouped(*n),
            Cell::Mean(n) => rounded(*n),
            Cell::Ms(n) => format!("{} ms", rounded(*n)),
            Cell::Seconds(n) => format!("{} s", rounded(*n)),
            Cell::Rate(n) => format!("{}/s", rounded(*n)),
            Cell::Ratio(n) => format!("{}x", rounded(*n)),
            Cell::Bytes(n) => bytesize::ByteSize(*n).to_string(),
            Cell::Is(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Cell::Nothing => "–".to_owned(),
        };
        f.pad(&text)
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::Count(n) | Cell::Bytes(n) => serializer.serialize_u64(*n),
            Cell::Mean(n) | Cell::Ms(n) | Cell::Seconds(n) | Cell::Rate(n) | Cell::Ratio(n) => {
                serializer.serialize_f64((n * 10_000.0).round() / 10_000.0)
            }
            Cell::Is(yes) => serializer.serialize_bool(*yes),
            Cell::Nothing => serializer.serialize_none(),
        }
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Row<'a>(&'a Table, &'a [Cell]);
        impl Serialize for Row<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(self.1.len()))?;
                for ((key, _), cell) in self.0.columns.iter().zip(self.1) {
                    map.serialize_entry(key, cell)?;
                }
                map.end()
            }
        }
        let rows: Vec<Row<'_>> = self.rows.iter().map(|row| Row(self, row)).collect();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("title", &self.title)?;
        map.serialize_entry("rows", &rows)?;
        map.serialize_entry("notes", &self.notes)?;
        map.end()
    }
}

/// A number with three significant digits, or all of them from a hundred on, grouped by thousands.
pub(super) fn rounded(n: f64) -> String {
    let size = n.abs();
    if size >= 99.5 {
        grouped(n.round() as u64)
    } else if size >= 9.95 {
        format!("{n:.1}")
    } else if size >= 0.0995 {
        format!("{n:.2}")
    } else {
        format!("{n:.3}")
    }
}

/// A whole number, its thousands set apart by commas.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things that are counted: `1 worker`, `32 workers`.
pub(super) fn counted(n: u64, thing: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_for_people_and_whole_for_programs() {
        let cells = [
            (Cell::Count(1_234_567), "1,234,567", "1234567"),
            (Cell::Ms(0.123_456), "0.12 ms", "0.1235"),
            (Cell::Ms(99.96), "100 ms", "99.96"),
            (Cell::Ratio(40.04), "40.0x", "40.04"),
            (Cell::Rate(54_321.9), "54,322/s", "54321.9"),
            (Cell::Is(true), "yes", "true"),
            (Cell::Nothing, "–", "null"),
        ];
        for (cell, text, json) in cells {
            assert_eq!(cell.to_string(), text);
            assert_eq!(serde_json::to_string(&cell).unwrap(), json);
        }
    }

    #[test]
    fn one_thing_is_no_things() {
        assert_eq!(counted(1, "worker"), "1 worker");
        assert_eq!(counted(1_000, "host"), "1,000 hosts");
    }

    #[test]
    fn a_ratio_to_nothing_is_nothing() {
        assert_eq!(Cell::ratio(3.0, 2.0), Cell::Ratio(1.5));
        assert_eq!(Cell::ratio(3.0, 0.0), Cell::Nothing);
        assert_eq!(Cell::ratio(f64::NAN, 1.0), Cell::Nothing);
    }

    #[test]
    fn a_row_is_an_object_by_the_keys_of_its_columns() {
        let mut table = Table::new("a table", &[("lock", "lock"), ("wall_s", "wall time")]);
        table.row([Cell::text("none"), Cell::Seconds(1.5)]);
        table.note("a note");
        assert_eq!(
            serde_json::to_string(&table).unwrap(),
            r#"{"title":"a table","rows":[{"lock":"none","wall_s":1.5}],"notes":["a note"]}"#
        );
        assert_eq!(table.headings().collect::<Vec<_>>(), ["lock", "wall time"]);
    }
}
