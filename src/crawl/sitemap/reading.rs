//! Entries become tasks in batches, while the sitemap is still coming.
//!
//! In memory are a few pieces of the body, one batch of entries and what the parser has not finished: not the file.

use std::{collections::HashSet, time::SystemTime};

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use url::Url;

use super::{
    super::{context::Context, judging::Links, read, visit::Candidate},
    link_of,
    naming::Naming,
    readmit,
};
use crate::{
    canon::PageUrl,
    extract::sitemap::{
        ChangeFreq, End, Entry, EntryKind, MOST_NESTED, Progress, Sitemap, Summary,
    },
    fetch::Piece,
    frontier::{ClaimedTask, Found, FrontierError, HostId, Said, SitemapVisit, TaskKind, WorkerId},
    schedule::{Order, priority},
    scope::{Place, Reason},
};

/// Entries that are judged and made tasks together. A statement of 500 takes some 20 ms.
const BATCH: usize = 500;

/// What came of a sitemap.
pub(in super::super) struct Reading {
    pub(super) summary: Summary,
    /// Of the body, as far as it came.
    pub(super) bytes: u64,
    pub(super) digest: [u8; 32],
    pub(super) in_scope: u32,
    pub(super) foreign: u32,
    pub(super) unusable: u32,
    pub(super) assets: u32,
}

/// Reads the pieces of a task's body, if any come: then it is a sitemap.
///
/// # Errors
///
/// The frontier fails.
pub(in super::super) async fn take(
    cx: &Context,
    worker: WorkerId,
    task: &ClaimedTask,
    pieces: Option<mpsc::Receiver<Piece>>,
) -> Result<Option<Reading>, FrontierError> {
    let Some(mut pieces) = pieces else {
        return Ok(None);
    };
    let mut reader: Option<Box<Reader<'_>>> = None;
    // The receiver goes when there is enough, which ends the fetch.
    while let Some(piece) = pieces.recv().await {
        match (piece, &mut reader) {
            (Piece::Begin { url, charset }, _) => {
                let Ok(base) = PageUrl::from_url(Url::clone(&url)) else {
                    break;
                };
                read::learn_scope(cx, &base).await;
                let charset = charset.as_deref();
                reader = Some(Box::new(Reader::new(cx, worker, task, base, charset)));
            }
            (Piece::Data(bytes), Some(reader)) => {
                if reader.feed(&bytes).await? == Progress::Enough {
                    break;
                }
            }
            (Piece::Data(_), None) => {}
        }
    }
    drop(pieces);
    match reader {
        Some(reader) => reader.finish().await.map(Some),
        None => Ok(None),
    }
}

struct Reader<'a> {
    cx: &'a Context,
    worker: WorkerId,
    task: &'a ClaimedTask,
    base: PageUrl,
    naming: Naming,
    sitemap: Sitemap,
    found: Vec<Entry>,
    bytes: u64,
    hash: Sha256,
    in_scope: u32,
    foreign: u32,
    unusable: u32,
    assets: u32,
    lost: bool,
    now: DateTime<Utc>,
}

impl<'a> Reader<'a> {
    fn new(
        cx: &'a Context,
        worker: WorkerId,
        task: &'a ClaimedTask,
        base: PageUrl,
        charset: Option<&str>,
    ) -> Reader<'a> {
        Reader {
            cx,
            worker,
            task,
            naming: Naming::new(task.id, base.host().clone()),
            base,
            sitemap: Sitemap::new(charset, cx.settings.sitemaps.max_urls),
            found: Vec::new(),
            bytes: 0,
            hash: Sha256::new(),
            in_scope: 0,
            foreign: 0,
            unusable: 0,
            assets: 0,
            lost: false,
            now: SystemTime::now().into(),
        }
    }

    async fn feed(&mut self, bytes: &[u8]) -> Result<Progress, FrontierError> {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
        let progress = self.sitemap.feed(bytes, &mut self.found);
        while self.found.len() >= BATCH && !self.lost {
            let rest = self.found.split_off(BATCH);
            let batch = std::mem::replace(&mut self.found, rest);
            self.enqueue(batch).await?;
        }
        Ok(match self.lost {
            true => Progress::Enough,
            false => progress,
        })
    }

    async fn finish(mut self) -> Result<Reading, FrontierError> {
        let sitemap = std::mem::replace(&mut self.sitemap, Sitemap::new(None, 0));
        let summary = sitemap.finish(&mut self.found);
        for batch in std::mem::take(&mut self.found).chunks(BATCH) {
            self.enqueue(batch.to_vec()).await?;
        }
        Ok(Reading {
            summary,
            bytes: self.bytes,
            digest: self.hash.finalize().into(),
            in_scope: self.in_scope,
            foreign: self.foreign,
            unusable: self.unusable,
            assets: self.assets,
        })
    }

    /// Judges a batch, and makes tasks of what belongs to the crawl.
    async fn enqueue(&mut self, batch: Vec<Entry>) -> Result<(), FrontierError> {
        if self.lost {
            return Ok(());
        }
        let mut urls = Vec::with_capacity(batch.len());
        for entry in batch {
            if matches!(entry.kind, EntryKind::Image | EntryKind::Video) {
                self.assets += 1;
                continue;
            }
            match self.base.join(&entry.loc) {
                Ok(url) if url.as_str().len() <= read::LONGEST_ROW => urls.push((entry, url)),
                Ok(_) | Err(_) => self.unusable += 1,
            }
        }
        let hosts = urls.iter().map(|(_, url)| url.host());
        self.naming.learn(self.cx, hosts).await?;
        let (mut links, mut said) = (Links::default(), Vec::with_capacity(urls.len()));
        for (entry, url) in urls {
            if !self.naming.may(url.host()) {
                self.foreign += 1;
                continue;
            }
            if self.judge(&entry, url, &mut links) {
                said.push(entry);
            }
        }
        let links = links.judged(self.cx).await;
        self.make(links, said).await
    }

    /// Adds an entry to the links, if it belongs to the crawl or its "no" is a row.
    fn judge(&self, entry: &Entry, url: PageUrl, links: &mut Links) -> bool {
        let (cx, task) = (self.cx, self.task);
        let is_page = entry.kind != EntryKind::Sitemap;
        let mut candidate = Candidate {
            url,
            depth: task.depth.saturating_add(u16::from(is_page)),
            hops: if is_page {
                0
            } else {
                task.hops.saturating_add(1)
            },
            kind: if is_page {
                TaskKind::Page
            } else {
                TaskKind::Sitemap
            },
            priority: task.priority,
            label: task.label.clone(),
            excluded: None,
        };
        if is_page {
            let said = priority::Said {
                priority: entry.priority,
                lastmod: entry.lastmod,
            };
            let (depth, chance) = (candidate.depth, read::chance_of(cx, &candidate.url));
            let order = cx.settings.order;
            candidate.priority = order.of_entry(task.priority, depth, chance, &said, self.now);
        } else {
            // Where it lies is no matter: what it names is judged.
            if candidate.hops > MOST_NESTED {
                candidate.excluded = Some(("sitemap_depth", format!("{} deep", candidate.hops)));
                links.push_judged(candidate);
            } else {
                links.push(cx, candidate);
            }
            return true;
        }
        if cx.blocked.covering(&candidate.url).is_some() {
            return false;
        }
        // A sitemap outside leads no further outside.
        let place = Place::at_depth(candidate.depth);
        match cx.reject(&candidate.url, place) {
            None => links.push(cx, candidate),
            Some((reason, rule)) => {
                let Some(detail) = read::row_of(cx, &candidate.url, place, reason, rule) else {
                    return false;
                };
                candidate.excluded = Some((reason.as_str(), detail));
                links.push_judged(candidate);
            }
        }
        true
    }

    /// Leaves out what would be more URLs of a host than may become tasks, where that is bounded. What is a task already takes no room, and
    /// what is said of it is kept.
    async fn within_budget(&self, found: &mut Vec<Found>) -> Result<(), FrontierError> {
        if self.cx.settings.budget.urls_per_host.is_none() {
            return Ok(());
        }
        let links = found.iter().map(|one| (one.link.host, one.link.digest));
        let urls: Vec<_> = links.collect();
        let hosts: HashSet<HostId> = urls.iter().map(|(host, _)| *host).collect();
        let hosts: Vec<HostId> = hosts.into_iter().collect();
        let mut room = self.cx.host_rooms(hosts).await?;
        let mut known = self.cx.frontier.known_tasks(&urls).await?;
        found.retain(|one| {
            let digest = one.link.digest.into();
            if known.contains(&digest) {
                return true;
            }
            let room = room.entry(one.link.host).or_default();
            let Some(left) = room.checked_sub(1) else {
                self.cx.rejections.count(Reason::HostUrls);
                return false;
            };
            *room = left;
            // The batch may name it twice.
            known.insert(digest);
            true
        });
        Ok(())
    }

    async fn make(
        &mut self,
        links: Vec<Candidate>,
        entries: Vec<Entry>,
    ) -> Result<(), FrontierError> {
        let cx = self.cx;
        let mut keys: Vec<_> = links.iter().map(|link| link.url.host().clone()).collect();
        keys.dedup();
        if keys.is_empty() {
            return Ok(());
        }
        let hosts = cx.frontier.hosts(&keys).await?;
        let mut found: Vec<Found> = links
            .into_iter()
            .zip(entries)
            .filter_map(|(link, entry)| {
                let host = *hosts.get(link.url.host())?;
                Some(found_of(cx, link, host, &entry))
            })
            .collect();
        self.within_budget(&mut found).await?;
        let taken = found.iter().filter(|one| one.link.excluded.is_none());
        self.in_scope += u32::try_from(taken.count()).unwrap_or(u32::MAX);
        let visit = SitemapVisit {
            task: self.task.id,
            claim_version: self.task.claim_version,
        };
        readmit(cx, Some(self.task.id), &found).await?;
        match cx
            .frontier
            .enqueue_found(self.worker, Some(visit), &found)
            .await?
        {
            None => self.lost = true,
            Some(0) => {}
            // Others may begin while we read on.
            Some(_) => cx.stir(),
        }
        // Pages whose links were read before the sitemap.
        if cx.settings.order == Order::Sitemap && !self.lost {
            cx.frontier.prefer_tasks(&found).await?;
        }
        Ok(())
    }
}

fn found_of(cx: &Context, link: Candidate, host: HostId, entry: &Entry) -> Found {
    Found {
        said: (entry.kind == EntryKind::Page).then(|| Said {
            lastmod: entry.lastmod,
            priority: entry.priority,
            changefreq: entry.changefreq.map(ChangeFreq::as_str),
        }),
        link: link_of(cx, host, link),
    }
}

impl Reading {
    /// The word for how it ended. `whole`: all that the server has was fetched.
    pub(super) fn ending(&self, whole: bool) -> &'static str {
        match self.summary.end {
            End::Full => "full",
            End::Broken => "broken",
            End::Whole if whole => "whole",
            _ => "cut",
        }
    }
}
