//! pgcrawl: a web crawler whose URL frontier is a table in Postgres.
//!
//! ```text
//!  seeds ─▶ canon ─▶ scope ─▶ frontier ══ Postgres: hosts, tasks, pages, robots, workers
//!                                │  ▲
//!                        claim(hosts, k tasks each)
//!                                ▼  │
//!       crawl::visit     robots? permit? proxy?       one task's journey, top to bottom
//!                                ▼  │
//!                              fetch ─────▶ Exchange
//!                                ▼  │
//!                             extract ────▶ Extraction (links, title, meta)
//!                                ▼  │
//!                       canon + scope + robots on each link
//!                                ▼  │
//!                      crawl::commit  (ONE statement for a batch of visits:
//!                        pages + bodies + new tasks + worker counters + tasks done)
//!                                   │
//!                  status · SQL views                 read only, they pull
//! ```
//!
//! A module imports from lower floors only; `tests/it/floors.rs` holds them to it.
//! The reading order below is the order of the floors.

// floor 0: words
pub mod canon;
pub mod clock;
pub mod exchange;

// floor 1: judgement, pure functions
pub mod extract;
pub mod robots;
pub mod schedule;
pub mod scope;

// floor 2: hands
pub mod db;
pub mod fetch;
pub mod frontier;
pub mod pages;
pub mod politeness;

// floor 3: the crawl
pub mod crawl;

// floor 4: views, they only read; the laboratory writes to a scratch database of its own
pub mod lab;
pub mod status;

// floor 5: the door
pub mod cli;
pub mod config;
