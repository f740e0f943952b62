//! From URLs to tasks: hosts are made first, then the tasks, each URL once.

use std::{collections::HashMap, sync::Arc};

use uuid::Uuid;

use super::{
    Frontier, HostId, Result, WorkerId,
    tries::{once, run},
};
use crate::canon::{HostKey, PageUrl};
use crate::scope::ScopeKind;

/// A URL that the operator gave.
#[derive(Clone, Debug)]
pub struct Seed {
    /// What is to be fetched.
    pub url: PageUrl,
    /// Its place in the order of its host: the smaller, the sooner; 0 by default.
    pub priority: i16,
    /// What it counts as, in links from a seed; 0 by default.
    pub depth: u16,
    /// What it and all that it leads to are called by.
    pub label: Option<Arc<str>>,
    /// How much around it belongs to the crawl; none: as much as the crawl's scope says. [`Frontier::enqueue_seeds`] leaves that to others.
    pub scope: Option<ScopeKind>,
}

impl From<PageUrl> for Seed {
    fn from(url: PageUrl) -> Seed {
        Seed {
            url,
            priority: 0,
            depth: 0,
            label: None,
            scope: None,
        }
    }
}

impl Frontier {
    /// The rows of these hosts, made where they are not there yet. In any order, duplicates allowed.
    pub async fn hosts(&self, keys: &[HostKey]) -> Result<HashMap<HostKey, HostId>> {
        let names: Vec<String> = keys.iter().map(|key| key.as_str().to_owned()).collect();
        let names = &names;
        run!(self, "enqueue_hosts", async |db| {
            sqlx::query_file!("src/frontier/sql/enqueue_hosts.sql", names)
                .execute(db)
                .await
                .map(|_| ())
        })?;
        self.host_ids(keys).await
    }

    /// The rows of those of these hosts that are there. In any order, duplicates allowed.
    pub async fn host_ids(&self, keys: &[HostKey]) -> Result<HashMap<HostKey, HostId>> {
        let names: Vec<String> = keys.iter().map(|key| key.as_str().to_owned()).collect();
        let names = &names;
        let rows = run!(self, "host_ids", async |db| {
            sqlx::query_file!("src/frontier/sql/host_ids.sql", names)
                .fetch_all(db)
                .await
        })?;
        let by_name: HashMap<String, HostId> = rows
            .into_iter()
            .map(|row| (row.authority, HostId(row.id)))
            .collect();
        Ok(keys
            .iter()
            .filter_map(|key| Some((key.clone(), *by_name.get(key.as_str())?)))
            .collect())
    }

    /// Makes tasks of seeds, each URL once. Answers how many were new.
    pub async fn enqueue_seeds(&self, worker: WorkerId, seeds: &[Seed]) -> Result<u64> {
        if seeds.is_empty() {
            return Ok(0);
        }
        let keys: Vec<HostKey> = seeds.iter().map(|seed| seed.url.host().clone()).collect();
        let hosts = self.hosts(&keys).await?;
        let mut ids: Vec<i32> = Vec::with_capacity(seeds.len());
        let mut digests: Vec<Uuid> = Vec::with_capacity(seeds.len());
        let mut urls: Vec<String> = Vec::with_capacity(seeds.len());
        let (mut priorities, mut depths, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for seed in seeds {
            let Some(host) = hosts.get(seed.url.host()) else {
                continue;
            };
            ids.push(host.0);
            digests.push(seed.url.digest(&self.settings.canon).into());
            urls.push(seed.url.as_str().to_owned());
            priorities.push(seed.priority);
            depths.push(i16::try_from(seed.depth).unwrap_or(i16::MAX));
            labels.push(seed.label.as_deref());
        }
        let (ids, digests, urls) = (&ids, &digests, &urls);
        let (priorities, depths, labels) = (&priorities, &depths, &labels);
        let fresh = run!(self, "enqueue_tasks", async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/enqueue_tasks.sql",
                worker.0,
                ids,
                digests,
                urls,
                priorities,
                depths,
                labels as &[Option<&str>]
            )
            .fetch_one(db)
            .await
        })?;
        Ok(fresh.unsigned_abs())
    }
}
