//! URLs that are known to be tasks: most links of a site are its navigation, and need neither be judged nor sent to the database.

use quick_cache::sync::Cache;

use crate::{canon::UrlDigest, frontier::TaskId};

/// URLs that are remembered, some 12 MB of them. The index of `tasks` stays the truth.
const URLS: usize = 256 << 10;

/// What one process knows.
pub(super) struct KnownUrls(Cache<UrlDigest, Option<TaskId>>);

impl Default for KnownUrls {
    fn default() -> KnownUrls {
        KnownUrls(Cache::new(URLS))
    }
}

impl KnownUrls {
    /// Notes a task, with its number where that is known.
    pub(super) fn insert(&self, url: UrlDigest, task: Option<TaskId>) {
        self.0.insert(url, task);
    }

    /// Whether a URL is known to be one.
    pub(super) fn has(&self, url: &UrlDigest) -> bool {
        self.0.get(url).is_some()
    }

    /// Its number, if that is known as well.
    pub(super) fn task(&self, url: &UrlDigest) -> Option<TaskId> {
        self.0.get(url).flatten()
    }
}
