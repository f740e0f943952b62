//! What the visit of a sitemap comes to, beside the tasks that were made on the way.

use super::{
    super::{
        context::Context,
        judging::Links,
        read::{self, LONGEST_ROW, Read},
        visit::Candidate,
    },
    link_of,
    reading::Reading,
    readmit,
};
use crate::{
    canon::PageUrl,
    exchange::{Exchange, Truncated},
    extract::sitemap::MOST_NESTED,
    frontier::{
        ClaimedTask, Found, FrontierError, Outcome, SitemapRow, SitemapVisit, TaskKind, WorkerId,
    },
    pages::PageRow,
};

/// The row of a sitemap that was read; the sitemap's own is written at once.
pub(in super::super) async fn read(
    cx: &Context,
    task: &ClaimedTask,
    url: &PageUrl,
    exchange: &Exchange,
    reading: &Reading,
) -> Result<Read, FrontierError> {
    let summary = reading.summary;
    let mut page = PageRow {
        reading: Some(cx.reading(url.as_url())),
        body_bytes: reading.bytes,
        links: summary.urls,
        digest: (reading.bytes > 0).then_some(reading.digest),
        ..PageRow::answered(exchange, None, false)
    };
    let reason = match summary.format {
        Some(format) => {
            let row = SitemapRow {
                format: format.as_str(),
                ending: reading.ending(exchange.truncated.is_none()),
                urls: summary.urls,
                in_scope: reading.in_scope,
                foreign_urls: reading.foreign,
                invalid: summary.invalid.saturating_add(reading.unusable),
                assets: reading.assets,
            };
            tracing::debug!(task.id = task.id.0, url.full = %task.url, urls = row.urls, in_scope = row.in_scope, ending = row.ending, "a sitemap was read");
            let visit = SitemapVisit {
                task: task.id,
                claim_version: task.claim_version,
            };
            cx.frontier.sitemap_read(visit, &row).await?;
            None
        }
        None => {
            if exchange.truncated == Some(Truncated::Length) {
                page.truncated = Some(Truncated::Unwanted.as_str());
            }
            Some("no_sitemap")
        }
    };
    Ok(Read {
        outcome: Outcome::Done { reason },
        page,
        links: Vec::new(),
        edges: Vec::new(),
        widens: None,
    })
}

/// Follows the redirect of a sitemap, wherever it leads, as those of robots.txt are followed: what the file names is judged in the end.
pub(in super::super) async fn redirect(
    cx: &Context,
    worker: WorkerId,
    task: &ClaimedTask,
    url: &PageUrl,
    exchange: &Exchange,
) -> Result<Read, FrontierError> {
    let mut page = PageRow::answered(exchange, None, false);
    let target = exchange
        .redirect_target()
        .and_then(|location| read::base_of(url, exchange).join(&location).ok())
        .filter(|target| target.as_str().len() <= LONGEST_ROW);
    let hops = task.hops.saturating_add(1);
    let canon = &cx.frontier.settings().canon;
    let reason = match target {
        None => Some("redirect_malformed"),
        Some(_) if hops > MOST_NESTED => Some("redirect_too_many_hops"),
        Some(target) if target.digest(canon) == url.digest(canon) => Some("redirect_robots"),
        Some(target) => {
            page.redirect_to = Some(crate::pages::clean(target.as_str(), 4_000));
            let mut links = Links::default();
            let candidate = Candidate {
                url: target,
                depth: task.depth,
                hops,
                kind: TaskKind::Sitemap,
                priority: task.priority,
                label: task.label.clone(),
                excluded: None,
            };
            links.push(cx, candidate);
            enqueue(cx, worker, task, links.judged(cx).await).await?
        }
    };
    Ok(Read {
        outcome: Outcome::Done { reason },
        page,
        links: Vec::new(),
        edges: Vec::new(),
        widens: None,
    })
}

/// Makes a task of the target. Answers why it will not be visited, if so.
async fn enqueue(
    cx: &Context,
    worker: WorkerId,
    task: &ClaimedTask,
    links: Vec<Candidate>,
) -> Result<Option<&'static str>, FrontierError> {
    let keys: Vec<_> = links.iter().map(|link| link.url.host().clone()).collect();
    let hosts = cx.frontier.hosts(&keys).await?;
    let found: Vec<Found> = links
        .into_iter()
        .filter_map(|link| {
            Some(Found {
                said: None,
                link: link_of(cx, *hosts.get(link.url.host())?, link),
            })
        })
        .collect();
    let is_forbidden = found.iter().any(|one| one.link.excluded.is_some());
    let visit = SitemapVisit {
        task: task.id,
        claim_version: task.claim_version,
    };
    readmit(cx, Some(task.id), &found).await?;
    cx.frontier
        .enqueue_found(worker, Some(visit), &found)
        .await?;
    cx.stir();
    Ok(is_forbidden.then_some("redirect_robots"))
}
