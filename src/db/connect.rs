//! Connecting: the session settings of the frontier's protocol, and the checks that a database will do.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};

use super::error::{DbError, sqlstate};
use super::session::{Route, SIGN_OF_LIFE, Session, answers};

/// The oldest server we speak to, as `server_version_num`.
const OLDEST_SERVER: i32 = 140_000;

/// How a process connects. The timeouts are the server's own: a stopped client must not hold up the others,
/// so each lies well below the lease of a claim (2 min).
#[derive(Debug, Clone)]
pub struct DbSettings {
    /// Most connections at once. Default 8.
    pub max_connections: u32,
    /// How long one statement may run. Default 30 s.
    pub statement_timeout: Duration,
    /// How long a statement may wait for a lock. Default 5 s.
    pub lock_timeout: Duration,
    /// How long a transaction may idle before the server ends it. Default 10 s.
    pub idle_in_transaction_timeout: Duration,
    /// How long to wait for a connection, a new one or one of the pool. Default 10 s.
    pub connect_timeout: Duration,
    /// What `pg_stat_activity` shows. Default `pgcrawl`.
    pub application_name: String,
    /// Whether the URL is that of a pooler in transaction mode. Default no. Then only the statements of a [`Route::Pooler`] will do.
    pub through_pooler: bool,
}

impl Default for DbSettings {
    fn default() -> Self {
        Self {
            max_connections: 8,
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(5),
            idle_in_transaction_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            application_name: "pgcrawl".to_owned(),
            through_pooler: false,
        }
    }
}

impl DbSettings {
    /// How statements reach the server with these settings.
    pub fn route(&self) -> Route {
        if !self.through_pooler {
            return Route::Session;
        }
        let mut begin = "begin isolation level read committed".to_owned();
        for (name, value) in self.session() {
            // Names and values are ours; values hold digits, letters and spaces.
            begin.push_str(&format!("; set local {name} = '{value}'"));
        }
        Route::Pooler {
            begin: begin.into(),
        }
    }

    /// What each session has, or each transaction of a pooler's.
    fn session(&self) -> impl Iterator<Item = (&'static str, String)> {
        REQUIRED
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .chain([
                ("plan_cache_mode", PLANS.to_owned()),
                ("statement_timeout", millis(self.statement_timeout)),
                ("lock_timeout", millis(self.lock_timeout)),
                (
                    "idle_in_transaction_session_timeout",
                    millis(self.idle_in_transaction_timeout),
                ),
            ])
    }
}

/// Settings that the protocol depends on, so that they are checked after connecting.
///
/// Waking and parking need a fresh snapshot per statement. Plans made while the tables were empty must not outlive
/// that, and a bitmap scan would lock rows in heap order instead of the order of ids.
const REQUIRED: [(&str, &str); 4] = [
    ("default_transaction_isolation", "read committed"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
];

/// A statement is planned once a session, not at each execution: to plan a claim takes longer than to run it. Those plans are index scans whatever
/// the parameters; tests look at them.
const PLANS: &str = "force_generic_plan";

/// Servers on Linux notice with this that a client vanished while they work for it; the others refuse the setting.
const CHECK_INTERVAL: (&str, &str) = ("client_connection_check_interval", "10s");

/// Connects a pool with the session settings of the frontier, and checks that the database will do.
///
/// # Errors
/// A database that cannot be reached, that is not UTF8, older than 14 or read-only, or a pooler that drops the settings.
pub async fn connect(url: &SecretString, settings: &DbSettings) -> Result<PgPool, DbError> {
    let base = parse(url)?.application_name(&settings.application_name);
    let at = place(&base);
    let options = if settings.through_pooler {
        // It refuses start-up options and keeps no names of statements.
        let options = base.extra_float_digits(None).statement_cache_capacity(0);
        quiet(options)
    } else {
        let options = with_settings(base, settings);
        let checked = options.clone().options([CHECK_INTERVAL]);
        match open(&checked, settings.connect_timeout).await {
            Ok(probe) => {
                let _ = probe.close().await;
                checked
            }
            Err(error) if sqlstate(&error).as_deref() == Some("22023") => options,
            Err(error) => return Err(DbError::from_connect(at, error)),
        }
    };
    let pool = PgPoolOptions::new()
        .max_connections(settings.max_connections)
        .acquire_timeout(settings.connect_timeout)
        // The driver's own test waits without limit.
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(answers(connection)))
        .connect_lazy_with(options);
    let mut session = Session::take(&pool, &settings.route())
        .await
        .map_err(|error| DbError::from_connect(at, error))?;
    check(&mut session).await?;
    session.put_back();
    Ok(pool)
}

/// Closes a pool, whether or not its server still answers.
pub async fn close(pool: PgPool) {
    // Somebody may wait on a connection whose server vanished without closing it.
    let _ = tokio::time::timeout(SIGN_OF_LIFE, pool.close()).await;
}

/// Reads a URL; libpq's `PG*` variables fill in what it leaves out.
pub(crate) fn parse(url: &SecretString) -> Result<PgConnectOptions, DbError> {
    PgConnectOptions::from_str(url.expose_secret()).map_err(DbError::Url)
}

/// Where the options lead, without the password.
pub(crate) fn place(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(folder) => folder.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

/// A connection beside the pool that waits for statements and locks as long as they take.
pub(crate) async fn patient_connection(pool: &PgPool) -> Result<PgConnection, DbError> {
    let options = pool.connect_options();
    let patient = PgConnectOptions::clone(&options)
        .options([("statement_timeout", "0"), ("lock_timeout", "0")]);
    open(&patient, Duration::from_secs(30))
        .await
        .map_err(|error| DbError::from_connect(place(&options), error))
}

/// Opens one connection within `timeout`.
pub(crate) async fn open(
    options: &PgConnectOptions,
    timeout: Duration,
) -> Result<PgConnection, sqlx::Error> {
    match tokio::time::timeout(timeout, PgConnection::connect_with(options)).await {
        Ok(connected) => connected,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(
            io::ErrorKind::TimedOut,
            "no answer in time",
        ))),
    }
}

fn with_settings(options: PgConnectOptions, settings: &DbSettings) -> PgConnectOptions {
    quiet(
        options
            .options(settings.session())
            .options([("tcp_keepalives_idle", "30")]),
    )
}

/// The driver would print whole statements to the operator when a lock takes a second.
fn quiet(options: PgConnectOptions) -> PgConnectOptions {
    options.disable_statement_logging()
}

fn millis(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

async fn check(session: &mut Session) -> Result<(), DbError> {
    let names: Vec<&str> = REQUIRED.iter().map(|(name, _)| *name).collect();
    let facts = sqlx::query_as(
        "select current_setting('server_version_num')::int, current_setting('server_version'),
                current_setting('server_encoding'), current_setting('transaction_read_only')::bool,
                array(select current_setting(name) from unnest($1::text[]) with ordinality as r (name, n) order by n)",
    )
    .bind(names)
    .fetch_one(session)
    .await;
    let (number, version, encoding, read_only, settings): (i32, String, String, bool, Vec<String>) =
        facts.map_err(|source| DbError::Query {
            doing: "asking the server about itself",
            source,
        })?;
    if number < OLDEST_SERVER {
        return Err(DbError::TooOld { found: version });
    }
    if encoding != "UTF8" {
        return Err(DbError::NotUtf8 { found: encoding });
    }
    if read_only {
        return Err(DbError::ReadOnly);
    }
    for ((name, wanted), found) in REQUIRED.into_iter().zip(settings) {
        if found != wanted {
            return Err(DbError::Setting {
                name,
                wanted,
                found,
            });
        }
    }
    Ok(())
}
