//! Limits against endless URL spaces: calendars, links that stack up, session ids in the path.

use serde::{Deserialize, Serialize};

use crate::canon::PageUrl;

use super::Reason;

/// Beyond these a URL is taken for a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrapLimits {
    /// Hops from a seed; 20, as Heritrix has it: far deeper than people click, and a calendar ends.
    pub max_depth: u16,
    /// Characters of a URL as fetched; 2,048, what browsers and servers have long agreed upon.
    pub max_url_length: usize,
    /// Segments of the path, empty ones not counted; 20, as Heritrix has it.
    pub max_segments: usize,
    /// How often one segment may stand in a path; 3, as BUbiNG and StormCrawler have it. The usual trap is a relative
    /// link that stacks up: `/a/b/a/b/a/b/`.
    pub max_repeats: usize,
}

impl Default for TrapLimits {
    fn default() -> TrapLimits {
        TrapLimits {
            max_depth: 20,
            max_url_length: 2048,
            max_segments: 20,
            max_repeats: 3,
        }
    }
}

impl TrapLimits {
    /// The first limit that the URL exceeds.
    pub(super) fn exceeded_by(&self, url: &PageUrl, depth: u16) -> Option<Reason> {
        if depth > self.max_depth {
            return Some(Reason::TooDeep);
        }
        if url.as_str().len() > self.max_url_length {
            return Some(Reason::TooLong);
        }
        let segments = || {
            url.as_url()
                .path()
                .split('/')
                .filter(|segment| !segment.is_empty())
        };
        let count = segments().count();
        if count > self.max_segments {
            return Some(Reason::TooManySegments);
        }
        if count > self.max_repeats {
            let mut sorted: Vec<&str> = segments().collect();
            sorted.sort_unstable();
            if sorted
                .chunk_by(|a, b| a == b)
                .any(|run| run.len() > self.max_repeats)
            {
                return Some(Reason::RepeatedSegment);
            }
        }
        None
    }
}
