//! One crawl is one database: their names, their addresses, creating, listing and dropping them.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::{AssertSqlSafe, PgConnection};

use super::error::EmbeddedError;
use super::secrets::{READER, WRITER};
use super::server::Server;
use crate::db::Access;
use crate::db::connect::{open, place};
use crate::db::error::{DbError, sqlstate};

/// What a crawl's database is called, before the crawl's name.
const PREFIX: &str = "crawl_";

/// Longest name of a crawl in bytes; Postgres cuts names at 63.
const LONGEST_NAME: usize = 40;

/// How often creating a database is tried while its template is in use by another creation, every 50 ms.
const TEMPLATE_ATTEMPTS: u32 = 100;

/// The database of a crawl.
///
/// # Errors
/// [`EmbeddedError::Name`] unless it is 1 to 40 ASCII letters, digits, `-` and `_`.
fn database(crawl: &str) -> Result<String, EmbeddedError> {
    let fits = (1..=LONGEST_NAME).contains(&crawl.len());
    if fits
        && crawl
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    {
        return Ok(format!("{PREFIX}{crawl}"));
    }
    Err(EmbeddedError::Name {
        name: crawl.to_owned(),
    })
}

impl Server {
    /// Creates the database of a crawl, if it does not exist; tells whether it did so.
    ///
    /// # Errors
    /// A name that cannot be one, or an error of the server.
    pub async fn create_database(&self, crawl: &str) -> Result<bool, EmbeddedError> {
        let database = database(crawl)?;
        let mut connection = self.maintenance().await?;
        let exists: bool =
            sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
                .bind(&database)
                .fetch_one(&mut connection)
                .await
                .map_err(failed("looking for the crawl"))?;
        if exists {
            return Ok(false);
        }
        for attempt in 1.. {
            let created = sqlx::query(AssertSqlSafe(format!("create database \"{database}\"")))
                .execute(&mut connection)
                .await;
            match created.map_err(|error| (sqlstate(&error).unwrap_or_default(), error)) {
                Ok(_) => break,
                // Somebody else was quicker: 42P04, or a unique violation when both were inside.
                Err((code, _)) if code == "42P04" || code == "23505" => return Ok(false),
                Err((code, _)) if code == "55006" && attempt < TEMPLATE_ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err((_, error)) => {
                    return Err(failed("creating the crawl's database")(error).into());
                }
            }
        }
        // By default everybody may connect and make temporary tables; the reader may only connect.
        let grants = format!(
            "revoke all on database \"{database}\" from public; grant connect on database \"{database}\" to {READER}"
        );
        sqlx::raw_sql(AssertSqlSafe(grants))
            .execute(&mut connection)
            .await
            .map_err(failed("granting the reader's rights"))?;
        Ok(true)
    }

    /// Names of the crawls, sorted.
    ///
    /// # Errors
    /// An error of the server.
    pub async fn databases(&self) -> Result<Vec<String>, EmbeddedError> {
        let mut connection = self.maintenance().await?;
        let names: Vec<String> = sqlx::query_scalar(
            "select datname::text from pg_database where not datistemplate order by 1",
        )
        .fetch_all(&mut connection)
        .await
        .map_err(failed("listing the crawls"))?;
        Ok(names
            .iter()
            .filter_map(|name| name.strip_prefix(PREFIX))
            .map(str::to_owned)
            .collect())
    }

    /// Drops a crawl with all it holds; tells whether there was one.
    ///
    /// # Errors
    /// [`EmbeddedError::CrawlInUse`] while anybody is connected to it.
    pub async fn drop_database(&self, crawl: &str) -> Result<bool, EmbeddedError> {
        let database = database(crawl)?;
        let mut connection = self.maintenance().await?;
        let dropped = sqlx::query(AssertSqlSafe(format!("drop database \"{database}\"")))
            .execute(&mut connection)
            .await;
        match dropped.map_err(|error| (sqlstate(&error).unwrap_or_default(), error)) {
            Ok(_) => Ok(true),
            Err((code, _)) if code == "3D000" => Ok(false),
            Err((code, _)) if code == "55006" => Err(EmbeddedError::CrawlInUse {
                name: crawl.to_owned(),
            }),
            Err((_, error)) => Err(failed("dropping the crawl's database")(error).into()),
        }
    }

    /// The URL of a crawl's database for the role that writes it, through the socket. It need not exist yet.
    pub fn url(&self, crawl: &str) -> SecretString {
        self.socket_url(WRITER, &self.secrets.writer, crawl)
    }

    /// The same for the role that can only read.
    pub fn reader_url(&self, crawl: &str) -> SecretString {
        self.socket_url(READER, &self.secrets.reader, crawl)
    }

    /// The URL of the writing role for other programs of this machine, over TCP on loopback.
    pub fn tcp_url(&self, crawl: &str) -> SecretString {
        let (password, port) = (self.secrets.writer.expose_secret(), self.endpoint.port);
        format!(
            "postgres://{WRITER}:{password}@127.0.0.1:{port}/{PREFIX}{}",
            encoded(crawl.as_bytes())
        )
        .into()
    }

    /// What `psql` is to be called with: its environment, and a connection string without the password.
    ///
    /// # Errors
    /// A name that cannot be one.
    pub fn psql(&self, crawl: &str, access: Access) -> Result<Psql, EmbeddedError> {
        let role = match access {
            Access::Read => READER,
            Access::Write => WRITER,
        };
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
        let conninfo = format!(
            "host='{}' port={} user={role} dbname='{}'",
            quoted(&self.endpoint.socket_folder.display().to_string()),
            self.endpoint.port,
            database(crawl)?
        );
        let beside = self.installation.program("psql");
        let program = if beside.exists() {
            beside
        } else {
            "psql".into()
        };
        Ok(Psql {
            program,
            conninfo,
            pgpass: self.place.home.pgpass(),
        })
    }

    fn socket_url(&self, role: &str, password: &SecretString, crawl: &str) -> SecretString {
        let folder = encoded(self.endpoint.socket_folder.as_os_str().as_encoded_bytes());
        let (password, port, crawl) = (
            password.expose_secret(),
            self.endpoint.port,
            encoded(crawl.as_bytes()),
        );
        format!("postgres://{role}:{password}@{folder}:{port}/{PREFIX}{crawl}?sslmode=disable")
            .into()
    }

    /// A connection beside all crawls.
    async fn maintenance(&self) -> Result<PgConnection, EmbeddedError> {
        let options = self
            .endpoint
            .options(WRITER, &self.secrets.writer, "postgres");
        let connected = open(&options, Duration::from_secs(10)).await;
        Ok(connected.map_err(|error| DbError::from_connect(place(&options), error))?)
    }
}

/// How to call `psql`.
#[derive(Debug, Clone)]
pub struct Psql {
    /// The program: the one of the installation, else whatever `PATH` has.
    pub program: std::path::PathBuf,
    /// Its argument, a libpq connection string.
    pub conninfo: String,
    /// For the environment variable `PGPASSFILE`.
    pub pgpass: std::path::PathBuf,
}

/// Percent-encodes for a part of a URL. The form's encoding does, but for the space.
fn encoded(bytes: &[u8]) -> String {
    url::form_urlencoded::byte_serialize(bytes)
        .map(|part| part.replace('+', "%20"))
        .collect()
}

fn failed(doing: &'static str) -> impl FnOnce(sqlx::Error) -> DbError {
    move |source| DbError::Query { doing, source }
}

#[cfg(test)]
mod tests {
    use super::database;

    #[test]
    fn a_crawls_name_needs_no_quoting_and_fits_in_a_database_name() {
        assert_eq!(database("my-Crawl_2").unwrap(), "crawl_my-Crawl_2");
        assert_eq!(database(&"x".repeat(40)).unwrap().len(), 46);
        for bad in ["", "a b", "a\"b", "ä", "a/b", &"x".repeat(41)] {
            assert!(database(bad).is_err(), "{bad:?}");
        }
    }
}
