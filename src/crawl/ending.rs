//! How a run is told to stop, and how it ends.

use tokio_util::sync::CancellationToken;

/// Two ways to be told to stop. Dropping it stops nothing.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// No more claims; what is under way is finished, for at most the grace.
    pub drain: CancellationToken,
    /// Leave at once; what is under way is given back.
    pub abort: CancellationToken,
}

/// Until when a run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// Nothing is left to do anywhere.
    #[default]
    Finished,
    /// It is told to stop: with nothing to do it waits for more.
    Stopped,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to do.
    Finished,
    /// A limit of this run was reached.
    Limit,
    /// It was told to stop.
    Interrupted,
    /// The crawl's settings changed: it is to be joined anew, under those.
    Resettled,
}
