//! A claim with all that its tasks need to be started.

use std::{collections::HashMap, sync::Arc, time::Duration};

use url::Url;

use super::{
    Until,
    budget::Leave,
    context::Context,
    stock::{Arrival, Rules, Stocked},
};
use crate::{
    canon::{HostKey, PageUrl},
    fetch::Validators,
    frontier::{Appetite, ClaimedHost, FrontierError, HostId, TaskId, WorkerId},
    robots::Robots,
};

/// What a claim brought.
pub(super) struct Supply {
    /// The worker that claimed.
    pub(super) worker: WorkerId,
    pub(super) arrivals: Vec<Arrival>,
    /// Where nothing was ready: how long until something is.
    pub(super) next_ready: Option<Duration>,
    /// Nothing is left to do anywhere. Looked at only where `idle`.
    pub(super) finished: bool,
    /// A budget of the crawl is used up, this one: nothing was claimed.
    pub(super) used_up: Option<String>,
}

impl Supply {
    fn nothing(worker: WorkerId) -> Supply {
        Supply {
            worker,
            arrivals: Vec::new(),
            next_ready: None,
            finished: false,
            used_up: None,
        }
    }
}

/// Claims, parks hosts that were empty, and reads the robots.txt of hosts that are new here. `idle`: nothing is in stock or under way, so an
/// empty answer may be the end.
pub(super) async fn claim(
    cx: &Context,
    appetite: Appetite,
    idle: bool,
) -> Result<Supply, FrontierError> {
    let worker = cx.licence.worker();
    if !cx.licensed() {
        // The heartbeat does not get through: claim nothing that could not be fetched.
        return Ok(Supply::nothing(worker));
    }
    let appetite = match cx.budget_leave(appetite).await? {
        Leave::Tasks(tasks) => Appetite { tasks, ..appetite },
        Leave::Wait => return Ok(Supply::nothing(worker)),
        Leave::UsedUp(which) => {
            return Ok(Supply {
                used_up: Some(which),
                ..Supply::nothing(worker)
            });
        }
    };
    let claim = cx.frontier.claim(worker, appetite).await?;
    cx.tally.claimed(claim.took);
    cx.frontier.park(&claim.empty).await?;
    if claim.hosts.is_empty() {
        // Hosts that looked empty may have something behind their mark: look again at once.
        let next_ready = if claim.empty.is_empty() {
            cx.frontier.next_ready().await?
        } else {
            Some(Duration::ZERO)
        };
        let finished = idle
            && cx.settings.until == Until::Finished
            && cx.uncommitted() == 0
            && cx.frontier.finished().await?;
        return Ok(Supply {
            next_ready,
            finished,
            ..Supply::nothing(worker)
        });
    }
    let deadline = claim.sent + cx.frontier.settings().lease;
    let mut keyed = Vec::with_capacity(claim.hosts.len());
    for host in claim.hosts {
        match HostKey::parse(&host.authority) {
            Ok(key) => keyed.push((host, key)),
            // Only a row that was typed by hand: its tasks come back with their lease.
            Err(error) => tracing::error!(host = %host.authority, %error, "not a host"),
        }
    }
    cx.count_host_pages(worker, &keyed).await?;
    let mut known = known_rules(cx, &keyed).await?;
    let mut validators = validators(cx, &keyed).await?;
    let arrivals = keyed
        .into_iter()
        .map(|(host, key)| Arrival {
            rules: known.remove(&host.id).unwrap_or(Rules::Due),
            host: host.id,
            key,
            delay: host.delay,
            hold: host.hold,
            given_up: host.given_up.map(Into::into),
            ailing: host.ailing,
            tasks: host
                .tasks
                .into_iter()
                .map(|task| Stocked {
                    validators: validators.remove(&task.id.0),
                    task,
                    deadline,
                })
                .collect(),
        })
        .collect();
    Ok(Supply {
        arrivals,
        ..Supply::nothing(worker)
    })
}

/// What conditional requests may say, by task. Only a task that was claimed before may have a page: a first visit costs nothing here.
async fn validators(
    cx: &Context,
    hosts: &[(ClaimedHost, HostKey)],
) -> Result<HashMap<i64, Validators>, FrontierError> {
    let again: HashMap<i64, Url> = hosts
        .iter()
        .filter(|(host, _)| host.given_up.is_none())
        .flat_map(|(host, _)| &host.tasks)
        .filter(|task| task.claim_version > 1)
        .filter_map(|task| Some((task.id.0, PageUrl::parse(&task.url).ok()?.as_url().clone())))
        .collect();
    let tasks: Vec<(TaskId, i32)> = again
        .iter()
        .map(|(id, url)| (TaskId(*id), cx.reading(url)))
        .collect();
    let stored = cx
        .frontier
        .validators_of(&tasks, cx.settings.keep_bodies)
        .await?;
    Ok(stored
        .into_iter()
        .filter_map(|stored| {
            let url = match &stored.final_url {
                Some(url) => url.as_str(),
                None => again.get(&stored.task.0)?.as_str(),
            };
            let (etag, date) = (stored.etag.as_deref(), stored.last_modified.as_deref());
            Some((stored.task.0, Validators::stored(url, etag, date)?))
        })
        .collect())
}

/// robots.txt of the hosts that need not fetch it: from memory, else from the database.
async fn known_rules(
    cx: &Context,
    hosts: &[(ClaimedHost, HostKey)],
) -> Result<HashMap<HostId, Rules>, FrontierError> {
    let mut known = HashMap::new();
    if !cx.frontier.settings().obey_robots {
        let all: Arc<Robots> = Arc::new(Robots::allow_all());
        return Ok(hosts
            .iter()
            .map(|(host, _)| (host.id, Rules::Known(Arc::clone(&all))))
            .collect());
    }
    let mut unknown = Vec::new();
    for (host, key) in hosts.iter().filter(|(host, _)| !host.robots_due) {
        match cx.robots(key) {
            Some(robots) => {
                known.insert(host.id, Rules::Known(robots));
            }
            None => unknown.push(host.id),
        }
    }
    for row in cx.frontier.robots_of(&unknown).await? {
        if let Ok(key) = HostKey::parse(&row.authority) {
            known.insert(
                row.host,
                Rules::Known(cx.keep_robots(key, row.body.as_deref(), row.left)),
            );
        }
    }
    Ok(known)
}
