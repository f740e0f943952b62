//! What tests stand on.

pub(crate) mod authority;
pub(crate) mod crawl;
pub(crate) mod db;
pub(crate) mod names;
pub(crate) mod pooler;
pub(crate) mod program;
pub(crate) mod real_proxies;
pub(crate) mod site;
pub(crate) mod wire;
