//! Limits against endless URL spaces: calendars, links that stack up, session ids in the path.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::canon::PageUrl;

use super::{Reason, growth};

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
    /// Parameters of the query; 30: a search form with all its filters has fewer, a query that grows does not stop there.
    pub max_parameters: usize,
    /// How deep escapes may be escaped again, `%2525` twice; 3.
    pub max_nesting: usize,
    /// How many years ahead a date in a URL may lie; 5: events are announced for some years, calendars go on for ever.
    pub max_years_ahead: u16,
    /// How often one segment may stand in a path, and one parameter with the same value in a query; 3, as BUbiNG and StormCrawler have it. The usual trap is a relative
    /// link that stacks up: `/a/b/a/b/a/b/`.
    pub max_repeats: usize,
}

impl Default for TrapLimits {
    fn default() -> TrapLimits {
        TrapLimits {
            max_depth: 20,
            max_url_length: 2048,
            max_segments: 20,
            max_parameters: 30,
            max_nesting: 3,
            max_years_ahead: 5,
            max_repeats: 3,
        }
    }
}

/// Years beyond the limit that are taken for years. A calendar that goes on and on comes through them; further off lie ordinary numbers, as in
/// `/thread/2345/2`.
const LAST_YEAR_AHEAD: u16 = 30;

impl TrapLimits {
    /// The first limit that the URL exceeds. Without a year it is nobody's calendar.
    pub(super) fn exceeded_by(
        &self,
        url: &PageUrl,
        depth: u16,
        year: Option<u16>,
    ) -> Option<Reason> {
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
        self.grown(url.as_url())
            .or_else(|| self.far_ahead(url.as_url(), year))
    }

    fn grown(&self, url: &Url) -> Option<Reason> {
        if growth::nesting(url) > self.max_nesting {
            return Some(Reason::NestedEscapes);
        }
        let parameters = growth::parameters(url);
        if parameters > self.max_parameters {
            return Some(Reason::TooManyParameters);
        }
        (parameters > self.max_repeats && growth::repeated_parameter(url) > self.max_repeats)
            .then_some(Reason::RepeatedParameter)
    }

    fn far_ahead(&self, url: &Url, year: Option<u16>) -> Option<Reason> {
        let first = year?.saturating_add(self.max_years_ahead).saturating_add(1);
        let years = first..=first.saturating_add(LAST_YEAR_AHEAD);
        growth::has_date(url, &years).then_some(Reason::FarDate)
    }
}
