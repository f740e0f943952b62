//! What a line of a seed file says: a URL, or a record with columns.
//!
//! A record is a line in all formats, also where CSV would let a quoted field go on in the next: so one wrong quote costs a
//! line and not the rest of the file, and memory is bounded by the longest line.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::canon::PageUrl;
use crate::frontier::Seed;
use crate::scope::ScopeKind;

/// The columns of a record; only the first must be there.
pub(super) const COLUMNS: [&str; 5] = ["url", "priority", "depth", "label", "scope"];

/// Longest label, in characters: it is called by in questions, and each task carries it.
const LABEL_CHARS: usize = 200;

/// How a file of seeds is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// A URL a line.
    #[default]
    Text,
    /// A JSON object a line.
    Jsonl,
    /// Comma-separated values (RFC 4180), the columns' names first.
    Csv,
}

impl Format {
    /// The words for them.
    pub const WORDS: [&str; 3] = ["text", "jsonl", "csv"];

    /// The format of a word.
    pub fn of(word: &str) -> Option<Format> {
        match word {
            "text" => Some(Format::Text),
            "jsonl" => Some(Format::Jsonl),
            "csv" => Some(Format::Csv),
            _ => None,
        }
    }

    /// The format that a file's name tells.
    pub(super) fn of_file(path: &Path) -> Format {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Format::Jsonl,
            "csv" => Format::Csv,
            _ => Format::Text,
        }
    }
}

/// A record as it stands in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    url: String,
    priority: Option<i64>,
    depth: Option<i64>,
    label: Option<String>,
    scope: Option<String>,
}

impl Record {
    fn seed(self) -> Result<Seed, String> {
        let number = |name: &str, value: Option<i64>, from: i16| match value.unwrap_or(0) {
            value if (i64::from(from)..=i64::from(i16::MAX)).contains(&value) => {
                i16::try_from(value).map_err(|error| error.to_string())
            }
            value => Err(format!(
                "{name} is a whole number from {from} to {}, not {value}",
                i16::MAX
            )),
        };
        let priority = number("priority", self.priority, i16::MIN)?;
        let depth = number("depth", self.depth, 0)?.unsigned_abs();
        let label = self.label.map(|label| label.trim().to_owned());
        let label = label.filter(|label| !label.is_empty());
        if label.as_ref().is_some_and(|label| {
            label.chars().count() > LABEL_CHARS || label.contains(char::is_control)
        }) {
            return Err(format!(
                "a label has {LABEL_CHARS} characters at most, and no control characters"
            ));
        }
        let scope = self.scope.filter(|scope| !scope.trim().is_empty());
        let scope: Option<ScopeKind> = scope
            .map(|scope| scope.trim().parse())
            .transpose()
            .map_err(|error: crate::scope::ScopeError| error.to_string())?;
        let url = PageUrl::seed(&self.url).map_err(|error| error.to_string())?;
        Ok(Seed {
            priority,
            depth,
            label: label.map(Arc::from),
            scope,
            ..Seed::from(url)
        })
    }
}

/// Returns the seed of a line with a URL; `None` for a blank line or a comment.
pub(super) fn of_text(line: &str) -> Result<Option<Seed>, String> {
    // A URL has no spaces but may have a fragment, so only a # after a space starts a comment.
    let text = line.trim();
    let text = text
        .find([' ', '\t'])
        .filter(|at| text[*at..].trim_start().starts_with('#'))
        .map_or(text, |at| &text[..at]);
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    PageUrl::seed(text)
        .map(|url| Some(url.into()))
        .map_err(|error| error.to_string())
}

/// Returns the seed of a line with a JSON object; `None` for a blank line.
pub(super) fn of_json(line: &str) -> Result<Option<Seed>, String> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let record: Record = serde_json::from_str(line).map_err(|error| {
        // The line is told beside it, and it is always the first of its text.
        let said = error.to_string();
        said.split(" at line ").next().unwrap_or(&said).to_owned()
    })?;
    record.seed().map(Some)
}

/// Where each column of a file stands in [`COLUMNS`].
#[derive(Debug, Clone)]
pub(super) struct Header(Vec<usize>);

impl Header {
    /// Reads the line with the columns' names, in any order and case.
    ///
    /// # Errors
    /// A column that is unknown or there twice, or none for the URL, in words.
    pub(super) fn of(line: &str) -> Result<Header, String> {
        let mut places = Vec::new();
        let (mut unknown, mut twice) = (Vec::new(), Vec::new());
        for name in fields(line)?.iter().map(str::trim) {
            let known = COLUMNS
                .iter()
                .position(|known| known.eq_ignore_ascii_case(name));
            match known {
                Some(place) if places.contains(&place) => twice.push(name.to_owned()),
                Some(place) => places.push(place),
                None => unknown.push(name.to_owned()),
            }
        }
        if !unknown.is_empty() {
            return Err(format!("unknown columns: {}", unknown.join(", ")));
        }
        if !twice.is_empty() {
            return Err(format!(
                "columns that are there twice: {}",
                twice.join(", ")
            ));
        }
        if !places.contains(&0) {
            return Err("no column is called url".to_owned());
        }
        Ok(Header(places))
    }

    /// Returns the seed of a line of values; `None` for a blank line.
    pub(super) fn seed(&self, line: &str) -> Result<Option<Seed>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let fields = fields(line)?;
        if fields.len() != self.0.len() {
            return Err(format!(
                "{} values for {} columns",
                fields.len(),
                self.0.len()
            ));
        }
        let mut record = Record::default();
        for (place, value) in self.0.iter().zip(fields.iter()) {
            let value = value.trim();
            let number = || match value {
                "" => Ok(None),
                value => value
                    .parse()
                    .map(Some)
                    .map_err(|_| format!("{} is a whole number, not {value:?}", COLUMNS[*place])),
            };
            let text = || Some(value.to_owned());
            match COLUMNS[*place] {
                "url" => value.clone_into(&mut record.url),
                "priority" => record.priority = number()?,
                "depth" => record.depth = number()?,
                "label" => record.label = text(),
                _ => record.scope = text(),
            }
        }
        record.seed().map(Some)
    }
}

/// The values of a line.
fn fields(line: &str) -> Result<csv::StringRecord, String> {
    if line.bytes().filter(|byte| *byte == b'"').count() % 2 == 1 {
        return Err("a quote is not closed on its line".to_owned());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .buffer_capacity(line.len().clamp(64, 8 << 10))
        .from_reader(line.as_bytes());
    let mut record = csv::StringRecord::new();
    reader
        .read_record(&mut record)
        .map_err(|error| error.to_string())?;
    Ok(record)
}
