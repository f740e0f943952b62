//! Views of a crawl: they only read.
