//! The end of claims that were not used up: tasks are given back, then their hosts released.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{
    context::Context,
    stock::{Arrival, Slot, Stocked},
};
use crate::frontier::{FrontierError, Giving, HostId, Release};

/// How long a first release waits for others to share its statement. Far below any delay worth having.
const LINGER: Duration = Duration::from_millis(20);

/// What is let go at once.
#[derive(Debug, Default)]
pub(super) struct LettingGo {
    pub(super) givings: Vec<Giving>,
    pub(super) releases: Vec<Release>,
    /// Hosts without a hold that answered after failures on record.
    pub(super) answered: Vec<HostId>,
}

impl LettingGo {
    /// All that is left of a slot.
    pub(super) fn of(slot: &Slot) -> LettingGo {
        let release = slot.hold.map(|hold| Release {
            host: slot.host,
            hold,
            last_fetch: slot.last_fetch.map(|fetched| fetched.ended),
            took: slot
                .last_fetch
                .map_or(Duration::ZERO, |fetched| fetched.took),
            answered: slot.answered,
            goes_on: false,
        });
        let answered = slot.hold.is_none() && slot.ailing && slot.answered;
        LettingGo {
            givings: slot.tasks.iter().map(giving).collect(),
            releases: release.into_iter().collect(),
            answered: answered.then_some(slot.host).into_iter().collect(),
        }
    }

    /// A claimed host that came too late.
    pub(super) fn unused(arrival: &Arrival) -> LettingGo {
        let release = arrival.hold.map(|hold| Release {
            host: arrival.host,
            hold,
            last_fetch: None,
            took: Duration::ZERO,
            answered: false,
            goes_on: false,
        });
        LettingGo {
            givings: arrival.tasks.iter().map(giving).collect(),
            releases: release.into_iter().collect(),
            answered: Vec::new(),
        }
    }

    fn absorb(&mut self, other: LettingGo) {
        self.givings.extend(other.givings);
        self.releases.extend(other.releases);
        self.answered.extend(other.answered);
    }
}

fn giving(stocked: &Stocked) -> Giving {
    Giving {
        task: stocked.task.id,
        claim_version: stocked.task.claim_version,
    }
}

/// Lets go until the channel is closed and empty.
pub(super) async fn run(
    cx: Arc<Context>,
    mut goings: mpsc::UnboundedReceiver<LettingGo>,
) -> Result<(), FrontierError> {
    while let Some(mut all) = goings.recv().await {
        if !goings.is_closed() {
            tokio::time::sleep(LINGER).await;
        }
        while let Ok(more) = goings.try_recv() {
            all.absorb(more);
        }
        let worker = cx.licence.worker();
        // Before the release, so that the host is not claimed without them.
        cx.frontier.give_back(worker, &all.givings).await?;
        cx.frontier.release(worker, &all.releases).await?;
        if !all.answered.is_empty() {
            cx.frontier.answered(&all.answered).await?;
        }
        if !all.givings.is_empty() {
            cx.stir();
        }
    }
    Ok(())
}
