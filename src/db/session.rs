//! A connection of a pool for single statements, which nothing leaves in the pool half used.
//!
//! The driver returns a connection to its pool in a task that asks the server for a sign of life and waits for it without limit: a server
//! that vanished without closing its socket would so keep one place of the pool after the other. Here the asking has a limit, and what was
//! cut off in the middle of a statement is closed.
//!
//! # Through a pooler in transaction mode
//!
//! Each transaction may run on another connection to the server, and so a session's settings and prepared statements are not where one left
//! them. The driver sends a statement in two steps, each ended by a `Sync`: parse and describe it, then bind and execute it. Outside of a
//! transaction the pooler may give them to two connections. Inside of one it cannot, so each statement gets a transaction of its own. Its
//! first message also sets what a session of ours has from its start-up, for this transaction alone: nothing has to be configured for the
//! role. The statement is an unnamed one, since names would meet those of other clients.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    AssertSqlSafe, Connection as _, Either, Execute, Executor, PgConnection, PgPool, Postgres,
    SqlStr,
};

use super::connect::open;

/// How long a pooled connection may take for a sign of life. A server under load answers within milliseconds; what this closes in vain is
/// opened again.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(3);

/// How statements reach the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Route {
    /// By sessions of our own, whose settings were given at their start.
    #[default]
    Session,
    /// Through a pooler in transaction mode.
    Pooler {
        /// Begins a transaction and gives it the settings of a session.
        begin: Arc<str>,
    },
}

/// A connection out of a pool. It goes back by [`Session::put_back`]; dropped without that, it is closed.
#[derive(Debug)]
pub struct Session {
    connection: Option<PoolConnection<Postgres>>,
    route: Route,
}

impl Session {
    /// Takes a connection out of the pool, or opens one; by the pool's time limit.
    ///
    /// # Errors
    /// No connection came about.
    pub async fn take(pool: &PgPool, route: &Route) -> Result<Session, sqlx::Error> {
        let connection = match pool.acquire().await {
            Err(sqlx::Error::PoolTimedOut) => return Err(why_none(pool).await),
            other => other?,
        };
        Ok(Session {
            connection: Some(connection),
            route: route.clone(),
        })
    }

    /// Gives it back to the pool, unless it does not answer any more. Does not wait for that.
    pub fn put_back(mut self) {
        if let Some(mut connection) = self.connection.take() {
            // What the driver does when it drops one, but not for ever: cut off, the connection is closed and its place is free.
            let returned = connection.return_to_pool();
            tokio::spawn(tokio::time::timeout(SIGN_OF_LIFE, returned));
        }
    }

    /// Gives back the memory of a large statement: the driver keeps a buffer as large as the largest that it ever sent, in each connection that
    /// sent one.
    pub fn shrink(&mut self) {
        if let Ok(connection) = self.connection() {
            connection.shrink_buffers();
        }
    }

    fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        // It is there until it is given back, which takes the session along.
        self.connection
            .as_deref_mut()
            .ok_or(sqlx::Error::PoolClosed)
    }

    async fn in_transaction<'q, E>(
        &mut self,
        begin: &str,
        query: E,
    ) -> Result<Vec<Either<PgQueryResult, PgRow>>, sqlx::Error>
    where
        E: 'q + Execute<'q, Postgres>,
    {
        let connection = self.connection()?;
        // Ours, and the numbers in it are durations.
        connection.execute(AssertSqlSafe(begin.to_owned())).await?;
        let answer: Result<Vec<_>, _> = connection.fetch_many(Unnamed(query)).try_collect().await;
        let end = if answer.is_ok() { "commit" } else { "rollback" };
        let ended = connection.execute(end).await;
        match (answer, ended) {
            (Ok(rows), Ok(_)) => Ok(rows),
            (Ok(_), Err(error)) => Err(error),
            (Err(error), Ok(_)) => Err(error),
            (Err(error), Err(_)) => {
                // Nobody may get it with a transaction open.
                self.close();
                Err(error)
            }
        }
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            // At once and without a farewell, which could wait for a server that is gone.
            drop(connection.detach());
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl<'c> Executor<'c> for &'c mut Session {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        match self.route.clone() {
            Route::Session => match self.connection() {
                Ok(connection) => connection.fetch_many(query),
                Err(error) => stream::iter([Err(error)]).boxed(),
            },
            Route::Pooler { begin } => stream::once(async move {
                let rows = self.in_transaction(&begin, query).await?;
                Ok::<_, sqlx::Error>(stream::iter(rows.into_iter().map(Ok)))
            })
            .try_flatten()
            .boxed(),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let mut parts = self.fetch_many(query);
        Box::pin(async move {
            let mut first = None;
            // To the end: an error may come behind the rows.
            while let Some(part) = parts.try_next().await? {
                if let (Either::Right(row), None) = (part, &first) {
                    first = Some(row);
                }
            }
            Ok(first)
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        match self.connection() {
            Ok(connection) => connection.prepare_with(sql, parameters),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    // What the checked macros ask at compile time; the trait wants it.
    fn describe<'e>(
        self,
        sql: SqlStr,
    ) -> BoxFuture<'e, Result<sqlx::Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        match self.connection() {
            Ok(connection) => connection.describe(sql),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }
}

/// A statement that is prepared without a name, for this once.
struct Unnamed<E>(E);

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Unnamed<E> {
    fn sql(self) -> SqlStr {
        self.0.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.0.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, sqlx::error::BoxDynError> {
        self.0.take_arguments()
    }

    fn persistent(&self) -> bool {
        false
    }
}

/// Why the pool had no connection within its time limit: it keeps to itself what its own attempts met.
async fn why_none(pool: &PgPool) -> sqlx::Error {
    match open(&pool.connect_options(), SIGN_OF_LIFE).await {
        Ok(_) => sqlx::Error::PoolTimedOut,
        Err(error) => error,
    }
}

/// Asks a connection for a sign of life before it is used: the pool's `before_acquire`.
pub(super) async fn answers(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match tokio::time::timeout(SIGN_OF_LIFE, connection.ping()).await {
        Ok(Ok(())) => Ok(true),
        // The pool would log an error as a warning, but a connection that was closed is everyday life.
        Ok(Err(_)) | Err(_) => Ok(false),
    }
}
