//! Which URLs belong to the crawl.
