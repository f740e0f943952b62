//! The integration tests: one binary, one module a capability.

mod crawl;
mod embedded;
mod config;
mod fetch;
mod floors;
mod support;
