//! The integration tests: one binary, one module a capability.

// A test that cannot go on panics, in its helpers too.
#![allow(clippy::unwrap_used)]

mod chaos;
mod config;
mod costs;
mod crawl;
mod db;
mod door;
mod embedded;
mod explain;
mod fetch;
mod floors;
mod frontier;
mod joining;
mod lab;
mod operators;
mod processes;
mod readme;
mod rfc9309;
mod scale;
mod support;
mod trouble;
