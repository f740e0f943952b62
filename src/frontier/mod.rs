//! The frontier: hosts and tasks in Postgres, and the protocol by which many processes share them.
//!
//! # The idea
//!
//! A URL is a row in `tasks`. A row in `hosts` (scheme + host + port) says when *any* machine may next touch that host. Work moves in
//! four short autocommit statements, each a file in `sql/`; between them nothing is open:
//!
//! - **claim** locks a few ready hosts with `SKIP LOCKED`, takes their first new tasks, and moves the hosts' `polite_at`. It never
//!   waits for a lock, so nothing deadlocks with it.
//! - **finish** writes pages, bodies, new tasks, counters and the status of a batch of visits at once, fenced by `claimed_by` and
//!   `claim_version`: all of a visit is there, or none of it. But for entries of a sitemap, which become tasks before (`found`).
//! - **release** ends the hold of a host after the last fetch; **give back** returns tasks that were not begun.
//! - **recycle** makes claims new again whose lease ran out or whose worker is gone.
//!
//! # States of a task
//!
//! ```text
//! new ──claim──▶ claimed ──finish──▶ done        an answer was recorded (any HTTP status that is not retried)
//!  ▲                │  └───────────▶ failed      no usable answer
//!  │                └──────────────▶ excluded    decided against: robots, scope, operator
//!  ├── recycle (lease over, worker gone) ◀── claimed
//!  └── promote: available_at <= now() ◀── failed (retry) or done (revisit)
//! ```
//!
//! `failed` with `available_at` waits for a retry; without, it was given up.
//!
//! # Who is authoritative
//!
//! The database, for everything: its `now()` is the only time that decides, and the host row is the gate of politeness. A process
//! measures spans on its own monotonic clock and nothing else. It fetches for a claim only until the claim's *deadline* (the earlier of
//! claim sent + lease and last heartbeat sent + dead limit), so whatever others do after that deadline cannot collide with it.
//!
//! # A host is held
//!
//! while it has a delay, or while its robots.txt is due. The hold (`held_by`, `hold_version`, `polite_at` = lease + delay from now) keeps
//! all others away; the release, fenced by `hold_version`, puts `polite_at` to the end of the last fetch + delay. A host without a delay
//! is not held, and several processes share it.
//!
//! # What may go wrong, and what then
//!
//! | accident | what follows |
//! |---|---|
//! | a process dies | same machine: noticed at the next upkeep; else after the dead limit. Its tasks are new again, its holds freed |
//! | it is stopped for longer than its lease | its finishes are refused, it drops its stock and registers anew |
//! | two finishes link to each other's pages | the anti-join filters known URLs, the rest is inserted in one order: no deadlock |
//! | a task becomes new while its host is parked | the inserter holds a key share on the host, which parking must wait out (see `park_hosts`) |
//! | a page kills whoever fetches it | expiries are counted; at the cap the task is failed, reason `poison` |
//! | the connection breaks in a statement | it is repeated; a finish that had committed is then refused, which is harmless |
//! | it breaks in a claim that had committed | what it took is given back before the claim is repeated (`stray`) |
//! | … in one that commits only after the next was answered | nobody fetches for what it took; it is new again when its lease is over |
//! | the server vanishes and leaves its socket open | beyond the server's own limit the connection is closed, and the statement repeated |

mod address;
mod agreement;
mod blocks;
mod bound;
mod budget;
mod claim;
mod ending;
mod enqueue;
mod error;
mod finish;
mod found;
mod host;
mod nudge;
pub mod operate;
mod proxies;
mod rate;
mod recycle;
mod refresh;
mod robots;
mod rules;
mod settings;
mod shapes;
mod stray;
mod tries;
mod validators;
mod worker;

pub use address::{AddressHold, AddressLeave};
pub use agreement::{Agreement, Standing};
pub use blocks::BlockChange;
pub use budget::{HostVisits, NotCounted, Spent};
pub use claim::{Appetite, Claim, ClaimedHost, ClaimedTask, TaskKind};
pub use ending::Ending;
pub use enqueue::Seed;
pub use error::FrontierError;
#[doc(hidden)]
pub use finish::encode;
pub use finish::{Edge, Finish, Finished, NewLink, Outcome, Target};
pub use found::{Found, Said, SitemapRow, SitemapVisit};
pub use host::{Giving, Pace, Release};
pub use nudge::{Ear, Ears};
pub use proxies::ProxyRow;
pub use rate::Stretch;
pub use robots::{RobotsRow, StoredRobots};
pub use rules::{ScopeRule, Step};
pub use settings::FrontierSettings;
pub use shapes::{Fold, ShapeNews, ShapePage, StoredShape};
pub use validators::StoredValidators;
pub use worker::{Identity, Neighbour, Report};

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use sqlx::PgPool;

/// A result of this module.
pub type Result<T = ()> = std::result::Result<T, FrontierError>;

/// Row of `hosts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub i32);

/// Row of `tasks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub i64);

/// Row of `workers`: one process, one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerId(pub i32);

/// One crawl's frontier. Cheap to clone.
///
/// Each method is one autocommit statement (or a few) and is repeated by itself while the trouble is of the kind that passes: a deadlock,
/// a lock timeout, a lost connection, a server that restarts. After [`FrontierSettings::patience`] it ends with
/// [`FrontierError::Lost`].
#[derive(Clone, Debug)]
pub struct Frontier {
    pool: PgPool,
    settings: Arc<FrontierSettings>,
    hurried: CancellationToken,
    answered: Arc<stray::Answered>,
    bound: Arc<bound::Bound>,
}

impl Frontier {
    /// A frontier on a pool whose connections have the session settings of [`crate::db::connect`].
    pub fn new(pool: PgPool, settings: FrontierSettings) -> Frontier {
        Frontier {
            pool,
            settings: Arc::new(settings),
            hurried: CancellationToken::new(),
            answered: Arc::default(),
            bound: Arc::default(),
        }
    }

    /// Has no patience from now on: what fails is not tried again. For a process that must leave.
    pub fn hurry(&self) {
        self.hurried.cancel();
    }

    /// Whether it has no patience any more.
    pub(crate) fn is_hurried(&self) -> bool {
        self.hurried.is_cancelled()
    }

    /// Ends two seconds after a process that has no patience any more would have wanted to be gone.
    async fn hurried(&self) {
        self.hurried.cancelled().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    /// The settings that all statements share.
    pub fn settings(&self) -> &FrontierSettings {
        &self.settings
    }

    /// The pool that the statements run on.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }
}

/// A span in whole milliseconds as the statements take it; what does not fit is the longest that does.
fn ms(span: Duration) -> i32 {
    i32::try_from(span.as_millis()).unwrap_or(i32::MAX)
}
