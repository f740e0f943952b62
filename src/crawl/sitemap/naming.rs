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
            if !is_twin(&self.own, host) && !self.judged.contains_key(host) {
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
        is_twin(&self.own, host) || self.judged.get(host).copied().unwrap_or(false)
    }
}

fn digest(url: &str) -> Option<UrlDigest> {
    PageUrl::parse(url)
        .ok()
        .map(|url| url.digest(&Canon::default()))
}

/// The same name, with or without `www.`, over http or https: one site, which its sitemap may name either way. Ports must be the defaults
/// of both, or the same.
fn is_twin(one: &HostKey, other: &HostKey) -> bool {
    let bare = |host: &HostKey| {
        let name = host.host();
        name.strip_prefix("www.").unwrap_or(name).to_owned()
    };
    let is_default = |host: &HostKey| host.authority() == host.host();
    let same_port = (is_default(one) && is_default(other)) || one.port() == other.port();
    one == other || (bare(one) == bare(other) && same_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_one_name_with_and_without_www_and_over_both_schemes() {
        let twin = |one: &str, other: &str| {
            is_twin(
                &HostKey::parse(one).unwrap(),
                &HostKey::parse(other).unwrap(),
            )
        };
        assert!(twin("https://example.org", "http://www.example.org"));
        assert!(twin(
            "http://example.org:8080",
            "https://www.example.org:8080"
        ));
        assert!(!twin("http://example.org:8080", "http://example.org"));
        assert!(!twin("http://example.org", "http://shop.example.org"));
    }
}
