//! Which database a command works on: the operator's by URL, else a crawl of the embedded server.

use std::time::Duration;

use clap::Args;
use secrecy::SecretString;
use sqlx::PgPool;

use super::Context;
use super::output::WithHint;
use crate::config::{Config, Database, FlagValue};
#[cfg(unix)]
use crate::db::embedded::{EmbeddedError, EmbeddedSettings, Server, Watch};
use crate::db::{DbError, DbSettings};

/// The crawl that is meant when none is named.
pub const DEFAULT_CRAWL: &str = "main";

/// Flags that choose the database.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Database")]
pub struct DatabaseArgs {
    /// Use this database instead of the embedded server
    ///
    /// postgres://user:password@host/database. Better given by the variable DATABASE_URL, which others cannot see in the
    /// list of processes. Then no server is started. Key database.url.
    #[arg(long, value_name = "URL")]
    pub database_url: Option<String>,

    /// Which crawl of the embedded server
    ///
    /// Each is a database of its own. 1 to 40 letters, digits, - and _. Default main.
    #[arg(long, value_name = "NAME", conflicts_with = "database_url")]
    pub crawl: Option<String>,

    /// Folder of the embedded server
    ///
    /// Default /var/lib/pgcrawl for root, else pgcrawl in the XDG data folder. Key database.data_dir.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,

    /// Folder of initdb, pg_ctl and postgres
    ///
    /// Default: the variable PGCRAWL_PG_BIN, then PATH, pg_config and the usual folders are searched. Key database.bin_dir.
    #[arg(long, value_name = "DIR")]
    pub pg_bin: Option<String>,

    /// Leave the embedded server running at the end
    ///
    /// Until `pgcrawl db stop`. Key database.keep, default false.
    #[arg(long)]
    pub keep: bool,
}

impl DatabaseArgs {
    /// The settings among them.
    pub fn flags(&self) -> Vec<FlagValue> {
        let texts = [
            ("--database-url", "database.url", &self.database_url),
            ("--data-dir", "database.data_dir", &self.data_dir),
            ("--pg-bin", "database.bin_dir", &self.pg_bin),
        ];
        texts
            .into_iter()
            .filter_map(|(flag, key, value)| {
                Some(FlagValue::new(flag, key, value.as_ref()?.as_str()))
            })
            .chain(
                self.keep
                    .then(|| FlagValue::new("--keep", "database.keep", "true")),
            )
            .collect()
    }

    /// The crawl's name.
    pub fn crawl(&self) -> &str {
        self.crawl.as_deref().unwrap_or(DEFAULT_CRAWL)
    }
}

/// What to do about a crawl that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Create it: for commands that crawl.
    Create,
    /// Refuse, and name those that exist: for commands that read.
    Refuse,
}

/// A database that can be connected to, for as long as it lives.
#[derive(Debug)]
pub struct Opened {
    /// The server itself, for the role that writes.
    pub url: SecretString,
    /// For a role that can only read where we have one; else the same.
    pub reader_url: SecretString,
    /// A pooler in transaction mode before it, for the statements of the crawl.
    pooler_url: Option<SecretString>,
    settings: DbSettings,
    /// How long trouble is sat out.
    patience: Duration,
    #[cfg(unix)]
    server: Option<Server>,
}

impl Opened {
    /// Connects a pool, and brings the database's schema up to date.
    ///
    /// # Errors
    /// A database that will not do; with its hint.
    pub async fn pool(&self) -> anyhow::Result<PgPool> {
        let connected = async {
            let pool = crate::db::connect(&self.url, &self.settings).await?;
            crate::db::migrate_within(&pool, self.patience).await?;
            Ok(pool)
        };
        connected.await.map_err(hinted_db)
    }

    /// Connects a pool for the statements of the crawl: through the pooler, where there is one; else it is `pool`.
    ///
    /// # Errors
    /// A pooler that will not do; with its hint.
    pub async fn crawl_pool(&self, pool: &PgPool) -> anyhow::Result<PgPool> {
        let Some(url) = &self.pooler_url else {
            return Ok(pool.clone());
        };
        let settings = DbSettings {
            through_pooler: true,
            ..self.settings.clone()
        };
        crate::db::connect(url, &settings).await.map_err(hinted_db)
    }

    /// Connects one session to the server itself, whatever is before it, for what must not wait behind statements of the crawl.
    ///
    /// # Errors
    /// A database that will not do; with its hint.
    pub async fn connect_direct(&self, application_name: &str) -> anyhow::Result<PgPool> {
        let settings = DbSettings {
            max_connections: 1,
            application_name: application_name.to_owned(),
            ..self.settings.clone()
        };
        let connected = crate::db::connect(&self.url, &settings).await;
        connected.map_err(hinted_db)
    }

    /// Watches over the embedded server, if it is one: should it die, it is started again.
    #[cfg(unix)]
    pub fn watch(&self) -> Option<Watch> {
        self.server.as_ref().map(Server::watch)
    }

    /// The embedded server, if it is one.
    #[cfg(unix)]
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// Gives up the share in the embedded server; the last one out stops it. Close the pools before.
    ///
    /// # Errors
    /// The server does not stop.
    pub async fn close(self) -> anyhow::Result<()> {
        #[cfg(unix)]
        if let Some(server) = self.server {
            server.leave().await.map_err(hinted)?;
        }
        Ok(())
    }
}

/// Opens the database that flags, environment and file name. A URL wins, and then nothing embedded is started.
///
/// # Errors
/// The server cannot be started, or has no such crawl; with a hint.
pub async fn open(
    args: &DatabaseArgs,
    context: &Context,
    missing: Missing,
) -> anyhow::Result<Opened> {
    let config = &context.loaded.config;
    let Some(url) = &config.database.url else {
        return open_embedded(args, config, missing).await;
    };
    let direct_url = config.database.direct_url.as_ref();
    if let Some(crawl) = &args.crawl {
        super::output::warn(
            &format!("--crawl {crawl} is ignored: a database URL is set"),
            Some("unset DATABASE_URL to use the embedded server"),
        );
    }
    Ok(Opened {
        url: direct_url.unwrap_or(url).clone(),
        reader_url: direct_url.unwrap_or(url).clone(),
        pooler_url: direct_url.map(|_| url.clone()),
        settings: config.db_settings(),
        patience: config.database.patience,
        #[cfg(unix)]
        server: None,
    })
}

#[cfg(unix)]
async fn open_embedded(
    args: &DatabaseArgs,
    config: &Config,
    missing: Missing,
) -> anyhow::Result<Opened> {
    let crawl = args.crawl();
    let server = Server::start(&settings(&config.database))
        .await
        .map_err(hinted)?;
    let there = match missing {
        Missing::Create => server.create_database(crawl).await.map(|_| None),
        Missing::Refuse => server.databases().await.map(Some),
    };
    let there = there
        .map_err(hinted)?
        .filter(|names| !names.iter().any(|name| name == crawl));
    if let Some(names) = there {
        server.leave().await.map_err(hinted)?;
        let hint = match names.as_slice() {
            [] => "there is none yet; `pgcrawl crawl SEEDS` makes one".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        return Err(anyhow::anyhow!("there is no crawl {crawl:?}")).hint(hint);
    }
    Ok(Opened {
        url: server.url(crawl),
        reader_url: server.reader_url(crawl),
        pooler_url: None,
        settings: config.db_settings(),
        patience: config.database.patience,
        server: Some(server),
    })
}

#[cfg(not(unix))]
async fn open_embedded(_: &DatabaseArgs, _: &Config, _: Missing) -> anyhow::Result<Opened> {
    Err(anyhow::anyhow!("the embedded server needs a Unix system"))
        .hint("set DATABASE_URL to a running server")
}

/// The embedded server's settings of a configuration.
#[cfg(unix)]
pub fn settings(database: &Database) -> EmbeddedSettings {
    let mut settings = EmbeddedSettings::default();
    settings.data_dir.clone_from(&database.data_dir);
    settings.bin_dir.clone_from(&database.bin_dir);
    settings.keep = database.keep;
    settings
}

/// An error of the embedded server with its hint.
#[cfg(unix)]
pub fn hinted(error: EmbeddedError) -> anyhow::Error {
    let hint = error.hint();
    with_hint(error.into(), hint)
}

/// An error of the database with its hint.
pub fn hinted_db(error: DbError) -> anyhow::Error {
    let hint = error.hint().map(str::to_owned);
    with_hint(error.into(), hint)
}

/// An error with its hint, if it has one.
pub(super) fn with_hint(error: anyhow::Error, hint: Option<String>) -> anyhow::Error {
    match hint {
        Some(hint) => match Err::<(), _>(error).hint(hint) {
            Err(hinted) => hinted,
            Ok(()) => unreachable!("an error stays one"),
        },
        None => error,
    }
}
