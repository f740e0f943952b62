//! Connecting: the session settings of the frontier's protocol, and the checks that a database will do.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};

use super::error::{DbError, sqlstate};

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
        }
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

/// Servers on Linux notice with this that a client vanished while they work for it; the others refuse the setting.
const CHECK_INTERVAL: (&str, &str) = ("client_connection_check_interval", "10s");

/// Connects a pool with the session settings of the frontier, and checks that the database will do.
///
/// # Errors
/// A database that cannot be reached, that is not UTF8, older than 14 or read-only, or a pooler that drops the settings.
pub async fn connect(url: &SecretString, settings: &DbSettings) -> Result<PgPool, DbError> {
    let base = parse(url)?;
    let at = place(&base);
    let mut options = with_settings(base, settings);
    let checked = options.clone().options([CHECK_INTERVAL]);
    let mut probe = match open(&checked, settings.connect_timeout).await {
        Ok(connection) => {
            options = checked;
            connection
        }
        Err(error) if sqlstate(&error).as_deref() == Some("22023") => {
            open(&options, settings.connect_timeout)
                .await
                .map_err(|error| DbError::from_connect(at.clone(), error))?
        }
        Err(error) => return Err(DbError::from_connect(at, error)),
    };
    check(&mut probe).await?;
    probe.close().await.map_err(|source| DbError::Query {
        doing: "closing a connection",
        source,
    })?;
    Ok(PgPoolOptions::new()
        .max_connections(settings.max_connections)
        .acquire_timeout(settings.connect_timeout)
        .connect_lazy_with(options))
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
    options
        .application_name(&settings.application_name)
        .options(REQUIRED)
        .options([
            ("statement_timeout", millis(settings.statement_timeout)),
            ("lock_timeout", millis(settings.lock_timeout)),
            (
                "idle_in_transaction_session_timeout",
                millis(settings.idle_in_transaction_timeout),
            ),
            ("tcp_keepalives_idle", "30".to_owned()),
        ])
        // The driver would print whole statements to the operator when a lock takes a second.
        .disable_statement_logging()
}

fn millis(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

async fn check(connection: &mut PgConnection) -> Result<(), DbError> {
    let query = |source| DbError::Query {
        doing: "asking the server about itself",
        source,
    };
    let (number, version, encoding, read_only): (i32, String, String, bool) = sqlx::query_as(
        "select current_setting('server_version_num')::int, current_setting('server_version'),
                current_setting('server_encoding'), current_setting('transaction_read_only')::bool",
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(query)?;
    if number < OLDEST_SERVER {
        return Err(DbError::TooOld { found: version });
    }
    if encoding != "UTF8" {
        return Err(DbError::NotUtf8 { found: encoding });
    }
    if read_only {
        return Err(DbError::ReadOnly);
    }
    for (name, wanted) in REQUIRED {
        let found: String = sqlx::query_scalar("select current_setting($1)")
            .bind(name)
            .fetch_one(&mut *connection)
            .await
            .map_err(query)?;
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
