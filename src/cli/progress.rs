//! The only progress bars: one line on a terminal, now and then a plain line elsewhere.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output;

/// How a crawl stands.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Pages visited by this process.
    pub pages: u64,
    /// Pages a second over the last few seconds.
    pub pages_per_second: f64,
    /// Tasks of the crawl that are new, claimed, or wait for a retry.
    pub open: u64,
    /// Hosts of the crawl.
    pub hosts: u64,
    /// Visits of this process without a usable answer.
    pub failures: u64,
}

/// Shows how something stands, a crawl its [`Progress`], until it is dropped.
#[derive(Debug)]
pub struct ProgressLine {
    bar: Option<ProgressBar>,
    quiet: bool,
}

/// The bar that is on the screen, so that whoever prints can move it out of the way.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

impl ProgressLine {
    /// Starts showing: a line that is drawn again and again where standard error is a terminal.
    pub fn start(quiet: bool) -> Self {
        let terminal = io::IsTerminal::is_terminal(&io::stderr());
        let bar = (terminal && !quiet).then(|| {
            // It is drawn when there is news, at most ten times a second; no thread of its own.
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            bar.with_style(
                ProgressStyle::with_template("{spinner} {wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            )
        });
        shown().clone_from(&bar);
        ProgressLine { bar, quiet }
    }

    /// Returns how often [`ProgressLine::show`] should be called: each second on a terminal, every 10 s elsewhere.
    pub fn interval(&self) -> Duration {
        Duration::from_secs(if self.bar.is_some() { 1 } else { 10 })
    }

    /// Shows how something stands.
    pub fn show(&self, progress: &dyn std::fmt::Display) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(progress.to_string());
                bar.tick();
            }
            None if !self.quiet => output::say(progress),
            None => {}
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(bar) = shown().take() {
            bar.finish_and_clear();
        }
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Progress {
            pages,
            pages_per_second,
            open,
            hosts,
            failures,
        } = self;
        write!(
            f,
            "{pages} pages, {pages_per_second:.1}/s, {open} open, {hosts} hosts, {failures} failures"
        )
    }
}

/// Runs something that prints, with the progress line moved out of its way.
pub fn aside<T>(print: impl FnOnce() -> T) -> T {
    // Cloned, so that the lock is not held while printing: what is printed may itself come here.
    let bar = shown().clone();
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

fn shown() -> MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_names_its_figures() {
        let progress = Progress {
            pages: 1200,
            pages_per_second: 38.26,
            open: 40,
            hosts: 3,
            failures: 2,
        };
        assert_eq!(
            progress.to_string(),
            "1200 pages, 38.3/s, 40 open, 3 hosts, 2 failures"
        );
    }
}
