//! When a task is visited, and when again.
//!
//! Pure judgement: what failed, how often it was tried, and chance go in; a wait comes out. Which errors there are is told by `fetch`, when
//! the wait is over is told by the database.

pub mod priority;
pub mod retry;

pub use priority::Order;
pub use retry::{RetrySettings, Trouble, Verdict};
