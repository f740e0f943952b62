//! What an operator does to a crawl, whether it runs or not.
//!
//! Tasks are chosen by a [`Condition`], SQL over the columns of the view `visits`, and changed in batches, each of which is an autocommit
//! statement: nothing of the crawl waits longer than for one of them, and cut off between two, what was changed is changed and the rest is as
//! it was. What follows from a change is the triggers' work, as for SQL that is typed in psql: hosts are woken, counts stay right.
//!
//! # Look, then change
//!
//! A walk over all tasks reads them by id, so many at a time, and asks the condition of those that the change could be about. What it found is
//! then locked in the order of ids, *waiting* for whoever is at it, judged once more by its status, and changed. So a running claim or
//! finish costs a moment, never a row: what became claimed in between is excluded as well, what was finished in between is left alone.
//!
//! A task that is made new again also reopens its host, in one statement: as long as a host is given up, the next claim would fail the
//! task again. Since that changes what a condition may have asked of hosts, all tasks are looked for before the first one is changed.
//!
//! Each change has its dry run: [`Operator::count`] looks, and changes nothing.

mod change;
mod condition;
mod error;
mod hosts;
mod pause;
mod reindex;
mod scope;
mod walk;

pub use change::{Change, Ended, Tally};
pub use condition::Condition;
pub use error::OperateError;
pub use hosts::{Class, KnownHost};
pub use pause::Paused;
pub use reindex::{IndexSize, Indexes, OldTransaction, Patience, Rebuilt};

pub use scope::{Against, ExcludedByShape, Judged};

use super::Frontier;

/// A result of this module.
pub type Result<T = ()> = std::result::Result<T, OperateError>;

/// The operator's hands on a frontier. Needs no crawl that runs, and disturbs none that does.
#[derive(Clone, Debug)]
pub struct Operator {
    frontier: Frontier,
}

impl Operator {
    /// An operator of this frontier. Its settings must be those of the crawl: a new delay waits for the crawl's leases.
    pub fn new(frontier: Frontier) -> Operator {
        Operator { frontier }
    }

    /// The frontier.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }
}
