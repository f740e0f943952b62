//! The crawl.
