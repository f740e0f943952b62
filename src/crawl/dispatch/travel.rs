//! A visit as a task of its own: the journey, the host's news, the hand-over to the commit, the report.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::mpsc;

use super::Event;
use crate::{
    clock::Boottime,
    crawl::{
        commit::Loaded,
        context::Context,
        stock::{Fetched, SlotId},
        visit::{self, Ended, HostNews, Job},
    },
    frontier::{FrontierError, Giving, HostId, Pace},
};

pub(super) async fn travel(
    cx: Arc<Context>,
    slot: SlotId,
    job: Job,
    visits: mpsc::Sender<Loaded>,
    events: mpsc::UnboundedSender<Event>,
) {
    let giving = Giving {
        task: job.task.id,
        claim_version: job.task.claim_version,
    };
    let (host, answered) = (job.host, job.answered);
    let event = match visit::travel(&cx, job).await {
        Ended::Visited(visit, host_news, fetched) => {
            if let Err(error) = tell_host(&cx, host, &host_news, answered).await {
                let _ = events.send(Event::Trouble(error));
            }
            cx.uncommitted.fetch_add(1, Ordering::AcqRel);
            // Waits here while the commit is behind: that is the back-pressure.
            let visited = visits.send(Loaded::new(&cx, visit).await).await.is_ok();
            Event::Ended {
                slot,
                giving,
                host_news,
                fetched,
                visited,
            }
        }
        Ended::Busy(wait) => {
            if let Err(error) = rest_for_its_address(&cx, host, wait).await {
                let _ = events.send(Event::Trouble(error));
            }
            not_begun(slot, giving)
        }
        Ended::Trouble(error) => {
            let _ = events.send(Event::Trouble(error));
            not_begun(slot, giving)
        }
        Ended::NotBegun => not_begun(slot, giving),
        Ended::Aborted => Event::Ended {
            slot,
            giving,
            host_news: HostNews::Asked,
            fetched: Some(Fetched {
                ended: Boottime::now(),
                took: Duration::ZERO,
            }),
            visited: false,
        },
    };
    let _ = events.send(event);
}

fn not_begun(slot: SlotId, giving: Giving) -> Event {
    Event::Ended {
        slot,
        giving,
        host_news: HostNews::NotAsked,
        fetched: None,
        visited: false,
    }
}

/// A host whose address is asked for others is not claimed again at once.
pub(in crate::crawl) async fn rest_for_its_address(
    cx: &Context,
    host: HostId,
    wait: Duration,
) -> Result<(), FrontierError> {
    cx.frontier.defer(host, wait, Pace::Same, None).await
}

/// Trouble of a host moves its one row, not thousands of tasks. `answered`: it did so since it last was in trouble.
async fn tell_host(
    cx: &Context,
    host: HostId,
    news: &HostNews,
    answered: bool,
) -> Result<(), FrontierError> {
    let note = match news {
        HostNews::Patience { wait, note } => {
            cx.frontier
                .defer(host, *wait, Pace::Slower, Some(note))
                .await?;
            note
        }
        HostNews::Failed { note } => note,
        HostNews::Unasked { wait, note } => {
            return cx.frontier.defer(host, *wait, Pace::Same, Some(note)).await;
        }
        HostNews::NotAsked | HostNews::Answered | HostNews::Asked => return Ok(()),
    };
    let retry = &cx.settings.retry;
    let (limit, pauses) = (retry.breaker_failures, &retry.breaker_pauses);
    if cx
        .frontier
        .host_failed(host, limit, pauses, note, answered)
        .await?
    {
        tracing::info!(host.id = host.0, "{note}; the host is given up");
    }
    Ok(())
}
