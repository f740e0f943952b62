//! The exit codes: distinct, so that a script can tell what happened.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything was done. For a crawl: no task is open.
    Finished = 0,
    /// The command failed; standard error says why.
    Error = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The crawl finished, but hosts were parked by an operator or given up.
    HostsLeft = 3,
    /// `--max-pages` or `--max-duration` was reached.
    LimitReached = 4,
    /// Ctrl-C or SIGTERM.
    Interrupted = 5,
    /// No seed gave a usable answer.
    SeedsFailed = 6,
    /// robots.txt forbade every seed.
    RobotsBlocked = 7,
    /// The database went away.
    DatabaseLost = 8,
    /// No room was left on a disk.
    DiskFull = 9,
}

impl Exit {
    /// Every code, in order.
    pub const ALL: [Exit; 10] = [
        Exit::Finished,
        Exit::Error,
        Exit::Usage,
        Exit::HostsLeft,
        Exit::LimitReached,
        Exit::Interrupted,
        Exit::SeedsFailed,
        Exit::RobotsBlocked,
        Exit::DatabaseLost,
        Exit::DiskFull,
    ];

    /// Returns the number that the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Says what it means, for the help text and the documentation.
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Finished => "finished",
            Exit::Error => "an error, said on standard error",
            Exit::Usage => "a wrong command line or configuration",
            Exit::HostsLeft => "finished, but hosts were parked or given up",
            Exit::LimitReached => "a limit of pages, bytes or time was reached",
            Exit::Interrupted => "interrupted by a signal",
            Exit::SeedsFailed => "no seed gave a usable answer",
            Exit::RobotsBlocked => "robots.txt forbade every seed",
            Exit::DatabaseLost => "the database was lost",
            Exit::DiskFull => "a disk is full",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}
