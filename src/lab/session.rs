//! Sessions that play a part in a scripted accident, and what is waited for between their lines.

use std::time::Duration;

use secrecy::ExposeSecret;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::error::Doing;
use super::{Lab, LabError, Result};

/// How long anything may take that comes about by itself.
const OVERDUE: Duration = Duration::from_secs(30);

/// A session of the run, with the settings that an ordinary client has.
#[derive(Debug)]
pub(super) struct Session {
    connection: PgConnection,
    /// Its server process.
    pub(super) pid: i32,
}

/// What a statement answered: its rows' first column, or the class of its refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The rows.
    Ids(Vec<i64>),
    /// Refused by the server, with this SQLSTATE.
    Refused(String),
}

impl Answer {
    pub(super) fn ids(&self) -> &[i64] {
        match self {
            Answer::Ids(ids) => ids,
            Answer::Refused(_) => &[],
        }
    }

    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Answer::Ids(_) => None,
            Answer::Refused(code) => Some(code),
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Ids(ids) if ids.is_empty() => f.write_str("no row"),
            Answer::Ids(ids) if ids.len() > 8 => write!(f, "{} rows", ids.len()),
            Answer::Ids(ids) => {
                let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
                write!(f, "rows {}", ids.join(", "))
            }
            Answer::Refused(code) => write!(f, "error {code}"),
        }
    }
}

/// A statement under way in a session.
pub(super) struct Running(JoinHandle<(Session, Result<Answer>, Duration)>);

impl Running {
    /// Its end: the session, the answer and how long it took.
    pub(super) async fn end(self) -> Result<(Session, Answer, Duration)> {
        let (session, answer, took) = self.0.await.map_err(LabError::Panicked)?;
        Ok((session, answer?, took))
    }
}

impl Lab {
    /// Opens a session.
    pub(super) async fn session(&self) -> Result<Session> {
        let options: PgConnectOptions = self
            .scratch
            .url()
            .expose_secret()
            .parse()
            .map_err(crate::db::DbError::Url)?;
        let mut connection = options
            .application_name(self.scratch.name())
            .options([
                ("statement_timeout", "0"),
                ("lock_timeout", "0"),
                // A snapshot is held open on purpose.
                ("idle_in_transaction_session_timeout", "0"),
                ("default_transaction_isolation", "read committed"),
                ("client_min_messages", "warning"),
                ("jit", "off"),
            ])
            .disable_statement_logging()
            .connect()
            .await
            .doing("connecting")?;
        let pid = sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&mut connection)
            .await
            .doing("asking for the server process")?;
        Ok(Session { connection, pid })
    }
}

impl Session {
    /// The connection, for statements with arguments.
    pub(super) fn db(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Runs statements without an answer, separated by semicolons.
    pub(super) async fn run(&mut self, sql: impl Into<String>) -> Result {
        self.connection
            .execute(AssertSqlSafe(sql.into()))
            .await
            .map(|_| ())
            .doing("a line of the script")
    }

    /// Asks for ids. A refusal is an answer.
    pub(super) async fn ask(&mut self, sql: impl Into<String>) -> Result<Answer> {
        let asked = sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql.into()))
            .fetch_all(&mut self.connection)
            .await;
        match asked {
            Ok(ids) => Ok(Answer::Ids(ids)),
            Err(error) => match sqlstate(&error) {
                Some(code) => Ok(Answer::Refused(code)),
                None => Err(LabError::Statement {
                    doing: "a question of the script",
                    source: error,
                }),
            },
        }
    }

    /// The same with the time that it took.
    pub(super) async fn timed(&mut self, sql: impl Into<String>) -> Result<(Answer, Duration)> {
        let began = Instant::now();
        let answer = self.ask(sql).await?;
        Ok((answer, began.elapsed()))
    }

    /// Asks, and does not wait for the answer.
    pub(super) fn begin_asking(mut self, sql: impl Into<String>) -> Running {
        let sql = sql.into();
        Running(tokio::spawn(async move {
            let began = Instant::now();
            let answer = self.ask(sql).await;
            (self, answer, began.elapsed())
        }))
    }

    /// Asks for one number.
    pub(super) async fn number(&mut self, sql: impl Into<String>) -> Result<i64> {
        sqlx::query_scalar(AssertSqlSafe(sql.into()))
            .fetch_one(&mut self.connection)
            .await
            .doing("a count")
    }

    /// Asks for one text.
    pub(super) async fn words(&mut self, sql: impl Into<String>) -> Result<String> {
        sqlx::query_scalar(AssertSqlSafe(sql.into()))
            .fetch_one(&mut self.connection)
            .await
            .doing("a question about the server")
    }

    /// Waits until that session waits for a lock.
    pub(super) async fn until_waiting(&mut self, pid: i32) -> Result {
        let began = Instant::now();
        loop {
            let waits: bool = sqlx::query_scalar(
                "select coalesce(bool_or(wait_event_type = 'Lock'), false) from pg_stat_activity where pid = $1",
            )
            .bind(pid)
            .fetch_one(&mut self.connection)
            .await
            .doing("looking who waits")?;
            if waits {
                return Ok(());
            }
            patience(began, "a session that waits for a lock").await?;
        }
    }

    /// Ends a session from outside, as an administrator or the death of its client does, and waits until it is gone.
    pub(super) async fn kill(&mut self, pid: i32) -> Result {
        let began = Instant::now();
        sqlx::query("select pg_terminate_backend($1)")
            .bind(pid)
            .execute(&mut self.connection)
            .await
            .doing("ending a session")?;
        while self
            .number(format!(
                "select count(*) from pg_stat_activity where pid = {pid}"
            ))
            .await?
            > 0
        {
            patience(began, "the end of a session").await?;
        }
        Ok(())
    }

    /// Says goodbye.
    pub(super) async fn close(self) {
        let _ = self.connection.close().await;
    }
}

/// A short rest within a wait for something that comes about by itself.
pub(super) async fn patience(began: Instant, what: &'static str) -> Result {
    if began.elapsed() > OVERDUE {
        return Err(LabError::Overdue {
            what,
            within: OVERDUE,
        });
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(())
}

/// The SQLSTATE of an error that a server sent.
pub(super) fn sqlstate(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}
