//! What is found before a visit is finished: the entries of sitemaps, and the sitemaps that robots.txt names.
//!
//! All else that a visit changes is committed once, with its status. A sitemap may name 50,000 URLs and is not held in memory, so its tasks
//! are made while it is read. That is sound, since to make a task is to insert a row that may be there already: a visit that is killed half
//! way is repeated and ends with the same rows, and one that has lost its claim makes none.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    Frontier, HostId, NewLink, Result, TaskId, TaskKind, WorkerId,
    finish::short,
    tries::{once, run},
};
use crate::{canon::UrlDigest, extract::sitemap::MOST_NESTED};

/// A URL that a sitemap or a robots.txt names.
#[derive(Clone, Debug)]
pub struct Found {
    /// The URL, as a link.
    pub link: NewLink,
    /// What the sitemap says of it; `None` where that is nothing of its own.
    pub said: Option<Said>,
}

/// What a sitemap says of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Said {
    /// When the page was changed.
    pub lastmod: Option<DateTime<Utc>>,
    /// 0 to 1.
    pub priority: Option<f32>,
    /// The word.
    pub changefreq: Option<&'static str>,
}

/// The visit that reads a sitemap.
#[derive(Clone, Copy, Debug)]
pub struct SitemapVisit {
    /// The sitemap's task.
    pub task: TaskId,
    /// Its claim.
    pub claim_version: i32,
}

/// What came of a sitemap; the columns of table `sitemaps`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(
    missing_docs,
    reason = "the columns are documented once, in migrations/0014_sitemaps.sql"
)]
pub struct SitemapRow {
    pub format: &'static str,
    pub ending: &'static str,
    pub urls: u32,
    pub in_scope: u32,
    pub foreign_urls: u32,
    pub invalid: u32,
    pub assets: u32,
}

impl Frontier {
    /// Makes tasks of what was found, each URL once, and keeps what the sitemap says of them. Sitemaps that are tasks as pages become such.
    /// Answers how many were new; `None` where the visit's claim is over: nothing was made then, and there is no use in reading on.
    pub async fn enqueue_found(
        &self,
        worker: WorkerId,
        visit: Option<SitemapVisit>,
        found: &[Found],
    ) -> Result<Option<u64>> {
        if found.is_empty() {
            return Ok(Some(0));
        }
        let columns = &Columns::of(found);
        let task = visit.map(|visit| visit.task.0);
        let version = visit.map(|visit| visit.claim_version);
        let row = run!(self, "enqueue_found", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/enqueue_found.sql",
                worker.0,
                task,
                version,
                &columns.hosts,
                &columns.digests,
                &columns.urls as &[&str],
                &columns.depths,
                &columns.hops,
                &columns.sitemaps,
                &columns.priorities,
                &columns.labels as &[Option<&str>],
                &columns.reasons as &[Option<&str>],
                &columns.details as &[Option<&str>]
            )
            .fetch_one(db)
            .await
        })?;
        if !row.mine {
            return Ok(None);
        }
        if let Some(visit) = visit {
            self.note_entries(visit, found).await?;
        }
        let raised = self.raise_sitemaps(found).await?;
        Ok(Some(row.fresh.unsigned_abs() + raised))
    }

    /// A statement of its own, for what is rare: what is known to be a sitemap was found as a page before.
    async fn raise_sitemaps(&self, found: &[Found]) -> Result<u64> {
        let is_raised =
            |one: &&Found| one.link.kind == TaskKind::Sitemap && one.link.excluded.is_none();
        let (hosts, digests): (Vec<i32>, Vec<Uuid>) = found
            .iter()
            .filter(is_raised)
            .map(|one| (one.link.host.0, Uuid::from(one.link.digest)))
            .unzip();
        if hosts.is_empty() {
            return Ok(0);
        }
        let (hosts, digests) = (&hosts, &digests);
        run!(self, "raise_sitemaps", async |db| {
            sqlx::query_file!("src/frontier/sql/raise_sitemaps.sql", hosts, digests)
                .execute(db)
                .await
                .map(|done| done.rows_affected())
        })
    }

    /// Notes which sitemaps the robots.txt of a host names (`lines`, as it will be [stored](Self::store_robots)), so that they may name pages
    /// of it as soon as they are read. Those on other hosts that were read before and had to leave such pages out become new. `named`: with
    /// the line of each. Answers how many are read again.
    ///
    /// One that is being read just now has asked for this host before or does so later: what it has left out by now stays out.
    pub async fn name_sitemaps(
        &self,
        host: HostId,
        lines: &[String],
        named: &[(&str, &Found)],
    ) -> Result<u64> {
        let elsewhere = named.iter().filter(|(_, one)| one.link.host != host);
        let (mut hosts, mut digests, mut urls) = (Vec::new(), Vec::new(), Vec::new());
        for (line, one) in elsewhere {
            hosts.push(one.link.host.0);
            digests.push(Uuid::from(one.link.digest));
            urls.push(*line);
        }
        let (hosts, digests, urls) = (&hosts, &digests, &urls);
        run!(self, "name_sitemaps", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/name_sitemaps.sql",
                host.0,
                lines,
                hosts,
                digests,
                urls as &[&str],
                i32::from(MOST_NESTED) + 1
            )
            .execute(db)
            .await
            .map(|done| done.rows_affected())
        })
    }

    /// Which of these URLs are tasks.
    pub async fn known_tasks(&self, urls: &[(HostId, UrlDigest)]) -> Result<HashSet<Uuid>> {
        let (hosts, digests): (Vec<i32>, Vec<Uuid>) = urls
            .iter()
            .map(|(host, digest)| (host.0, Uuid::from(*digest)))
            .unzip();
        let (hosts, digests) = (&hosts, &digests);
        let known = run!(self, "known_tasks", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/known_tasks.sql", hosts, digests)
                .fetch_all(db)
                .await
        })?;
        Ok(known.into_iter().collect())
    }

    /// Moves those of these that are tasks already ahead to the place that they would have been made with.
    pub async fn prefer_tasks(&self, found: &[Found]) -> Result {
        let (mut hosts, mut digests, mut priorities) = (Vec::new(), Vec::new(), Vec::new());
        for Found { link, .. } in found {
            hosts.push(link.host.0);
            digests.push(Uuid::from(link.digest));
            priorities.push(link.priority);
        }
        let (hosts, digests, priorities) = (&hosts, &digests, &priorities);
        run!(self, "prefer_tasks", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/prefer_tasks.sql",
                hosts,
                digests,
                priorities
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }

    /// A statement of its own: what another made a task of meanwhile is seen by the next snapshot only.
    async fn note_entries(&self, visit: SitemapVisit, found: &[Found]) -> Result {
        let (mut hosts, mut digests, mut dates, mut priorities, mut freqs) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for Found { link, said, .. } in found {
            let Some(said) = said else { continue };
            hosts.push(link.host.0);
            digests.push(Uuid::from(link.digest));
            dates.push(said.lastmod);
            priorities.push(said.priority);
            freqs.push(said.changefreq);
        }
        let (hosts, digests, dates, priorities, freqs) =
            (&hosts, &digests, &dates, &priorities, &freqs);
        run!(self, "note_entries", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/note_entries.sql",
                visit.task.0,
                visit.claim_version,
                hosts,
                digests,
                dates as &[Option<DateTime<Utc>>],
                priorities as &[Option<f32>],
                freqs as &[Option<&str>]
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }

    /// Notes what came of a sitemap; if it was read whole, what it names no more is forgotten.
    pub async fn sitemap_read(&self, visit: SitemapVisit, row: &SitemapRow) -> Result {
        let count = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        run!(self, "sitemap_read", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/sitemap_read.sql",
                visit.task.0,
                visit.claim_version,
                row.format,
                row.ending,
                count(row.urls),
                count(row.in_scope),
                count(row.foreign_urls),
                count(row.invalid),
                count(row.assets)
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }

    /// The URLs that led to a sitemap: its own, and those of redirects and indexes above it.
    pub async fn sitemap_chain(&self, task: TaskId) -> Result<Vec<String>> {
        run!(self, "sitemap_chain", async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/sitemap_chain.sql",
                task.0,
                i32::from(MOST_NESTED) + 1
            )
            .fetch_all(db)
            .await
        })
    }

    /// The sitemaps that the robots.txt of these hosts (`scheme://host[:port]`) name, as far as they are known.
    pub async fn sitemaps_of(
        &self,
        authorities: &[String],
    ) -> Result<HashMap<String, Vec<String>>> {
        let rows = run!(self, "sitemaps_of", async |db| {
            sqlx::query_file!("src/frontier/sql/sitemaps_of.sql", authorities)
                .fetch_all(db)
                .await
        })?;
        Ok(rows
            .into_iter()
            .map(|row| (row.authority, row.sitemaps))
            .collect())
    }
}

/// What was found, column by column.
#[derive(Default)]
struct Columns<'a> {
    hosts: Vec<i32>,
    digests: Vec<Uuid>,
    urls: Vec<&'a str>,
    depths: Vec<i16>,
    hops: Vec<i16>,
    sitemaps: Vec<bool>,
    priorities: Vec<i16>,
    labels: Vec<Option<&'a str>>,
    reasons: Vec<Option<&'a str>>,
    details: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(found: &'a [Found]) -> Columns<'a> {
        let mut columns = Columns::default();
        for Found { link, .. } in found {
            columns.hosts.push(link.host.0);
            columns.digests.push(link.digest.into());
            columns.urls.push(&link.url);
            columns.depths.push(short(link.depth));
            columns.hops.push(short(link.hops));
            columns.sitemaps.push(link.kind == TaskKind::Sitemap);
            columns.priorities.push(link.priority);
            columns.labels.push(link.label.as_deref());
            let excluded = link.excluded.as_ref();
            columns.reasons.push(excluded.map(|(reason, _)| *reason));
            columns
                .details
                .push(excluded.map(|(_, detail)| detail.as_str()));
        }
        columns
    }
}
