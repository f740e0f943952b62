//! One statement of an operator's, with its answer as text.
//!
//! The server prints every type itself, arrays, enums and infinite timestamps included: the statement is first prepared,
//! which tells its columns and refuses more than one statement, and then run by the simple protocol, whose answers are text.

use std::io;
use std::time::Duration;

use futures_util::TryStreamExt;
use secrecy::SecretString;
use sqlx::postgres::PgRow;
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Either, Executor, PgConnection, Row,
    SqlSafeStr, Statement, TypeInfo,
};

use super::connect::{open, parse, place};
use super::error::DbError;

/// How long beyond the server's own limit we wait for it, before it counts as vanished.
const GRACE: Duration = Duration::from_secs(5);

/// How long to wait for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The embedded server's role that can only read.
pub(crate) const READER: &str = "pgcrawl_read";

/// What a statement may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// In a read-only transaction, and with the rights of `pg_read_all_data` where we may take that role: a read-only
    /// transaction alone does not stop a superuser's `copy … to program`.
    Read,
    /// As the URL's role, outside of a transaction, so that `vacuum` works too.
    Write,
}

/// How the text of a column is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Digits, but also `NaN` and `Infinity`.
    Number,
    /// `t` or `f`.
    Bool,
    /// A JSON value.
    Json,
    /// Anything else, as Postgres prints it.
    Text,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextColumn {
    /// Its name; not unique.
    pub name: String,
    /// How its values read.
    pub form: Form,
}

/// A part of an answer, in this order: the columns, the rows, the end.
#[derive(Debug)]
pub enum Part<'a> {
    /// Once, first; none for a statement without an answer.
    Columns(&'a [TextColumn]),
    /// A row, one value a column; null is `None`.
    Row(&'a [Option<&'a str>]),
    /// The end, with the number of rows returned or changed.
    End(u64),
}

/// Why a statement's answer did not come about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// No connection, or the server refused the statement.
    #[error(transparent)]
    Db(#[from] DbError),
    /// `copy` with our end of the connection as its file, which we do not speak.
    #[error("copy to or from the client is not supported")]
    Copy,
    /// The receiver of the answer failed.
    #[error("writing the answer failed")]
    Output(#[source] io::Error),
}

/// Runs one statement and hands the parts of its answer to `receive` as they arrive.
///
/// `timeout` is the server's limit for the statement; zero is none.
///
/// # Errors
/// See [`QueryError`]. The connection is closed in any case.
pub async fn query_text(
    url: &SecretString,
    access: Access,
    statement: &str,
    timeout: Duration,
    receive: &mut (dyn FnMut(Part<'_>) -> io::Result<()> + Send),
) -> Result<(), QueryError> {
    let options = parse(url)?
        .application_name("pgcrawl sql")
        .options([("statement_timeout", format!("{}ms", timeout.as_millis()))])
        .disable_statement_logging();
    let connected = open(&options, CONNECT_TIMEOUT).await;
    let mut connection =
        connected.map_err(|error| DbError::from_connect(place(&options), error))?;
    if access == Access::Read {
        if options.get_username() != READER {
            // A superuser could do more in a read-only transaction than read. Others could not, and may look at more than that role
            // (sizes, other sessions). Without the membership we stay who we are.
            let is_superuser: String = sqlx::query_scalar("select current_setting('is_superuser')")
                .fetch_one(&mut connection)
                .await
                .map_err(failed)?;
            if is_superuser == "on" {
                let _ = connection.execute("set role pg_read_all_data").await;
            }
        }
        connection
            .execute("begin transaction read only")
            .await
            .map_err(failed)?;
    }
    answer(&mut connection, statement, timeout, receive).await?;
    if access == Access::Read {
        connection.execute("rollback").await.map_err(failed)?;
    }
    Ok(connection.close().await.map_err(failed)?)
}

async fn answer(
    connection: &mut PgConnection,
    statement: &str,
    timeout: Duration,
    receive: &mut (dyn FnMut(Part<'_>) -> io::Result<()> + Send),
) -> Result<(), QueryError> {
    let sql = AssertSqlSafe(statement.to_owned()).into_sql_str();
    let prepared = connection.prepare(sql.clone()).await.map_err(failed)?;
    let columns: Vec<TextColumn> = prepared
        .columns()
        .iter()
        .map(|column| TextColumn {
            name: column.name().to_owned(),
            form: form(column.type_info().name()),
        })
        .collect();
    receive(Part::Columns(&columns)).map_err(QueryError::Output)?;
    let mut answer = sqlx::raw_sql(sql).fetch_many(connection);
    let mut rows = 0;
    loop {
        let next = match timeout.is_zero() {
            true => answer.try_next().await,
            false => tokio::time::timeout(timeout + GRACE, answer.try_next())
                .await
                .unwrap_or_else(|_| Err(vanished())),
        };
        match next {
            Ok(Some(Either::Right(row))) => {
                rows += 1;
                receive(Part::Row(&values(&row)?)).map_err(QueryError::Output)?;
            }
            Ok(Some(Either::Left(result))) => rows = rows.max(result.rows_affected()),
            Ok(None) => break,
            Err(sqlx::Error::Protocol(message)) if message.contains("Copy") => {
                return Err(QueryError::Copy);
            }
            Err(error) => return Err(failed(error).into()),
        }
    }
    receive(Part::End(rows)).map_err(QueryError::Output)
}

fn values(row: &PgRow) -> Result<Vec<Option<&str>>, DbError> {
    (0..row.len())
        .map(|index| {
            let value = row.try_get_raw(index).map_err(failed)?;
            if sqlx::ValueRef::is_null(&value) {
                return Ok(None);
            }
            value
                .as_str()
                .map(Some)
                .map_err(|error| failed(sqlx::Error::Decode(error)))
        })
        .collect()
}

fn form(type_name: &str) -> Form {
    match type_name {
        "INT2" | "INT4" | "INT8" | "FLOAT4" | "FLOAT8" | "NUMERIC" | "OID" => Form::Number,
        "BOOL" => Form::Bool,
        "JSON" | "JSONB" => Form::Json,
        _ => Form::Text,
    }
}

fn failed(source: sqlx::Error) -> DbError {
    DbError::Query {
        doing: "the statement",
        source,
    }
}

fn vanished() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(
        io::ErrorKind::TimedOut,
        "the server does not answer",
    ))
}
