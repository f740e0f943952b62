//! How a statement is tried: never dropped half way into the pool, repeated while the trouble passes.
//!
//! Macros and not functions that take closures: a future that borrows both its arguments and the connection cannot be named as `Send` yet.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rand::RngExt as _;
use tokio::time::Instant;

use super::{Frontier, FrontierError, error};
use crate::db::Session;

/// Runs one autocommit statement, once: `once!(frontier, async |db| …)`.
///
/// Past the server's own `statement_timeout` and some more (a server that vanished without closing its socket) the connection is closed,
/// and not returned to the pool; so it is where this is cut off.
macro_rules! once {
    ($frontier:expr, async |$db:ident| $statement:expr) => {
        once!($frontier, $frontier.limit(), async |$db| $statement)
    };
    ($frontier:expr, $limit:expr, async |$db:ident| $statement:expr) => {
        match $frontier.session().await {
            Ok(mut session) => {
                let limit = $limit;
                let answer = {
                    let $db = &mut session;
                    tokio::select! {
                        biased;
                        answer = tokio::time::timeout(limit, async { $statement }) => answer.ok(),
                        () = $frontier.hurried() => None,
                    }
                };
                crate::frontier::tries::ended(session, answer)
            }
            Err(error) => Err(error),
        }
    };
}

/// Runs one autocommit statement and repeats it with jittered waits while the trouble passes: `run!(frontier, "name", async |db| …)`.
///
/// `async |db, again|` also tells whether an earlier try may have been done, its answer lost: for statements that must not count twice.
macro_rules! run {
    ($frontier:expr, $what:literal, async |$db:ident| $statement:expr) => {
        run!($frontier, $what, async |$db, _again| $statement)
    };
    ($frontier:expr, $what:literal, async |$db:ident, $again:ident| $statement:expr) => {{
        let mut tries = crate::frontier::tries::Tries::new($what);
        loop {
            let $again = tries.lost();
            match once!($frontier, async |$db| $statement) {
                Ok(value) => break Ok(value),
                Err(error) => {
                    if let Err(end) = tries.failed(error, $frontier).await {
                        break Err(end);
                    }
                }
            }
        }
    }};
}

pub(super) use {once, run};

/// How much longer than the server's own limit a statement is waited for.
const GRACE: Duration = Duration::from_secs(5);

impl Frontier {
    /// A connection of the pool, for one statement.
    pub(super) async fn session(&self) -> Result<Session, sqlx::Error> {
        tokio::select! {
            biased;
            session = Session::take(&self.pool, &self.settings().route) => session,
            () = self.hurried() => Err(silent()),
        }
    }

    /// How long a statement is waited for. The server's own limit comes first, unless the server is gone.
    pub(super) fn limit(&self) -> Duration {
        let theirs = self.settings().statement_timeout;
        theirs + theirs.min(GRACE)
    }
}

/// The end of a statement: its connection goes back to the pool if another statement may follow on it.
pub(super) fn ended<T>(
    session: Session,
    answer: Option<Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let answer = answer.unwrap_or_else(|| Err(silent()));
    if !answer.as_ref().is_err_and(error::spoils) {
        session.put_back();
    }
    answer
}

/// A server that did not answer and did not hang up.
fn silent() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        "the server did not answer",
    ))
}

/// The tries of one statement.
pub(super) struct Tries {
    what: &'static str,
    began: Instant,
    wait: Duration,
    lost: bool,
}

impl Tries {
    pub(super) fn new(what: &'static str) -> Tries {
        Tries {
            what,
            began: Instant::now(),
            wait: Duration::from_millis(20),
            lost: false,
        }
    }

    /// Whether some try may have been done although it failed.
    pub(super) fn lost(&self) -> bool {
        self.lost
    }

    /// Waits until it is worth another try; the end of all tries is the error.
    pub(super) async fn failed(
        &mut self,
        error: sqlx::Error,
        frontier: &Frontier,
    ) -> Result<(), FrontierError> {
        let what = self.what;
        self.lost |= error::is_lost(&error);
        if !error::passes(&error) {
            return Err(FrontierError::Statement {
                what,
                source: error,
            });
        }
        if self.began.elapsed() > frontier.settings().patience || frontier.is_hurried() {
            if error::is_disk_full(&error) {
                return Err(FrontierError::DiskFull {
                    what,
                    source: error,
                });
            }
            return Err(FrontierError::Lost {
                what,
                after: self.began.elapsed(),
                source: error,
            });
        }
        tell(what, &error);
        let jitter = rand::rng().random_range(0.5..1.5);
        tokio::select! {
            () = tokio::time::sleep(self.wait.mul_f64(jitter)) => {}
            () = frontier.hurried.cancelled() => {}
        }
        self.wait = (self.wait * 2).min(Duration::from_secs(2));
        Ok(())
    }
}

/// Says that the database is in trouble: at once, and then every ten seconds, whoever meets it.
fn tell(what: &'static str, error: &sqlx::Error) {
    const SELDOM: Duration = Duration::from_secs(10);
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    if matches!(code.as_deref(), Some("40P01" | "40001" | "55P03")) {
        // Others were in the way: that is everyday life.
        tracing::debug!(statement = what, %error, "repeating a statement");
        return;
    }
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_some_and(|at| at.elapsed() < SELDOM) {
        tracing::debug!(statement = what, %error, "repeating a statement");
        return;
    }
    *last = Some(Instant::now());
    if error::is_disk_full(error) {
        tracing::warn!(statement = what, %error, "the database's disk is full; the crawl waits for room");
    } else {
        tracing::warn!(statement = what, %error, "the database is in trouble; the crawl waits for it");
    }
}
