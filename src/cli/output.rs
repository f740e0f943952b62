//! The only place that prints: data to standard output, words about it to standard error.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

use super::{Exit, progress};
use crate::config::Problems;

/// An error with advice. Any command may add it; [`report`] finds it wherever it stands in the chain.
#[derive(Debug)]
pub struct Hinted {
    error: anyhow::Error,
    hint: String,
}

/// Adds advice to an error.
pub trait WithHint<T> {
    /// Adds advice that is printed on a line of its own behind the error.
    ///
    /// # Errors
    ///
    /// The same, with the advice.
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> WithHint<T> for Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| {
            Hinted {
                error: error.into(),
                hint: hint.into(),
            }
            .into()
        })
    }
}

impl Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Hinted {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// Prints data to standard output.
///
/// # Errors
///
/// Standard output cannot be written. A reader that went away is such an error too, and the caller should let it pass
/// upwards: [`is_broken_pipe`] makes a success of it.
pub fn print(data: impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    progress::aside(|| {
        write!(stdout, "{data}")?;
        stdout.flush()
    })
}

/// Prints data and a line end to standard output.
///
/// # Errors
///
/// As [`print()`].
pub fn line(data: impl Display) -> io::Result<()> {
    print(format_args!("{data}\n"))
}

/// Returns standard output for results of any length. Errors of writing to it are treated as those of [`print()`].
pub fn stdout() -> impl Write {
    io::BufWriter::new(io::stdout().lock())
}

/// Tells the operator something on standard error.
pub fn say(message: impl Display) {
    progress::aside(|| drop(writeln!(io::stderr(), "{message}")));
}

/// Warns the operator on standard error.
pub fn warn(message: &str, hint: Option<&str>) {
    labelled("warning", YELLOW, message, hint);
}

/// Prints an error with its causes and its hint, and returns the code to leave with.
pub fn report(error: &anyhow::Error) -> Exit {
    if let Some(Problems(problems)) = error.downcast_ref() {
        for problem in problems {
            labelled("error", RED, &problem.to_string(), problem.hint.as_deref());
        }
        return Exit::Usage;
    }
    let hint = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Hinted>())
        .map(|hinted| hinted.hint.as_str());
    labelled("error", RED, &chain(error), hint);
    if error.chain().any(is_disk_full) {
        return Exit::DiskFull;
    }
    if error.chain().any(is_lost) {
        return Exit::DatabaseLost;
    }
    Exit::Error
}

/// Says whether a cause is a full disk: one that a file met here, the embedded server at its start, or a statement.
fn is_disk_full(cause: &(dyn std::error::Error + 'static)) -> bool {
    let file = cause
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::StorageFull);
    #[cfg(unix)]
    let server = matches!(
        cause.downcast_ref(),
        Some(crate::db::embedded::EmbeddedError::DiskFull { .. })
    );
    #[cfg(not(unix))]
    let server = false;
    let statement = matches!(
        cause.downcast_ref(),
        Some(crate::frontier::FrontierError::DiskFull { .. })
    );
    file || server || statement
}

/// Says whether a cause is a database that could not be reached for longer than the patience.
fn is_lost(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(
        cause.downcast_ref(),
        Some(crate::frontier::FrontierError::Lost { .. })
    )
}

/// Joins an error and its causes; a cause that its error has already quoted is left out.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Says whether an error means that the reader of our standard output went away, as `head` does.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Asks a question that must be answered with `y` or `yes`; `false` for everything else.
///
/// # Errors
///
/// Nobody can be asked: standard input is not a terminal.
pub fn confirm(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(anyhow::anyhow!(
            "cannot ask: standard input is not a terminal"
        ))
        .hint("--yes answers beforehand");
    }
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(
        answer.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}

/// Says whether standard output is a terminal, which has a width and a person before it.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Says whether colours are welcome there (<https://no-color.org>).
pub fn has_color(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const CYAN: &str = "\x1b[1;36m";

fn labelled(label: &str, color: &str, message: &str, hint: Option<&str>) {
    let colored = has_color(&io::stderr());
    let paint = |label: &str, color: &str| match colored {
        true => format!("{color}{label}:\x1b[0m"),
        false => format!("{label}:"),
    };
    say(format_args!("{} {message}", paint(label, color)));
    if let Some(hint) = hint {
        say(format_args!("{} {hint}", paint("hint", CYAN)));
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    fn broken_pipe() -> anyhow::Error {
        anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe))
    }

    #[test]
    fn a_reader_that_went_away_is_found_below_its_context() {
        assert!(is_broken_pipe(
            &broken_pipe().context("cannot print the table")
        ));
        assert!(!is_broken_pipe(&anyhow::anyhow!("broken pipe")));
    }

    #[test]
    fn a_hint_is_found_below_context_and_does_not_change_the_error() {
        let error = Err::<(), _>(io::Error::other("no room"))
            .hint("delete something")
            .context("cannot save");
        let error = error.unwrap_err();
        assert_eq!(chain(&error), "cannot save: no room");
        assert!(
            error
                .chain()
                .any(|cause| cause.downcast_ref::<Hinted>().is_some())
        );
    }

    #[test]
    fn a_lost_database_is_found_below_its_context_and_leaves_with_its_own_code() {
        let source = || sqlx::Error::PoolTimedOut;
        let lost = crate::frontier::FrontierError::Lost {
            what: "claim",
            after: std::time::Duration::from_secs(300),
            source: source(),
        };
        let error = anyhow::Error::from(lost).context("cannot crawl");
        assert_eq!(report(&error), Exit::DatabaseLost);
        let refused = crate::frontier::FrontierError::Statement {
            what: "claim",
            source: source(),
        };
        assert_eq!(report(&refused.into()), Exit::Error);
    }

    #[test]
    fn a_cause_that_is_quoted_already_is_not_said_twice() {
        let error = Err::<(), _>(io::Error::other("no room"))
            .context("cannot save: no room")
            .unwrap_err();
        assert_eq!(chain(&error), "cannot save: no room");
    }
}
