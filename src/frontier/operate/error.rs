//! What may go wrong between an operator and the frontier.

use std::time::Duration;

use sqlx::postgres::{PgDatabaseError, PgErrorPosition};

use super::OldTransaction;
use crate::{db::DbError, frontier::FrontierError};

/// Trouble with what an operator asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperateError {
    /// Postgres does not take the condition.
    #[error("the condition `{condition}` is refused: {said}{}", place(*.position))]
    Condition {
        /// As it was given.
        condition: String,
        /// The server's words.
        said: String,
        /// Where, in characters from 1. `None` where the server does not say.
        position: Option<usize>,
        /// The server's advice, or ours.
        hint: Option<String>,
    },
    /// The server's limit for a statement ends the condition however few tasks it is asked of.
    #[error(
        "the condition `{condition}` takes too long: even {tasks} tasks were not asked within the server's limit"
    )]
    Slow {
        /// As it was given.
        condition: String,
        /// How many tasks it was asked of at last.
        tasks: i32,
    },
    /// What should name a host is neither a host name nor a URL.
    #[error("{host:?} names no host")]
    NotAHost {
        /// As it was given.
        host: String,
        /// What is wrong with it.
        #[source]
        source: crate::canon::CanonError,
    },
    /// No such host is in the crawl.
    #[error("the crawl has no host {host:?}")]
    UnknownHost {
        /// As it was given.
        host: String,
        /// Hosts whose names are near; the nearest first.
        near: Vec<String>,
    },
    /// No crawl was begun in this database.
    #[error("no crawl was begun in this database")]
    NoCrawl,
    /// Another session builds an index of this database.
    #[error("session {pid} builds an index of this database already")]
    Occupied {
        /// The session.
        pid: i32,
    },
    /// A reindex would have to wait for a transaction that began long ago.
    #[error("{} would have to be waited for", told(.transaction))]
    OldTransaction {
        /// The oldest one.
        transaction: OldTransaction,
    },
    /// No connection of its own could be had.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The database would not do.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

fn told(transaction: &OldTransaction) -> String {
    let age = humantime::format_duration(Duration::from_secs(transaction.age.as_secs()));
    match transaction.pid {
        Some(pid) => format!(
            "a transaction of session {pid} ({:?}), {age} old,",
            transaction.name
        ),
        None => format!(
            "the prepared transaction {:?}, {age} old,",
            transaction.name
        ),
    }
}

fn place(position: Option<usize>) -> String {
    position.map_or_else(String::new, |position| {
        format!(" (at character {position})")
    })
}

impl OperateError {
    /// What the operator can do about it, where we know that.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Condition { hint, .. } => return hint.clone(),
            Self::Slow { .. } => {
                "ask columns of `visits` alone: a select in it is run again for each batch"
                    .to_owned()
            }
            Self::UnknownHost { near, .. } if !near.is_empty() => {
                format!("it has {}", near.join(", "))
            }
            Self::UnknownHost { .. } => {
                "`pgcrawl sql \"select authority from hosts\"` lists them".to_owned()
            }
            Self::NotAHost { .. } => {
                "a host is example.org, https://example.org:8443, or the URL of one of its pages"
                    .to_owned()
            }
            Self::NoCrawl => "`pgcrawl crawl SEEDS` begins one".to_owned(),
            Self::Occupied { .. } => "wait until it is through".to_owned(),
            Self::OldTransaction { transaction } => match transaction.pid {
                Some(pid) => {
                    format!("--wait waits for it; `select pg_terminate_backend({pid})` ends it")
                }
                None => "--wait waits for it; `commit prepared` or `rollback prepared` ends it"
                    .to_owned(),
            },
            Self::Db(error) => return error.hint().map(str::to_owned),
            Self::Frontier(_) => return None,
        })
    }

    /// What the server said about a condition, where it said something that is not our fault. `before`: characters of the statement before
    /// the condition.
    pub(super) fn of_condition(
        condition: &str,
        before: usize,
        error: FrontierError,
    ) -> OperateError {
        let FrontierError::Statement {
            source: sqlx::Error::Database(said),
            ..
        } = &error
        else {
            return error.into();
        };
        let Some(said) = said.try_downcast_ref::<PgDatabaseError>() else {
            return error.into();
        };
        let position = match said.position() {
            Some(PgErrorPosition::Original(at)) => at.checked_sub(before),
            _ => None,
        };
        let is_behind = position.is_some_and(|at| at > condition.chars().count());
        let hint = match said.code() {
            "42703" => Some("`select * from visits limit 1` shows the columns".to_owned()),
            _ => said.hint().map(str::to_owned),
        };
        OperateError::Condition {
            condition: condition.to_owned(),
            // What follows is ours, and means nothing to the operator.
            said: match is_behind && said.code() == "42601" {
                true => "it is not complete".to_owned(),
                false => said.message().to_owned(),
            },
            position: position.filter(|at| *at > 0 && !is_behind),
            hint,
        }
    }
}
