//! The log: tracing's events on standard error.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::progress;
use crate::config::{Log, LogFormat};

/// Starts the log. A second start in one process changes nothing.
pub fn start(log: &Log) {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter(&log.level))
        .with_target(false)
        .with_ansi(super::output::has_color(&io::stderr()))
        .with_writer(StandardError);
    let _ = match log.format {
        LogFormat::Text => subscriber.compact().try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
}

/// A bare level is ours; of the libraries below us only warnings are news. Directives are taken as they are.
fn filter(level: &str) -> EnvFilter {
    let bare = level.chars().all(char::is_alphanumeric);
    let directives = if bare {
        format!("warn,pgcrawl={level}")
    } else {
        level.to_owned()
    };
    EnvFilter::new(directives)
}

/// Standard error, with the progress line moved out of the way.
struct StandardError;

/// One event's text, written as a whole when it is dropped.
struct Event(Vec<u8>);

impl<'a> MakeWriter<'a> for StandardError {
    type Writer = Event;

    fn make_writer(&'a self) -> Event {
        Event(Vec::with_capacity(160))
    }
}

impl Write for Event {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // Nobody is left to be told that the log cannot be written.
        progress::aside(|| drop(io::stderr().write_all(&self.0)));
    }
}
