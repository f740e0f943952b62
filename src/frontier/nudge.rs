//! Wake-ups: a hint to idle workers that there are new tasks. Nothing depends on it; who misses it polls.

use sqlx::{PgPool, postgres::PgListener};

use super::{Frontier, tries::once};
use crate::db;

/// What is listened to; `sql/nudge.sql` has it, too.
const CHANNEL: &str = "pgcrawl_tasks";

impl Frontier {
    /// Tells all who listen that there may be something to claim. One try.
    pub async fn nudge(&self) -> std::result::Result<(), sqlx::Error> {
        once!(self, async |db| {
            sqlx::query_file!("src/frontier/sql/nudge.sql")
                .fetch_one(db)
                .await
                .map(|_| ())
        })
    }
}

/// Where ears come from: a pool of one connection, which must lead to the server itself and not to a pooler.
#[derive(Clone, Debug)]
pub struct Ears(PgPool);

impl Ears {
    /// Ears on this pool, each of which takes up a connection.
    pub fn new(pool: PgPool) -> Ears {
        Ears(pool)
    }

    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// No connection came about.
    pub async fn open(&self) -> std::result::Result<Ear, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.0).await?;
        listener.listen(CHANNEL).await?;
        Ok(Ear(listener))
    }

    /// Closes the pool.
    pub async fn close(&self) {
        db::close(self.0.clone()).await;
    }
}

/// Hears nudges, on a connection of its own.
#[derive(Debug)]
pub struct Ear(PgListener);

impl Ear {
    /// Forgets the nudges that have arrived and were not heard.
    pub fn forget(&mut self) {
        while self.0.next_buffered().is_some() {}
    }

    /// Waits for a nudge.
    ///
    /// # Errors
    ///
    /// The connection is gone: open another ear.
    pub async fn hear(&mut self) -> std::result::Result<(), sqlx::Error> {
        // A reconnection behind our back would hide that nudges were missed.
        match self.0.try_recv().await? {
            Some(_) => Ok(()),
            None => Err(sqlx::Error::WorkerCrashed),
        }
    }
}
