//! The laboratory: measures, on a scratch database, what is said and disputed about queues in Postgres.
//!
//! One file a section, each a question of the field. The one idea: a figure never stands alone. What it is to be compared with is measured
//! in the same run, on the same machine and data, and the ratio stands beside it; a finding in words is computed from the figures, so that
//! another machine, or a later version, may find otherwise.
//!
//! Sections a to c and most of f use small raw tables, since they are about Postgres; d and e, and the poison page of f, use the schema of a
//! crawl and the statements of [`crate::frontier`], since they are about pgcrawl. Nothing is written outside of the [`Scratch`].
//!
//! What it costs to be interrupted: nothing. Whoever runs it drops the future and calls [`Scratch::clear`].

mod batches;
mod crew;
mod death;
mod error;
mod index;
mod jobs;
mod locking;
mod report;
mod rules;
mod scale;
mod scratch;
mod semantics;
mod session;
mod settings;
mod times;

use std::fmt;
use std::str::FromStr;

use tokio::time::Instant;

pub use batches::BatchSettings;
pub use death::DeathSettings;
pub use error::LabError;
pub use index::IndexSettings;
pub use locking::LockingSettings;
pub use report::{Cell, Finding, Kind, Machine, Report, RuleOfThumb, SectionReport, Table};
pub use scale::{Dataset, ScaleSettings};
pub use scratch::Scratch;
pub use semantics::SemanticsSettings;
pub use settings::LabSettings;

use crate::db::{DbSettings, connect, migrate};
use crate::frontier::{Frontier, FrontierSettings, Identity, WorkerId};

/// A result of this module.
pub type Result<T = ()> = std::result::Result<T, LabError>;

/// A part of the laboratory, by its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// How workers keep out of each other's way: plain SELECT, FOR UPDATE, SKIP LOCKED.
    A,
    /// How many tasks to take at once.
    B,
    /// The partial index.
    C,
    /// Death before and after the commit, locks that are held, empty answers.
    D,
    /// Size: workers, tasks, hosts, an open snapshot, wake-ups.
    E,
    /// What the sources dispute or assert.
    F,
}

impl Section {
    /// All, in order.
    pub const ALL: [Section; 6] = [
        Section::A,
        Section::B,
        Section::C,
        Section::D,
        Section::E,
        Section::F,
    ];
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Section::A => "a",
            Section::B => "b",
            Section::C => "c",
            Section::D => "d",
            Section::E => "e",
            Section::F => "f",
        })
    }
}

/// Not the letter of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sections are a, b, c, d, e and f")]
pub struct UnknownSection;

impl FromStr for Section {
    type Err = UnknownSection;

    fn from_str(text: &str) -> std::result::Result<Section, UnknownSection> {
        Section::ALL
            .into_iter()
            .find(|section| section.to_string() == text)
            .ok_or(UnknownSection)
    }
}

/// A place to measure in, and how much to measure.
#[derive(Clone, Debug)]
pub struct Lab {
    scratch: Scratch,
    settings: LabSettings,
}

impl Lab {
    /// A laboratory in a scratch database or schema. Clearing it up is left to whoever made that.
    pub fn new(scratch: Scratch, settings: LabSettings) -> Lab {
        Lab { scratch, settings }
    }

    /// Runs these sections, in this order.
    ///
    /// # Errors
    /// A statement that should have worked did not; the refusals that belong to a section are figures and no errors.
    pub async fn run(&self, sections: &[Section]) -> Result<Report> {
        let pool = connect(self.scratch.url(), &self.db_settings(2)).await?;
        migrate(&pool).await?;
        pool.close().await;
        let machine = self.machine().await?;
        let mut facts = rules::Facts::default();
        let mut reports = Vec::with_capacity(sections.len());
        for section in sections {
            tracing::info!(%section, "measuring");
            let began = Instant::now();
            let mut report = match section {
                Section::A => locking::run(self, &mut facts).await?,
                Section::B => batches::run(self, &mut facts).await?,
                Section::C => index::run(self, &mut facts).await?,
                Section::D => death::run(self).await?,
                Section::E => scale::run(self, &mut facts).await?,
                Section::F => semantics::run(self).await?,
            };
            report.took_s = began.elapsed().as_secs_f64();
            reports.push(report);
        }
        Ok(Report {
            machine,
            sections: reports,
            rules: rules::of_thumb(&facts),
        })
    }

    fn db_settings(&self, connections: u32) -> DbSettings {
        DbSettings {
            max_connections: connections,
            application_name: self.scratch.name().to_owned(),
            ..DbSettings::default()
        }
    }

    /// A frontier with one connection of its own, as one worker uses it, and that worker.
    async fn worker(&self, settings: &FrontierSettings) -> Result<Member> {
        let pool = connect(self.scratch.url(), &self.db_settings(1)).await?;
        let frontier = Frontier::new(pool, settings.clone());
        let id = frontier
            .join(&Identity {
                name: self.scratch.name().to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                machine: "the laboratory".to_owned(),
                host_name: "localhost".to_owned(),
                pid: i32::try_from(std::process::id()).unwrap_or(i32::MAX),
                process_started: "now".to_owned(),
            })
            .await?;
        Ok(Member { frontier, id })
    }

    async fn machine(&self) -> Result<Machine> {
        use error::Doing as _;

        let mut session = self.session().await?;
        let (measured_at, server, reached_by): (String, String, String) = sqlx::query_as(
            r#"select to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), current_setting('server_version'),
                      coalesce(host(inet_server_addr()), 'socket')"#,
        )
        .fetch_one(session.db())
        .await
        .doing("asking the server about itself")?;
        let settings: Vec<(String, String)> = sqlx::query_as(
            "select name, current_setting(name)
             from pg_settings
             where name in ('fsync', 'synchronous_commit', 'shared_buffers', 'wal_compression', 'max_wal_size', 'autovacuum', 'autovacuum_naptime')
             order by name",
        )
        .fetch_all(session.db())
        .await
        .doing("asking the server for its settings")?;
        session
            .run("create table lab_commits (n int not null)")
            .await?;
        let mut times = times::Times::default();
        for _ in 0..self.settings.commits {
            let began = Instant::now();
            session.run("insert into lab_commits values (1)").await?;
            times.push(began.elapsed());
        }
        session.run("drop table lab_commits").await?;
        session.close().await;
        Ok(Machine {
            measured_at,
            pgcrawl: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
            server,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            reached_by,
            settings,
            commit_ms: times.p50().as_secs_f64() * 1_000.0,
            load: load_average(),
            size: self.settings.name,
        })
    }
}

/// How many processes ran or waited for a processor, in the mean of the last minute (proc_loadavg(5)).
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// A worker of the frontier with its own connection.
#[derive(Debug)]
struct Member {
    frontier: Frontier,
    id: WorkerId,
}

impl Member {
    /// Ends its session from outside. The worker itself lives on, and connects anew if it is used again.
    async fn kill(&self, by: &mut session::Session) -> Result {
        use error::Doing as _;

        let connection = self.frontier.pool().acquire().await;
        // Detached: the pool would look after a connection that comes back, and complain.
        let mut connection = connection.doing("taking a connection")?.detach();
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&mut connection)
            .await
            .doing("asking for the server process")?;
        by.kill(pid).await
    }

    /// Says goodbye.
    async fn close(self) {
        self.frontier.pool().close().await;
    }
}
