//! Workers that connect first, and then start together.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{LabError, Result};

/// Runs one worker a member, all from the same moment on. Answers what each returned, in their order, and the time from the start to the last
/// one's end.
///
/// The members are what connecting brought: whoever still opened its connection while others worked would be measured with it.
pub(super) async fn crew<W, T, F, Work>(members: Vec<W>, work: F) -> Result<(Vec<T>, Duration)>
where
    F: Fn(usize, W) -> Work,
    Work: Future<Output = Result<T>> + Send + 'static,
    T: Send + 'static,
{
    let barrier = Arc::new(Barrier::new(members.len() + 1));
    let mut working = JoinSet::new();
    for (number, member) in members.into_iter().enumerate() {
        let barrier = Arc::clone(&barrier);
        let work = work(number, member);
        working.spawn(async move {
            barrier.wait().await;
            work.await.map(|outcome| (number, outcome))
        });
    }
    barrier.wait().await;
    let began = Instant::now();
    let mut outcomes = Vec::new();
    // An error drops the set, and that ends the others.
    while let Some(ended) = working.join_next().await {
        outcomes.push(ended.map_err(LabError::Panicked)??);
    }
    let took = began.elapsed();
    outcomes.sort_by_key(|(number, _)| *number);
    Ok((
        outcomes.into_iter().map(|(_, outcome)| outcome).collect(),
        took,
    ))
}
