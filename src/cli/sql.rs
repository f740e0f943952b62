//! `pgcrawl sql`: one statement and its answer, as a table, JSON lines or CSV.

use std::io::{self, Read, Write};
use std::time::Duration;

use clap::Args;
use comfy_table::{ContentArrangement, Table};
use secrecy::SecretString;
use serde_json::value::RawValue;
use sqlx::postgres::{PgDatabaseError, PgErrorPosition};

use super::database::{self, DatabaseArgs, Missing};
use super::{Context, Exit, output};
use crate::config::FlagValue;
use crate::db::{Access, DbError, Form, Part, QueryError, TextColumn, query_text};

/// Rows of one table. A longer answer becomes several, so that it need not be held in memory.
const TABLE_ROWS: usize = 1_000;

/// Text that is printed at once: each print is a write and a redrawn progress line.
const PRINT_BYTES: usize = 64 << 10;

/// The limit of a question that the program asks by itself.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Flags of `sql`.
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// The statement; - reads it from standard input
    #[arg(value_name = "STATEMENT")]
    statement: String,

    /// Print a JSON object a row
    ///
    /// Numbers, truth values and JSON columns keep their type, everything else is a string as Postgres prints it.
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print CSV with a header
    ///
    /// After RFC 4180; null is an empty field.
    #[arg(long)]
    csv: bool,

    /// Allow the statement to change something
    ///
    /// Without it, it runs in a read-only transaction, on the embedded server as a role that can only read.
    #[arg(long)]
    write: bool,

    /// End the statement after so long a time
    ///
    /// A duration like 30s or 5m; 0s is no limit. Default 30s.
    #[arg(long, value_name = "TIME", default_value = "30s", hide_default_value = true, value_parser = humantime::parse_duration)]
    timeout: Duration,

    #[command(flatten)]
    database: DatabaseArgs,
}

impl SqlArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        self.database.flags()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut statement = self.statement.clone();
        if statement == "-" {
            statement.clear();
            io::stdin().read_to_string(&mut statement)?;
        }
        let opened = database::open(&self.database, context, Missing::Refuse).await?;
        let (url, access) = match self.write {
            true => (&opened.url, Access::Write),
            false => (&opened.reader_url, Access::Read),
        };
        let mut printer = Printer::new(self.format(), output::is_terminal());
        let mut waiting = String::new();
        let mut receive = |part: Part<'_>| {
            let ends = matches!(part, Part::End(_));
            waiting.extend(printer.take(part)?);
            if ends || waiting.len() > PRINT_BYTES {
                output::print(&waiting)?;
                waiting.clear();
            }
            Ok(())
        };
        let answered = query_text(url, access, &statement, self.timeout, &mut receive).await;
        opened.close().await?;
        match answered {
            Ok(()) => Ok(Exit::Finished),
            Err(QueryError::Db(error)) => Err(explain(error, self.write)),
            Err(error) => Err(error.into()),
        }
    }

    fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => Format::Table,
        }
    }
}

/// Asks one question and prints its answer as a table.
///
/// # Errors
/// The statement fails, or standard output cannot be written.
pub(super) async fn show(url: &SecretString, statement: &str) -> anyhow::Result<()> {
    let mut printer = Printer::new(Format::Table, output::is_terminal());
    let mut receive = |part: Part<'_>| match printer.take(part)? {
        Some(text) => output::print(text),
        None => Ok(()),
    };
    Ok(query_text(url, Access::Read, statement, DEFAULT_TIMEOUT, &mut receive).await?)
}

/// The server's own words about a statement, and the way out of the refusals that people will meet.
fn explain(error: DbError, write: bool) -> anyhow::Error {
    let DbError::Query { source, .. } = &error else {
        return database::hinted_db(error);
    };
    let Some(said) = source
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
    else {
        return database::hinted_db(error);
    };
    let place = match said.position() {
        Some(PgErrorPosition::Original(character)) => format!(" (at character {character})"),
        _ => String::new(),
    };
    let detail = said
        .detail()
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    let message = anyhow::anyhow!("{}{place}{detail}", said.message());
    let hint = match said.code() {
        "25006" | "42501" if !write => Some("--write allows changes"),
        "57014" => Some("--timeout allows it more time"),
        "42601" if said.message().contains("multiple commands") => Some("one statement a call"),
        _ => said.hint(),
    };
    database::with_hint(message, hint.map(str::to_owned))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Csv,
}

/// Turns the parts of an answer into text.
struct Printer {
    format: Format,
    terminal: bool,
    columns: Vec<TextColumn>,
    rows: Vec<Vec<String>>,
}

impl Printer {
    fn new(format: Format, terminal: bool) -> Self {
        Self {
            format,
            terminal,
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn take(&mut self, part: Part<'_>) -> io::Result<Option<String>> {
        match part {
            Part::Columns(columns) => {
                self.columns = columns.to_vec();
                let names = columns.iter().map(|column| column.name.as_str());
                Ok(match self.format {
                    Format::Csv if !columns.is_empty() => Some(csv_line(names)?),
                    _ => None,
                })
            }
            Part::Row(values) => match self.format {
                Format::Csv => {
                    csv_line(values.iter().map(|value| value.unwrap_or_default())).map(Some)
                }
                Format::Json => json_line(&self.columns, values).map(Some),
                Format::Table => {
                    self.rows
                        .push(values.iter().map(|value| cell(*value)).collect());
                    Ok((self.rows.len() == TABLE_ROWS).then(|| self.table()))
                }
            },
            Part::End(rows) if self.format == Format::Table => {
                let count = if rows == 1 {
                    "1 row".to_owned()
                } else {
                    format!("{rows} rows")
                };
                let table = if self.columns.is_empty() {
                    String::new()
                } else {
                    self.table()
                };
                Ok(Some(format!("{table}({count})\n")))
            }
            Part::End(_) => Ok(None),
        }
    }

    /// The rows so far, which are then forgotten.
    fn table(&mut self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
        // Only a terminal has a width to wrap to; a file or a pipe gets each row on one line.
        let arrangement = if self.terminal {
            ContentArrangement::Dynamic
        } else {
            ContentArrangement::Disabled
        };
        table
            .set_content_arrangement(arrangement)
            .set_header(self.columns.iter().map(|column| column.name.clone()));
        for (index, column) in self.columns.iter().enumerate() {
            if let Some(shown) = table
                .column_mut(index)
                .filter(|_| column.form == Form::Number)
            {
                shown.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        table.add_rows(self.rows.drain(..));
        format!("{table}\n")
    }
}

/// A value in a table. Control characters of a page must not reach the terminal.
fn cell(value: Option<&str>) -> String {
    value
        .unwrap_or_default()
        .chars()
        .map(|character| match character {
            '\n' => '\n',
            '\t' => ' ',
            character if character.is_control() => char::REPLACEMENT_CHARACTER,
            character => character,
        })
        .collect()
}

fn csv_line<'a>(fields: impl Iterator<Item = &'a str>) -> io::Result<String> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    writer.write_record(fields)?;
    let bytes = writer
        .into_inner()
        .map_err(|error| io::Error::other(error.to_string()))?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// One object, its keys in the order of the columns, also where a name is there twice.
fn json_line(columns: &[TextColumn], values: &[Option<&str>]) -> io::Result<String> {
    let mut line = Vec::from(*b"{");
    for (index, (column, value)) in columns.iter().zip(values).enumerate() {
        if index > 0 {
            line.push(b',');
        }
        serde_json::to_writer(&mut line, &column.name)?;
        line.push(b':');
        json_value(&mut line, column.form, *value)?;
    }
    line.write_all(b"}\n")?;
    String::from_utf8(line).map_err(io::Error::other)
}

fn json_value(line: &mut Vec<u8>, form: Form, value: Option<&str>) -> io::Result<()> {
    let Some(text) = value else {
        return line.write_all(b"null");
    };
    let verbatim = match form {
        Form::Bool => return line.write_all(if text == "t" { b"true" } else { b"false" }),
        // NaN and Infinity are no JSON and become strings.
        Form::Number => text.ends_with(|last: char| last.is_ascii_digit()),
        // A line break between its tokens would break the line in two; inside a string it is escaped already.
        Form::Json => serde_json::from_str::<&RawValue>(text).is_ok(),
        Form::Text => false,
    };
    match verbatim {
        true => line.write_all(text.replace(['\n', '\r'], " ").as_bytes()),
        false => Ok(serde_json::to_writer(line, text)?),
    }
}

#[cfg(test)]
#[path = "sql_tests.rs"]
mod tests;
