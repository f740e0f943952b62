//! How many files this process may open: a crawl of many hosts holds a socket for each.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as any crawl of one process needs. More would make servers that we start look at each.
const ENOUGH: u64 = 65_536;

/// Raises the soft limit, which is 1,024 on most systems for the sake of programs that call `select`, as far as the hard one lets us.
pub(super) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files could not be raised");
    }
}
