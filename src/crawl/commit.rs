//! Visits become rows: in batches, each by one statement, so that all of a visit is there or nothing of it.

use std::sync::{Arc, atomic::Ordering};

use quick_cache::unsync::Cache;
use tokio::{sync::mpsc, time::Instant};

use super::{
    context::Context,
    visit::{Candidate, Visit},
};
use crate::{
    canon::{HostKey, UrlDigest},
    frontier::{Finish, FrontierError, HostId, NewLink, Outcome},
};

/// URLs that are known to be tasks: most links of a site are its navigation. The index stays the truth.
const SEEN: usize = 256 << 10;

/// Hosts whose row is known.
const HOSTS: usize = 64 << 10;

/// Finished visits that wait for their statement at most; then visits wait to be taken, and nothing new is fetched.
pub(super) const CHANNEL: usize = 512;

/// Payload that one statement carries at most.
const BATCH_BYTES: usize = 8 << 20;

/// Takes visits until their channel is closed and empty.
pub(super) async fn run(
    cx: Arc<Context>,
    mut visits: mpsc::Receiver<Box<Visit>>,
) -> Result<(), FrontierError> {
    let mut committer = Committer {
        cx: Arc::clone(&cx),
        seen: Cache::new(SEEN),
        hosts: Cache::new(HOSTS),
    };
    let mut batch = Vec::new();
    while gather(&cx, &mut visits, &mut batch).await {
        let n = batch.len();
        committer.commit(&mut batch).await?;
        cx.uncommitted.fetch_sub(n, Ordering::AcqRel);
    }
    Ok(())
}

/// Fills a batch: until it is full, nobody waits for it to fill, or its first visit has waited long enough. False at the end.
async fn gather(
    cx: &Context,
    visits: &mut mpsc::Receiver<Box<Visit>>,
    batch: &mut Vec<Visit>,
) -> bool {
    let Some(first) = visits.recv().await else {
        return false;
    };
    let until = Instant::now() + cx.settings.linger;
    let mut bytes = weight(&first);
    batch.push(*first);
    while batch.len() < cx.settings.batch && bytes < BATCH_BYTES {
        let next = match visits.try_recv() {
            Ok(visit) => visit,
            Err(mpsc::error::TryRecvError::Disconnected) => break,
            Err(mpsc::error::TryRecvError::Empty) => tokio::select! {
                biased;
                next = visits.recv() => match next {
                    Some(visit) => visit,
                    None => break,
                },
                () = cx.hungry.notified() => break,
                () = tokio::time::sleep_until(until) => break,
            },
        };
        bytes += weight(&next);
        batch.push(*next);
    }
    true
}

fn weight(visit: &Visit) -> usize {
    visit
        .page
        .as_ref()
        .and_then(|page| page.body.as_ref())
        .map_or(0, Vec::len)
        + visit.links.len() * 100
}

struct Committer {
    cx: Arc<Context>,
    seen: Cache<UrlDigest, ()>,
    hosts: Cache<HostKey, HostId>,
}

impl Committer {
    async fn commit(&mut self, batch: &mut Vec<Visit>) -> Result<(), FrontierError> {
        self.widen(batch).await?;
        self.make_hosts(batch).await?;
        let finishes: Vec<Finish> = batch.drain(..).map(|visit| self.finish_of(visit)).collect();
        let accepted = self
            .cx
            .frontier
            .finish(self.cx.licence.worker(), &finishes)
            .await?;
        let mut linked = false;
        for (finish, accepted) in finishes.iter().zip(&accepted) {
            self.count(finish, *accepted);
            if *accepted {
                linked |= !finish.links.is_empty();
                // Not before: a link of a visit that was refused is no task.
                for link in &finish.links {
                    self.seen.insert(link.digest, ());
                }
            }
        }
        self.cx
            .tally
            .committed(u32::try_from(accepted.len()).unwrap_or(u32::MAX));
        if linked {
            self.cx.fresh.notify_one();
        }
        Ok(())
    }

    /// A seed that redirects to its twin takes the twin into scope. Before the finish, which makes it a task; alone it changes nothing.
    async fn widen(&self, batch: &[Visit]) -> Result<(), FrontierError> {
        let rules: Vec<(String, String)> = batch
            .iter()
            .filter_map(|visit| visit.widens.clone())
            .collect();
        if rules.is_empty() {
            return Ok(());
        }
        self.cx.frontier.add_rules(&rules, "redirect").await?;
        self.cx.rules.refresh(&self.cx.frontier).await
    }

    async fn make_hosts(&mut self, batch: &[Visit]) -> Result<(), FrontierError> {
        let mut unknown: Vec<HostKey> = Vec::new();
        for link in batch.iter().flat_map(|visit| &visit.links) {
            if self.hosts.get(link.url.host()).is_none() && unknown.last() != Some(link.url.host())
            {
                unknown.push(link.url.host().clone());
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        unknown.sort_unstable();
        unknown.dedup();
        for (key, id) in self.cx.frontier.hosts(&unknown).await? {
            self.hosts.insert(key, id);
        }
        Ok(())
    }

    fn finish_of(&mut self, visit: Visit) -> Finish {
        let links = visit
            .links
            .into_iter()
            .filter_map(|link| self.link_of(link))
            .collect();
        Finish {
            task: visit.task.id,
            claim_version: visit.task.claim_version,
            outcome: visit.outcome,
            page: visit.page,
            links,
        }
    }

    fn link_of(&mut self, link: Candidate) -> Option<NewLink> {
        let digest = link.url.digest();
        if self.seen.get(&digest).is_some() {
            return None;
        }
        let host = *self.hosts.get(link.url.host())?;
        Some(NewLink {
            host,
            digest,
            url: link.url.as_str().to_owned(),
            depth: link.depth,
            hops: link.hops,
            excluded: link.excluded,
        })
    }

    fn count(&self, finish: &Finish, accepted: bool) {
        let tally = &self.cx.tally;
        let counter = match (&finish.outcome, accepted) {
            (_, false) => {
                tracing::debug!(
                    task.id = finish.task.0,
                    claim.version = finish.claim_version,
                    "a lost lease: the visit was refused"
                );
                &tally.refused
            }
            (Outcome::Done { .. }, true) => &tally.done,
            (Outcome::Failed { due: Some(_), .. }, true) => &tally.retried,
            (Outcome::Failed { due: None, .. }, true) => &tally.failed,
            (Outcome::Excluded { .. }, true) => &tally.excluded,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if accepted && let Some(page) = &finish.page {
            tally.bytes.fetch_add(page.wire_bytes, Ordering::Relaxed);
        }
    }
}
