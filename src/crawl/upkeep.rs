//! What every process does beside the crawl, so that nothing stays lost whoever dies.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    budget, context::Context, dispatch::Event, identity, proxies::Told, rejections, shapes,
};
use crate::{
    clock,
    frontier::{FrontierError, Identity},
};

/// How often due retries are looked for: an index probe.
const PROMOTE_EVERY: Duration = Duration::from_secs(1);

/// How often the counts are folded, the report is written, and new rules, settings and a pause are looked for.
const FOLD_EVERY: Duration = Duration::from_secs(2);

/// Runs until told to stop. Trouble that lasts longer than the frontier's patience ends it.
pub(super) async fn run(
    cx: Arc<Context>,
    me: Identity,
    events: mpsc::UnboundedSender<Event>,
    stop: CancellationToken,
) -> Result<(), FrontierError> {
    let mut next = Instant::now();
    let (mut fold_at, mut recycle_at) = (next, next);
    let mut paused = false;
    let mut told = Told::default();
    let mut rejections = rejections::Told::default();
    let mut shapes_version = None;
    while !stop.is_cancelled() {
        let now = Instant::now();
        if now >= recycle_at {
            recycle(&cx, &me).await?;
            recycle_at = now + cx.settings.recycle_every;
        }
        let due = cx.frontier.promote().await?;
        if due > 0 {
            cx.stir();
        }
        if now >= fold_at {
            cx.frontier.fold_counts().await?;
            cx.frontier
                .report(cx.licence.worker(), cx.tally.report())
                .await?;
            told.tell(&cx).await?;
            rejections.tell(&cx).await?;
            cx.rules.refresh(&cx.frontier).await?;
            cx.rules.set_year(clock::year());
            paused = look(&cx, &events, paused, &mut shapes_version).await?;
            if let Some(which) = cx.budget_used_up().await? {
                let _ = events.send(Event::UsedUp(which));
            }
            budget::close_hosts(&cx).await?;
            shapes::fold(&cx).await?;
            fold_at = now + FOLD_EVERY;
        }
        next += PROMOTE_EVERY.min(cx.settings.recycle_every);
        next = next.max(Instant::now());
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep_until(next) => {}
        }
    }
    cx.frontier.fold_counts().await?;
    budget::close_hosts(&cx).await?;
    told.tell(&cx).await?;
    rejections.tell(&cx).await?;
    cx.frontier
        .report(cx.licence.worker(), cx.tally.report())
        .await
}

/// Hears of a pause and of settings that changed. Answers whether the crawl is paused. Until then nothing is claimed by what was before: the
/// claim itself looks.
async fn look(
    cx: &Context,
    events: &mpsc::UnboundedSender<Event>,
    was_paused: bool,
    shapes_version: &mut Option<i32>,
) -> Result<bool, FrontierError> {
    let Some(standing) = cx.frontier.standing().await? else {
        return Ok(false);
    };
    cx.workers.store(standing.workers, Ordering::Relaxed);
    cx.has_left_out
        .store(standing.has_left_out, Ordering::Relaxed);
    if standing.version != cx.frontier.settings().version {
        // A dispatcher that is gone needs no news.
        let _ = events.send(Event::Resettled);
    }
    if shapes_version.replace(standing.shapes_version) != Some(standing.shapes_version) {
        cx.shapes.refresh(cx).await?;
    }
    match (was_paused, standing.paused) {
        (false, true) => {
            tracing::info!("the crawl is paused; `pgcrawl resume` lets it go on");
            let _ = events.send(Event::Paused);
        }
        (true, false) => {
            tracing::info!("the crawl goes on");
            cx.stir();
        }
        _ => {}
    }
    Ok(standing.paused)
}

/// The dead of this machine are known at once; the others by their heartbeat.
pub(super) async fn recycle(cx: &Context, me: &Identity) -> Result<(), FrontierError> {
    let neighbours = cx
        .frontier
        .neighbours(&me.machine, cx.licence.worker())
        .await?;
    let gone = identity::gone(&neighbours);
    if !gone.is_empty() {
        tracing::info!(
            workers = gone.len(),
            "earlier processes of this machine are gone; what they had claimed is open again"
        );
        cx.frontier.bury(&gone).await?;
    }
    let back = cx.frontier.recycle().await?;
    if back > 0 {
        tracing::info!(tasks = back, "recycled claims that were lost");
        cx.stir();
    }
    Ok(())
}
