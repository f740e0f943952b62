//! Shapes of URLs whose pages bring nothing new: found by whoever folds the last pages in, left out by all.

use std::{
    collections::{HashMap, HashSet},
    sync::{PoisonError, RwLock},
    time::Duration,
};

use uuid::Uuid;

use super::context::Context;
use crate::{
    canon::{HostKey, PageUrl},
    frontier::{
        Fold, FrontierError, HostId, ShapeNews, ShapePage, StoredShape,
        operate::{Against, ExcludedByShape, OperateError, Operator},
    },
    scope::{
        Reason,
        shape::{self, ShapeLimits, Verdict, WINDOW},
    },
};

/// Pages that are folded in by one statement.
const PAGES: u32 = 2_000;

/// Statements of one look, at most: other upkeep waits for it.
const ROUNDS: usize = 10;

/// Pages are committed that long after their fetch at most, as a rule; one that comes later is not looked at, which only makes the evidence less.
const LAG: Duration = Duration::from_secs(1);

/// The shapes that are parked, as this process knows them.
#[derive(Debug, Default)]
pub(super) struct ParkedShapes {
    by_host: RwLock<HashMap<HostKey, HashSet<String>>>,
}

impl ParkedShapes {
    /// The shape of a URL, if it is parked.
    pub(super) fn of(&self, url: &PageUrl) -> Option<String> {
        let by_host = self.by_host.read().unwrap_or_else(PoisonError::into_inner);
        let parked = by_host.get(url.host())?;
        shape::of(url.as_url()).filter(|shape| parked.contains(shape))
    }

    /// Whether a shape that this process takes for parked is so, by the database.
    pub(super) async fn is_still_parked(
        &self,
        cx: &Context,
        host: HostId,
        shape: &str,
    ) -> Result<bool, FrontierError> {
        let known = cx.frontier.shapes_of(&[(host, shape)]).await?;
        let is_parked = known.first().is_some_and(|known| known.is_parked);
        if !is_parked {
            self.refresh(cx).await?;
        }
        Ok(is_parked)
    }

    /// Reads them anew.
    pub(super) async fn refresh(&self, cx: &Context) -> Result<(), FrontierError> {
        let mut by_host: HashMap<HostKey, HashSet<String>> = HashMap::new();
        for (_, authority, shape) in cx.frontier.parked_shapes().await? {
            if let Ok(key) = HostKey::parse(&authority) {
                by_host.entry(key).or_default().insert(shape);
            }
        }
        *self.by_host.write().unwrap_or_else(PoisonError::into_inner) = by_host;
        Ok(())
    }
}

/// Folds in what was fetched since the last time, and parks what brings nothing new.
pub(super) async fn fold(cx: &Context) -> Result<(), FrontierError> {
    let limits = &cx.settings.shapes;
    if limits.pages == 0 {
        return Ok(());
    }
    for _ in 0..ROUNDS {
        let pages = cx.frontier.shape_pages(PAGES, LAG).await?;
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else {
            return Ok(());
        };
        let (from, to) = (first.mark, (last.fetched_at, last.task.0));
        let is_all = pages.len() < PAGES as usize;
        let news = news(cx, pages, limits).await?;
        let parked: Vec<(HostId, String)> = news
            .iter()
            .filter(|one| one.parks)
            .map(|one| (one.host, one.shape.clone()))
            .collect();
        if !cx.frontier.fold_shapes(&Fold { from, to, news }).await? {
            // Another process is at it.
            return Ok(());
        }
        if !parked.is_empty() {
            cx.shapes.refresh(cx).await?;
        }
        for (host, shape) in parked {
            let left_out = match leave_out(cx, host, &shape).await {
                Ok(left_out) => left_out,
                Err(OperateError::Frontier(error)) => return Err(error),
                // No other kind comes of statements without a condition; what was not reached is left out when its turn comes.
                Err(error) => {
                    tracing::warn!(%error, "not all tasks of a shape could be left out");
                    continue;
                }
            };
            tracing::info!(
                host.id = host.0,
                tasks = left_out,
                "pages of shape {shape} bring nothing new; it is parked, see view trap_shapes"
            );
        }
        if is_all {
            return Ok(());
        }
    }
    Ok(())
}

/// What pages say of their shapes, beside what is known of these.
async fn news(
    cx: &Context,
    pages: Vec<ShapePage>,
    limits: &ShapeLimits,
) -> Result<Vec<ShapeNews>, FrontierError> {
    let mut found: HashMap<(HostId, String), ShapeNews> = HashMap::new();
    for page in pages {
        let Some((digest, shape)) = page
            .digest
            .as_deref()
            .and_then(<[u8]>::first_chunk)
            .zip(PageUrl::parse(&page.url).ok())
            .and_then(|(digest, url)| Some((*digest, shape::of(url.as_url())?)))
        else {
            continue;
        };
        let one = found
            .entry((page.host, shape.clone()))
            .or_insert_with(|| ShapeNews {
                host: page.host,
                shape,
                pages: 0,
                recent: Vec::new(),
                example: page.url,
                parks: false,
            });
        one.pages += 1;
        one.recent.push(i32::from_be_bytes(digest));
    }
    let asked: Vec<(HostId, &str)> = found
        .keys()
        .map(|(host, shape)| (*host, shape.as_str()))
        .collect();
    let known = cx.frontier.shapes_of(&asked).await?;
    let mut known: HashMap<(HostId, String), _> = known
        .into_iter()
        .map(|known| ((known.host, known.shape.clone()), known))
        .collect();
    let news = found.into_iter().map(|(key, mut one)| {
        let known = known.remove(&key);
        let is_decided = known.as_ref().is_some_and(StoredShape::is_decided);
        if let Some(mut known) = known {
            known.recent.append(&mut one.recent);
            one.recent = known.recent;
        }
        one.recent
            .drain(..one.recent.len().saturating_sub(WINDOW))
            .for_each(drop);
        one.parks = !is_decided && shape::judge(&one.recent, limits) == Verdict::Stale;
        one
    });
    Ok(news.collect())
}

/// Excludes what is still to be visited of a shape. What is claimed of it is left out when its turn comes.
async fn leave_out(cx: &Context, host: HostId, shape: &str) -> Result<u64, OperateError> {
    let operator = Operator::new(cx.frontier.clone());
    let (mut left_out, mut after) = (0, Uuid::nil());
    loop {
        let (last, tasks) = operator
            .host_tasks_after(host, after, ExcludedByShape::No)
            .await?;
        let Some(last) = last else {
            return Ok(left_out);
        };
        let of_it = tasks
            .into_iter()
            .filter(|(_, url)| shape_of(url).as_deref() == Some(shape));
        let against: Vec<Against> = of_it
            .map(|(task, _)| Against {
                task,
                reason: Reason::Shape.as_str(),
                detail: shape.to_owned(),
            })
            .collect();
        if !against.is_empty() && !cx.shapes.is_still_parked(cx, host, shape).await? {
            // An operator brings its tasks back.
            return Ok(left_out);
        }
        left_out += operator.decide_against(&against).await?;
        after = last;
    }
}

fn shape_of(url: &str) -> Option<String> {
    shape::of(PageUrl::parse(url).ok()?.as_url())
}
