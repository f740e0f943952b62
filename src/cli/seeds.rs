//! Reads seeds: from files, from standard input, from the command line.
//!
//! One URL a line; blank lines and what follows a `#` (at the start of a line or after a space) say nothing; CRLF and a
//! byte order mark do no harm; a missing scheme means https. Or a record a line, as JSON or CSV, with a priority, a depth,
//! a label and a scope beside the URL ([`Format`]). A bad line is reported with its number, and the rest goes on. Seeds
//! come in batches, so a million of them are never all in memory.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::vec;

use tokio::sync::mpsc;

use crate::canon::{self, CanonError, PageUrl};
use crate::frontier::Seed;

mod format;

pub use format::Format;
use format::Header;

/// Seeds of one batch: large enough for one statement to be worth its trip, small enough to hold a few.
pub const BATCH: usize = 1_000;

/// Bad lines that are told in full; the rest is only counted, since a wrong file has a million of them.
const TOLD: u64 = 20;

/// Longest line that is read; what is longer is no URL.
const LINE_BYTES: u64 = 64 * 1024;

/// Where seeds come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of them.
    File(PathBuf),
    /// Standard input, a file of them.
    Stdin,
    /// One, on the command line.
    Url(PageUrl),
}

/// Some seeds, and what was wrong beside them.
#[derive(Debug, Default)]
pub struct Batch {
    /// At most [`BATCH`].
    pub seeds: Vec<Seed>,
    /// Bad lines, of which only the first few of a run are here.
    pub bad: Vec<BadLine>,
    /// Bad lines so far, all of them.
    pub bad_lines: u64,
}

/// A line that is no seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The file, or `standard input`.
    pub file: String,
    /// Counted from 1.
    pub number: u64,
    /// What is wrong with it.
    pub message: String,
}

/// Why there are no seeds.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeedError {
    /// The argument looks like a file that is not there.
    #[error("no file {0}")]
    NoFile(String),
    /// The argument is a folder.
    #[error("{0} is a folder")]
    Folder(String),
    /// The argument is neither a file nor a URL.
    #[error("{argument} is neither a file nor a URL: {message}")]
    NoUrl {
        /// As typed.
        argument: String,
        /// Why it is no URL.
        message: String,
    },
    /// The argument is a URL with a user name or password in it.
    #[error(transparent)]
    Login(CanonError),
    /// The file cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// Its name.
        file: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file holds comments and blank lines only.
    #[error("no seed in {0}")]
    Empty(String),
    /// The line with the columns' names is not one.
    #[error("{file}:{line}: {message}")]
    Columns {
        /// Its name.
        file: String,
        /// Where it stands, counted from 1.
        line: u64,
        /// What is wrong, in words.
        message: String,
    },
    /// Every line of the file is bad.
    #[error("no usable seed in {file}: all {lines} lines are bad")]
    AllBad {
        /// Its name.
        file: String,
        /// How many there are.
        lines: u64,
    },
}

impl SeedError {
    /// Says what to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            SeedError::NoFile(_) => Some("if a URL is meant, write its scheme: https://…"),
            SeedError::Folder(_) => Some("name a file in it"),
            SeedError::Login(_) => Some(
                "an entry with host, username and password; the password may be env:NAME or file:/path",
            ),
            SeedError::NoUrl { .. } | SeedError::Read { .. } => None,
            SeedError::Columns { .. } => Some(
                "the first line of CSV names the columns, with commas between them: url, and of priority, depth, label, scope what is wanted",
            ),
            SeedError::Empty(_) | SeedError::AllBad { .. } => Some(
                "one URL a line; lines that start with # are comments. Files with columns are *.csv and *.jsonl, or of --seed-format",
            ),
        }
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.number, self.message)
    }
}

impl Source {
    /// Tells what an argument of the command line is: `-`, a file that exists, or a URL.
    ///
    /// # Errors
    ///
    /// It is none of them; what looks like a path is told apart from a bad URL.
    pub fn of(argument: &OsString) -> Result<Source, SeedError> {
        let path = Path::new(argument);
        let shown = || path.display().to_string();
        match argument.to_str() {
            Some("-") => Ok(Source::Stdin),
            _ if path.is_dir() => Err(SeedError::Folder(shown())),
            // Not is_file: a pipe of the shell, as in <(…), is a file too.
            _ if path.exists() => Ok(Source::File(path.to_owned())),
            Some(text) if !looks_like_a_path(text) => {
                let seed = PageUrl::seed(text);
                seed.map(Source::Url).map_err(|error| match error {
                    // As typed it holds a password.
                    CanonError::Userinfo => SeedError::Login(error),
                    error => SeedError::NoUrl {
                        argument: canon::without_login(text).into_owned(),
                        message: error.to_string(),
                    },
                })
            }
            _ => Err(SeedError::NoFile(shown())),
        }
    }
}

/// Says whether a text that names no file was meant to: `seeds/example.txt`, `./x`, `list`; but not `example.org/docs`.
fn looks_like_a_path(text: &str) -> bool {
    if text.contains("://") {
        return false;
    }
    let first = text.split(['/', '\\']).next().unwrap_or_default();
    let extension = text.rsplit_once('.').map_or("", |(_, extension)| extension);
    let host_like = first.contains('.') || first.contains(':') || first == "localhost";
    first.starts_with('.')
        || !host_like
        || [
            "txt", "csv", "tsv", "jsonl", "ndjson", "json", "lst", "list", "urls", "seeds", "gz",
        ]
        .contains(&extension)
}

/// Reads seeds batch by batch. An iterator that blocks; [`stream`] moves it off the runtime.
#[derive(Debug)]
pub struct SeedReader {
    sources: vec::IntoIter<Source>,
    format: Option<Format>,
    open: Option<Lines>,
    bad_lines: u64,
    failure: Failure,
}

/// An error waits until what was read before it is handed out.
#[derive(Debug)]
enum Failure {
    None,
    Waiting(SeedError),
    Told,
}

/// A file that is being read.
struct Lines {
    file: String,
    format: Format,
    /// Of CSV, once it is read.
    header: Option<Header>,
    reader: Box<dyn BufRead + Send>,
    number: u64,
    seeds: u64,
    bad: u64,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.number)
    }
}

impl SeedReader {
    /// Starts reading; nothing is opened before the first batch is asked for. `format` is that of all files and of standard input; `None`:
    /// their names tell it.
    pub fn new(sources: Vec<Source>, format: Option<Format>) -> Self {
        SeedReader {
            format,
            sources: sources.into_iter(),
            open: None,
            bad_lines: 0,
            failure: Failure::None,
        }
    }

    /// Fills a batch from the open file; closes it at its end.
    fn fill(&mut self, batch: &mut Batch) -> Result<(), SeedError> {
        let Some(mut lines) = self.open.take() else {
            return Ok(());
        };
        while batch.seeds.len() < BATCH {
            let Some(line) = lines.next()? else {
                return lines.end();
            };
            if lines.format == Format::Csv && lines.header.is_none() {
                lines.read_header(line)?;
                continue;
            }
            match line.and_then(|line| lines.seed_of(&line)) {
                Ok(None) => {}
                Ok(Some(seed)) => {
                    lines.seeds += 1;
                    batch.seeds.push(seed);
                }
                Err(message) => {
                    lines.bad += 1;
                    self.bad_lines += 1;
                    if self.bad_lines <= TOLD {
                        batch.bad.push(BadLine {
                            file: lines.file.clone(),
                            number: lines.number,
                            message,
                        });
                    }
                }
            }
        }
        self.open = Some(lines);
        Ok(())
    }
}

impl Iterator for SeedReader {
    type Item = Result<Batch, SeedError>;

    /// Returns the next batch; after an error there is none.
    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = Batch::default();
        while matches!(self.failure, Failure::None) && batch.seeds.len() < BATCH {
            let step = match &self.open {
                Some(_) => self.fill(&mut batch),
                None => match self.sources.next() {
                    None => break,
                    Some(Source::Url(seed)) => {
                        batch.seeds.push(seed.into());
                        Ok(())
                    }
                    Some(source) => {
                        Lines::open(&source, self.format).map(|lines| self.open = lines)
                    }
                },
            };
            if let Err(error) = step {
                self.failure = Failure::Waiting(error);
            }
        }
        batch.bad_lines = self.bad_lines;
        if !batch.seeds.is_empty() || !batch.bad.is_empty() {
            return Some(Ok(batch));
        }
        match std::mem::replace(&mut self.failure, Failure::Told) {
            Failure::Waiting(error) => Some(Err(error)),
            Failure::None | Failure::Told => None,
        }
    }
}

impl Lines {
    fn open(source: &Source, format: Option<Format>) -> Result<Option<Lines>, SeedError> {
        let told = match source {
            Source::File(path) => Format::of_file(path),
            Source::Stdin | Source::Url(_) => Format::Text,
        };
        let (file, reader): (String, Box<dyn BufRead + Send>) = match source {
            Source::Url(_) => return Ok(None),
            Source::Stdin => (
                "standard input".into(),
                Box::new(BufReader::new(io::stdin())),
            ),
            Source::File(path) => {
                let file = path.display().to_string();
                match File::open(path) {
                    Ok(open) => (file, Box::new(BufReader::with_capacity(64 * 1024, open))),
                    Err(source) => return Err(SeedError::Read { file, source }),
                }
            }
        };
        Ok(Some(Lines {
            file,
            format: format.unwrap_or(told),
            header: None,
            reader,
            number: 0,
            seeds: 0,
            bad: 0,
        }))
    }

    /// Reads a line; `None` at the end. The inner error is the line's own and ends nothing.
    fn next(&mut self) -> Result<Option<Result<String, String>>, SeedError> {
        let failed = |source| SeedError::Read {
            file: self.file.clone(),
            source,
        };
        let mut bytes = Vec::new();
        let read = self
            .reader
            .by_ref()
            .take(LINE_BYTES)
            .read_until(b'\n', &mut bytes)
            .map_err(failed)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read as u64 == LINE_BYTES && bytes.last() != Some(&b'\n') {
            self.reader.skip_until(b'\n').map_err(failed)?;
            return Ok(Some(Err(format!("longer than {LINE_BYTES} bytes"))));
        }
        if self.number == 1 && bytes.starts_with("\u{feff}".as_bytes()) {
            bytes.drain(..3);
        }
        Ok(Some(
            String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned()),
        ))
    }

    /// Blank lines may stand before it.
    fn read_header(&mut self, line: Result<String, String>) -> Result<(), SeedError> {
        let read = match line {
            Ok(line) if line.trim().is_empty() => return Ok(()),
            line => line.and_then(|line| Header::of(&line)),
        };
        match read {
            Ok(header) => {
                self.header = Some(header);
                Ok(())
            }
            Err(message) => Err(SeedError::Columns {
                file: self.file.clone(),
                line: self.number,
                message,
            }),
        }
    }

    fn seed_of(&self, line: &str) -> Result<Option<Seed>, String> {
        match (self.format, &self.header) {
            (Format::Jsonl, _) => format::of_json(line),
            (Format::Csv, Some(header)) => header.seed(line),
            (Format::Text | Format::Csv, _) => format::of_text(line),
        }
    }

    fn end(self) -> Result<(), SeedError> {
        match (self.seeds, self.bad) {
            (0, 0) => Err(SeedError::Empty(self.file)),
            (0, lines) => Err(SeedError::AllBad {
                file: self.file,
                lines,
            }),
            _ => Ok(()),
        }
    }
}

/// Reads seeds on a thread of its own, at most two batches ahead.
///
/// The channel ends after the last batch or after the first error. Dropping the receiver ends the reading.
pub fn stream(
    sources: Vec<Source>,
    format: Option<Format>,
) -> mpsc::Receiver<Result<Batch, SeedError>> {
    let (sender, receiver) = mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        for batch in SeedReader::new(sources, format) {
            if sender.blocking_send(batch).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
#[path = "seeds/tests.rs"]
mod tests;
