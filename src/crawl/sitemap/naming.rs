//! On which hosts a sitemap may name pages (sitemaps.org, "Sitemap file location" and "cross submits"): on its own, and on those whose
//! robots.txt names it. Else anybody could fill the crawl of another's site.

use std::collections::HashMap;

use super::super::context::Context;
use crate::{
    canon::{Canon, HostKey, PageUrl, UrlDigest},
    frontier::{FrontierError, TaskId},
};

/// Other hosts of one sitemap that are looked up; one that names more is no honest one.
const MOST_HOSTS: usize = 10_000;

/// The hosts of one sitemap.
pub(super) struct Naming {
    task: TaskId,
    own: HostKey,
    /// What led to the sitemap, and it itself; looked up when it is asked for.
    chain: Option<Vec<UrlDigest>>,
    judged: HashMap<HostKey, bool>,
}

impl Naming {
    pub(super) fn new(task: TaskId, own: HostKey) -> Naming {
        Naming {
            task,
            own,
            chain: None,
            judged: HashMap::new(),
        }
    }

    /// Learns what is to be known of these hosts.
    pub(super) async fn learn<'a>(
        &mut self,
        cx: &Context,
        hosts: impl Iterator<Item = &'a HostKey>,
    ) -> Result<(), FrontierError> {
        let mut unknown: Vec<HostKey> = Vec::new();
        for host in hosts {
            if !self.own.is_twin_of(host) && !self.judged.contains_key(host) {
                unknown.push(host.clone());
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        unknown.truncate(MOST_HOSTS.saturating_sub(self.judged.len()));
        if unknown.is_empty() {
            return Ok(());
        }
        let chain = match &self.chain {
            Some(chain) => chain,
            None => {
                let urls = cx.frontier.sitemap_chain(self.task).await?;
                self.chain
                    .insert(urls.iter().filter_map(|url| digest(url)).collect())
            }
        };
        let names: Vec<String> = unknown
            .iter()
            .map(|host| host.as_str().to_owned())
            .collect();
        let named = cx.frontier.sitemaps_of(&names).await?;
        for host in unknown {
            let vouches = named.get(host.as_str()).is_some_and(|urls| {
                urls.iter()
                    .filter_map(|url| digest(url))
                    .any(|one| chain.contains(&one))
            });
            self.judged.insert(host, vouches);
        }
        Ok(())
    }

    /// Whether it may name pages on this host, which it has [learnt](Self::learn) of.
    pub(super) fn may(&self, host: &HostKey) -> bool {
        self.own.is_twin_of(host) || self.judged.get(host).copied().unwrap_or(false)
    }
}

fn digest(url: &str) -> Option<UrlDigest> {
    PageUrl::parse(url)
        .ok()
        .map(|url| url.digest(&Canon::default()))
}
