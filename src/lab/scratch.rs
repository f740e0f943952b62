//! Where a run works: a place of its own that leaves with it.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};

use super::LabError;
use super::error::Doing;
use super::session::sqlstate;

/// A scratch database, or a scratch schema in a database that has other tables.
///
/// All sessions of a run bear its name, so that [`Scratch::clear`] can end those that are still busy, whatever became of the process's
/// side of them.
#[derive(Clone, Debug)]
pub struct Scratch {
    name: String,
    url: SecretString,
    /// The schema to be dropped, and the URL of the database without it.
    schema_of: Option<SecretString>,
}

impl Scratch {
    /// The name of this process's run: `pgcrawl_bench_<pid>`.
    pub fn name_of_process() -> String {
        format!("pgcrawl_bench_{}", std::process::id())
    }

    /// A database that was made for the run; whoever made it drops it, after [`Scratch::clear`].
    pub fn database(url: SecretString) -> Scratch {
        Scratch {
            name: Self::name_of_process(),
            url,
            schema_of: None,
        }
    }

    /// Makes a schema of its own in a database, and nothing outside of it: `search_path` names no other.
    ///
    /// # Errors
    /// The database cannot be reached, or the role may not create a schema.
    pub async fn schema(url: SecretString) -> Result<Scratch, LabError> {
        let first = Self::name_of_process();
        let mut connection = connect(&url, &first).await?;
        // A process of this number may be at it on another machine.
        for number in 1.. {
            let name = if number == 1 {
                first.clone()
            } else {
                format!("{first}_{number}")
            };
            let made = connection
                .execute(AssertSqlSafe(format!("create schema {name}")))
                .await;
            match made {
                Ok(_) => {
                    let inside = with_search_path(&url, &name)?;
                    let _ = connection.close().await;
                    return Ok(Scratch {
                        name,
                        url: inside,
                        schema_of: Some(url),
                    });
                }
                // duplicate_schema, or a unique violation where both were inside.
                Err(error) if matches!(sqlstate(&error).as_deref(), Some("42P06" | "23505")) => {}
                Err(error) => return Err(LabError::NoSchema(error)),
            }
        }
        unreachable!("the numbers do not end")
    }

    /// What the run connects with.
    pub fn url(&self) -> &SecretString {
        &self.url
    }

    /// The schema's name, which is also what the sessions call themselves (`application_name`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends all sessions of the run, and drops the schema, if it is one.
    ///
    /// # Errors
    /// The database fails; then the schema is left, and can be dropped by hand.
    pub async fn clear(&self) -> Result<(), LabError> {
        let url = self.schema_of.as_ref().unwrap_or(&self.url);
        let mut connection = connect(url, "pgcrawl bench, clearing up").await?;
        // A statement of minutes goes on without its client: it would keep the tables locked.
        for _ in 0..200 {
            let left: i64 = sqlx::query_scalar(
                "select count(pg_terminate_backend(pid))
                 from pg_stat_activity
                 where datname = current_database() and application_name = $1 and pid <> pg_backend_pid()",
            )
            .bind(&self.name)
            .fetch_one(&mut connection)
            .await
            .doing("ending the run's sessions")?;
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if self.schema_of.is_some() {
            let name = &self.name;
            connection
                .execute(AssertSqlSafe(format!(
                    "drop schema if exists {name} cascade"
                )))
                .await
                .doing("dropping the scratch schema")?;
        }
        let _ = connection.close().await;
        Ok(())
    }
}

/// A connection outside of the run's own schema.
async fn connect(url: &SecretString, name: &str) -> Result<PgConnection, LabError> {
    let options: PgConnectOptions = url
        .expose_secret()
        .parse()
        .map_err(crate::db::DbError::Url)?;
    options
        .application_name(name)
        .options([
            ("statement_timeout", "60s"),
            ("client_min_messages", "warning"),
        ])
        .disable_statement_logging()
        .connect()
        .await
        .doing("connecting")
}

fn with_search_path(url: &SecretString, schema: &str) -> Result<SecretString, LabError> {
    let mut url = url::Url::parse(url.expose_secret()).map_err(LabError::Url)?;
    url.query_pairs_mut()
        .append_pair("options[search_path]", schema);
    Ok(String::from(url).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_path_is_added_to_what_a_url_says_already() {
        let url = with_search_path(&"postgres://u:p%40@h/db?sslmode=disable".into(), "s").unwrap();
        let options: PgConnectOptions = url.expose_secret().parse().unwrap();
        assert_eq!(options.get_options(), Some("-c search_path=s"));
        assert_eq!(options.get_database(), Some("db"));
    }
}
