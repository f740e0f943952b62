//! Visits become rows: in batches, each by one statement, so that all of a visit is there or nothing of it.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use quick_cache::unsync::Cache;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::Instant,
};

use super::{
    context::Context,
    graph::{self, Aim, LinkGraph, PageLink},
    visit::{Candidate, Visit},
};
use crate::{
    canon::{HostKey, UrlDigest},
    frontier::{Edge, Finish, FrontierError, HostId, NewLink, Outcome, Target},
    schedule::Order,
    scope::Reason,
};

/// Hosts whose row is known.
const HOSTS: usize = 64 << 10;

/// Finished visits that wait for their statement at most; then visits wait to be taken, and nothing new is fetched.
pub(super) const CHANNEL: usize = 512;

/// Memory of finished visits that wait for their statement, at most; one that is larger alone takes all of it.
pub(super) const ROOM_KIB: u32 = 64 << 10;

/// Payload that one statement carries at most.
const BATCH_BYTES: usize = 4 << 20;

/// Takes visits until their channel is closed and empty.
pub(super) async fn run(
    cx: Arc<Context>,
    mut visits: mpsc::Receiver<Loaded>,
) -> Result<(), FrontierError> {
    let mut committer = Committer {
        cx: Arc::clone(&cx),
        hosts: Cache::new(HOSTS),
        at_hand: HashMap::new(),
        room: Cache::new(HOSTS),
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
    visits: &mut mpsc::Receiver<Loaded>,
    batch: &mut Vec<Loaded>,
) -> bool {
    let Some(first) = visits.recv().await else {
        return false;
    };
    let until = Instant::now() + cx.settings.linger;
    let mut bytes = first.visit.weight();
    batch.push(first);
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
        bytes += next.visit.weight();
        batch.push(next);
    }
    true
}

/// A visit on its way to the database, with the room that it takes there.
pub(super) struct Loaded {
    visit: Box<Visit>,
    room: OwnedSemaphorePermit,
}

impl Loaded {
    /// Waits until there is room: finished visits take so much memory and no more, however large their pages and however slow the database.
    pub(super) async fn new(cx: &Context, visit: Box<Visit>) -> Loaded {
        let kib = u32::try_from(visit.weight() / 1024 + 1).unwrap_or(u32::MAX);
        let room = Arc::clone(&cx.room).acquire_many_owned(kib.min(ROOM_KIB));
        Loaded {
            visit,
            room: room.await.expect("the semaphore is never closed"),
        }
    }
}

struct Committer {
    cx: Arc<Context>,
    hosts: Cache<HostKey, HostId>,
    /// Hosts of the batch at hand: the cache may have forgotten one before its turn.
    at_hand: HashMap<HostKey, HostId>,
    /// How many URLs hosts may have yet, at least: what of them is known already is counted off, too.
    room: Cache<HostId, u64>,
}

impl Committer {
    async fn commit(&mut self, batch: &mut Vec<Loaded>) -> Result<(), FrontierError> {
        self.widen(batch).await?;
        self.make_hosts(batch).await?;
        self.make_room(batch).await?;
        let mut rooms = Vec::with_capacity(batch.len());
        let mut finishes = Vec::with_capacity(batch.len());
        let by_links = self.cx.settings.order == Order::InLinks;
        let mut linked_to = Vec::new();
        for loaded in batch.drain(..) {
            rooms.push(loaded.room);
            if by_links {
                linked_to.push(self.linked_to(&loaded.visit));
            }
            finishes.push(self.finish_of(*loaded.visit));
        }
        let finished = self
            .cx
            .frontier
            .finish_and_tell(self.cx.licence.worker(), &finishes)
            .await?;
        let readmits = self.readmits();
        let (mut linked, mut taken) = (false, Vec::new());
        for (finish, told) in finishes.iter().zip(&finished) {
            self.count(finish, told.accepted);
            let pages = &self.cx.host_pages;
            pages.committed(finish.task, finish.claim_version);
            // Not before: a link of a visit that was refused, or whose links are not followed, is no task.
            if told.accepted && !told.repeats {
                linked |= !finish.links.is_empty();
                // Nor of one that was left out where it was found here: elsewhere it may belong to the crawl.
                for link in finish.links.iter().filter(|link| link.excluded.is_none()) {
                    self.cx.known.insert(link.digest, None);
                    if readmits {
                        taken.push((Some(finish.task), link));
                    }
                }
            }
            for (edge, task) in finish.edges.iter().zip(&told.tasks) {
                if let (Target::Url { digest, .. }, Some(_)) = (&edge.target, task)
                    // It may be a task that is left out, and a link to it elsewhere takes it in.
                    && (!readmits || self.cx.known.has(digest))
                {
                    self.cx.known.insert(*digest, *task);
                }
            }
        }
        self.cx.frontier.readmit(&taken).await?;
        if by_links {
            let counted = linked_to.into_iter().zip(&finished);
            self.count_links(
                counted
                    .filter(|(_, told)| told.accepted && !told.repeats)
                    .flat_map(|(to, _)| to),
            )
            .await?;
        }
        self.cx
            .tally
            .committed(u32::try_from(finished.len()).unwrap_or(u32::MAX));
        if linked {
            self.cx.stir();
        }
        Ok(())
    }

    /// Whether there may be tasks that were left out where they were found, and would be taken in from elsewhere: links are then rows whether
    /// they belong to the crawl or not, or an operator's rules or limits came after the tasks. Else the statement, an index lookup a link, is
    /// spared.
    fn readmits(&self) -> bool {
        self.cx.settings.keep_excluded
            || self.cx.rules.has_opinions()
            || self.cx.has_left_out.load(Ordering::Relaxed)
    }

    /// A seed that redirects to its twin takes the twin into scope. Before the finish, which makes it a task; alone it changes nothing.
    async fn widen(&self, batch: &[Loaded]) -> Result<(), FrontierError> {
        let rules: Vec<(String, String)> = batch
            .iter()
            .filter_map(|loaded| loaded.visit.widens.clone())
            .collect();
        if rules.is_empty() {
            return Ok(());
        }
        // Not where the settings have changed: this process joins anew soon, and the twin is a link like any other then.
        self.cx.frontier.add_rules(&rules, "redirect").await?;
        self.cx.rules.refresh(&self.cx.frontier).await
    }

    async fn make_hosts(&mut self, batch: &[Loaded]) -> Result<(), FrontierError> {
        self.at_hand.clear();
        let mut unknown: Vec<HostKey> = Vec::new();
        for link in batch.iter().flat_map(|loaded| &loaded.visit.links) {
            let host = link.url.host();
            if self.at_hand.contains_key(host) || unknown.last() == Some(host) {
                continue;
            }
            match self.hosts.get(host) {
                Some(id) => {
                    self.at_hand.insert(host.clone(), *id);
                }
                None => unknown.push(host.clone()),
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            let made = self.cx.frontier.hosts(&unknown).await?;
            self.learn_hosts(made);
        }
        self.find_hosts(batch).await
    }

    /// Hosts of pages that are linked and not followed: none is made for them.
    async fn find_hosts(&mut self, batch: &[Loaded]) -> Result<(), FrontierError> {
        let mut unknown: Vec<HostKey> = Vec::new();
        for edge in batch.iter().flat_map(|loaded| &loaded.visit.edges) {
            let Aim::Page(url) = &edge.aim else {
                continue;
            };
            let host = url.host();
            if self.at_hand.contains_key(host) || unknown.last() == Some(host) {
                continue;
            }
            match self.hosts.get(host) {
                Some(id) => {
                    self.at_hand.insert(host.clone(), *id);
                }
                None => unknown.push(host.clone()),
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            let found = self.cx.frontier.host_ids(&unknown).await?;
            self.learn_hosts(found);
        }
        Ok(())
    }

    fn learn_hosts(&mut self, hosts: HashMap<HostKey, HostId>) {
        for (key, id) in hosts {
            self.hosts.insert(key.clone(), id);
            self.at_hand.insert(key, id);
        }
    }

    /// Looks how many URLs hosts may have yet, where what is known of that does not do for a batch.
    async fn make_room(&mut self, batch: &[Loaded]) -> Result<(), FrontierError> {
        if self.cx.settings.budget.urls_per_host.is_none() {
            return Ok(());
        }
        let canon = &self.cx.frontier.settings().canon;
        let mut wanted: HashMap<HostId, u64> = HashMap::new();
        for link in batch.iter().flat_map(|loaded| &loaded.visit.links) {
            if let Some(host) = self.at_hand.get(link.url.host())
                && !self.cx.known.has(&link.url.digest(canon))
            {
                *wanted.entry(*host).or_default() += 1;
            }
        }
        let short: Vec<HostId> = wanted
            .into_iter()
            .filter(|(host, wanted)| self.room.get(host).is_none_or(|room| room < wanted))
            .map(|(host, _)| host)
            .collect();
        for (host, room) in self.cx.host_rooms(short).await? {
            self.room.insert(host, room);
        }
        Ok(())
    }

    /// What a visit links to, each page once: what is known, too.
    fn linked_to(&self, visit: &Visit) -> Vec<(HostId, UrlDigest)> {
        let canon = &self.cx.frontier.settings().canon;
        let to = visit.links.iter().filter(|link| link.excluded.is_none());
        to.filter_map(|link| Some((*self.at_hand.get(link.url.host())?, link.url.digest(canon))))
            .collect()
    }

    /// Tells the frontier how many links of this batch lead where.
    async fn count_links(
        &self,
        links: impl Iterator<Item = (HostId, UrlDigest)>,
    ) -> Result<(), FrontierError> {
        let mut counts: HashMap<(HostId, UrlDigest), u32> = HashMap::new();
        for link in links {
            *counts.entry(link).or_default() += 1;
        }
        let counts: Vec<_> = counts
            .into_iter()
            .map(|((host, digest), n)| (host, digest, n))
            .collect();
        self.cx.frontier.count_links(&counts).await
    }

    fn finish_of(&mut self, visit: Visit) -> Finish {
        let edges = visit
            .edges
            .into_iter()
            .filter_map(|edge| self.edge_of(edge, &visit.links))
            .collect();
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
            edges,
        }
    }

    fn edge_of(&mut self, link: PageLink, candidates: &[Candidate]) -> Option<Edge> {
        let keep_url = self.cx.settings.links == LinkGraph::All;
        let url = match &link.aim {
            Aim::Candidate(place) => &candidates.get(*place)?.url,
            Aim::Page(url) | Aim::Elsewhere(url) => url,
        };
        let digest = url.digest(&self.cx.frontier.settings().canon);
        let text = || keep_url.then(|| graph::url_text(url));
        let host = match &link.aim {
            Aim::Elsewhere(_) => None,
            _ => self.at_hand.get(url.host()).copied(),
        };
        let target = match (self.cx.known.task(&digest), host) {
            (Some(task), _) => Target::Task(task),
            (_, Some(host)) => Target::Url {
                host,
                digest,
                url: text(),
            },
            _ => Target::Elsewhere(text()?),
        };
        Some(Edge {
            target,
            kind: link.kind.as_str(),
            nofollow: link.nofollow,
            rel: link.rel,
            anchor: link.anchor,
        })
    }

    fn link_of(&mut self, link: Candidate) -> Option<NewLink> {
        let digest = link.url.digest(&self.cx.frontier.settings().canon);
        if self.cx.known.has(&digest) {
            return None;
        }
        let host = *self.at_hand.get(link.url.host())?;
        if self.cx.settings.budget.urls_per_host.is_some() {
            let room = self.room.get(&host).copied().unwrap_or(0);
            let Some(left) = room.checked_sub(1) else {
                self.cx.rejections.count(Reason::HostUrls);
                return None;
            };
            self.room.insert(host, left);
        }
        Some(NewLink {
            host,
            digest,
            url: link.url.as_str().to_owned(),
            depth: link.depth,
            hops: link.hops,
            kind: link.kind,
            priority: link.priority,
            label: link.label,
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
