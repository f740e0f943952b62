//! One task's journey, from the claim to what is to be committed.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;

use super::{
    address::{Leave, Refusal},
    budget::NoPage,
    context::Context,
    graph::PageLink,
    judging, sitemap,
    stock::Fetched,
    visited::{Failure, answered, failed, not_asked, unanswered},
};
use crate::{
    canon::PageUrl,
    clock::Boottime,
    exchange::Exchange,
    extract,
    fetch::{FetchError, FetchOptions, MayHop, Validators, Way},
    frontier::{ClaimedTask, FrontierError, HostId, Outcome, TaskKind, WorkerId},
    pages::PageRow,
    robots::{Robots, Verdict},
    schedule::retry::Trouble,
    scope::Reason,
};

/// A task to visit.
pub(super) struct Job {
    pub(super) task: ClaimedTask,
    /// What is known of its last answer.
    pub(super) validators: Option<Validators>,
    /// Who claimed it.
    pub(super) worker: WorkerId,
    pub(super) host: HostId,
    /// From the end of a fetch of its host to the start of the next; hops inside the visit keep it, too.
    pub(super) delay: Duration,
    pub(super) deadline: Boottime,
    pub(super) robots: Arc<Robots>,
    /// Its host was given up, for this reason.
    pub(super) given_up: Option<Arc<str>>,
    /// Its host is not held: it is fetched from side by side, up to its ceiling.
    pub(super) shared: bool,
    /// Its host answered since it was claimed, or since it last did not.
    pub(super) answered: bool,
}

/// A link that belongs to the crawl, not yet a task.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) url: PageUrl,
    pub(super) depth: u16,
    pub(super) hops: u16,
    pub(super) kind: TaskKind,
    pub(super) priority: i16,
    pub(super) label: Option<Arc<str>>,
    pub(super) excluded: Option<(&'static str, String)>,
}

/// What a visit came to; all of it is committed, or none.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) task: ClaimedTask,
    pub(super) outcome: Outcome,
    pub(super) page: Option<PageRow>,
    pub(super) links: Vec<Candidate>,
    /// What the link graph keeps of its page.
    pub(super) edges: Vec<PageLink>,
    /// A rule (and its host name) that a seed's redirect to its www or https twin adds to the scope.
    pub(super) widens: Option<(String, String)>,
}

impl Visit {
    /// About how many bytes it takes in memory.
    pub(super) fn weight(&self) -> usize {
        let body = self.page.as_ref().and_then(|page| page.body.as_ref());
        let links = self.links.iter().map(|link| link.url.as_str().len());
        let edges = self.edges.iter().map(PageLink::weight);
        let beside = (self.links.len() + self.edges.len()) * 250;
        body.map_or(0, Vec::len) + links.sum::<usize>() + edges.sum::<usize>() + beside + 2_000
    }
}

/// What a visit means for its host.
#[derive(Clone, Debug)]
pub(super) enum HostNews {
    /// It was not asked.
    NotAsked,
    /// It answered.
    Answered,
    /// It asked for patience, which counts for its breaker like no answer.
    Patience { wait: Duration, note: String },
    /// It could not be asked, since the proxy failed: that is not its fault, but asking on at full speed helps nobody.
    Unasked { wait: Duration, note: String },
    /// It did not answer: a host-level failure.
    Failed { note: String },
    /// It was asked, and that says nothing of the host.
    Asked,
}

/// How a journey ended.
pub(super) enum Ended {
    /// There is something to commit.
    Visited(Box<Visit>, HostNews, Option<Fetched>),
    /// It was not begun (the deadline is too near): to be given back.
    NotBegun,
    /// It was not begun, since the address is asked for other hosts, or every proxy rests: to be given back, and its host waits.
    Busy(Duration),
    /// The frontier failed.
    Trouble(FrontierError),
    /// It was cut off by an abort: to be given back; the host was perhaps asked until now.
    Aborted,
}

/// Makes the journey. A panic in it ends this visit only: the task is tried again, a bounded number of times.
pub(super) async fn travel(cx: &Arc<Context>, job: Job) -> Ended {
    let task = job.task.clone();
    let journey = AssertUnwindSafe(visit(cx, job)).catch_unwind();
    tokio::select! {
        biased;
        () = cx.abort.cancelled() => Ended::Aborted,
        result = journey => result.unwrap_or_else(|_| {
            tracing::error!(task.id = task.id.0, url.full = %task.url, "a visit panicked");
            let trouble = Failure { class: "panic", words: "the visit panicked".to_owned(), trouble: Trouble::Passing };
            Ended::Visited(Box::new(failed(cx, task, trouble, None)), HostNews::Asked, Some(Fetched { ended: Boottime::now(), took: Duration::ZERO }))
        }),
    }
}

async fn visit(cx: &Arc<Context>, job: Job) -> Ended {
    let Job {
        task,
        validators,
        worker,
        host,
        delay,
        deadline,
        robots,
        given_up,
        shared,
        ..
    } = job;
    if let Some(reason) = given_up {
        return not_asked(
            task,
            Outcome::Failed {
                reason: reason.to_string(),
                detail: None,
                due: None,
                charged: true,
            },
        );
    }
    let url = match PageUrl::parse(&task.url) {
        Ok(url) => url,
        Err(error) => {
            let outcome = Outcome::Failed {
                reason: "url".to_owned(),
                detail: Some(error.to_string()),
                due: None,
                charged: true,
            };
            return not_asked(task, outcome);
        }
    };
    let mut task = task;
    if sitemap::is_named(cx, &task, &url, &robots) {
        task.kind = TaskKind::Sitemap;
    }
    if let Some(entry) = cx.blocked.covering(&url) {
        return not_asked(
            task,
            Outcome::Excluded {
                reason: "blocked".to_owned(),
                detail: Some(entry),
            },
        );
    }
    if let Verdict::Disallowed { rule } = judging::verdict(cx, &robots, url.as_url()).await {
        return not_asked(
            task,
            Outcome::Excluded {
                reason: "robots".to_owned(),
                detail: Some(rule),
            },
        );
    }
    match left_out(cx, &task, host, &url).await {
        Ok(None) => {}
        Ok(Some(excluded)) => return not_asked(task, excluded),
        Err(error) => return Ended::Trouble(error),
    }
    // Before it waits for its turn, which others may take.
    if cx.settings.budget.pages_per_host.is_some()
        && let Err(none) = cx.host_pages.look(host, url.host())
    {
        return without_page(cx, task, none);
    }
    // An attempt would only fail: the task goes back, and its host waits for the first proxy to come back.
    if let Some(wait) = cx.fetcher.proxies_rest(url.as_url()) {
        return Ended::Busy(wait);
    }
    // The dispatcher keeps to the ceiling of a host by itself, but for hosts that come back while fetches of an earlier claim are under way.
    let _side_by_side = match shared {
        true => Some(cx.ceilings.host_permit(url.host()).await),
        false => None,
    };
    let permit = cx.leave_to_ask().await;
    let leave = match Leave::wait(cx, url.as_url()).await {
        Ok(leave) => leave,
        Err(Refusal::Busy(wait)) => return Ended::Busy(wait),
        Err(Refusal::Trouble(error)) => return Ended::Trouble(error),
    };
    // The statement first: it may take long, and nothing may come between the look at the clock and the request.
    if (task.expiries > 0 && !may_begin(cx, worker, &task).await)
        || !cx.fits(deadline)
        || !leave.fits(cx)
        || !cx.licensed_as(worker)
    {
        return match leave.end(cx, Boottime::now()).await {
            Ok(()) => Ended::NotBegun,
            Err(error) => Ended::Trouble(error),
        };
    }
    let page = match cx.take_page(host, url.host(), &task) {
        Ok(page) => page,
        Err(none) => {
            return match leave.end(cx, Boottime::now()).await {
                Ok(()) => without_page(cx, task, none),
                Err(error) => Ended::Trouble(error),
            };
        }
    };
    let was_named = cx.rules.names(url.host().host());
    let began = Boottime::now();
    let (sink, pieces) = sitemap::sink(cx, &task).unzip();
    let (room, _until_it_is_read) = cx.bodies.room();
    let options = FetchOptions {
        room,
        sink,
        budget: cx.settings.visit_budget,
        wanted: match cx.settings.wants.assets {
            true => extract::is_wanted_or_asset,
            false => extract::is_wanted,
        },
        type_rules: cx.rules.type_rules(&url),
        pause: delay.max(cx.settings.ip_delay),
        validators,
        address: leave.address(),
        hop_leave: cx.hop_leave(),
        canon: cx.frontier.settings().canon.clone(),
        may_hop: {
            let (cx, robots) = (Arc::clone(cx), Arc::clone(&robots));
            MayHop::new(move |url| {
                let (cx, robots) = (Arc::clone(&cx), Arc::clone(&robots));
                async move { judging::verdict(&cx, &robots, &url).await == Verdict::Allowed }
            })
        },
    };
    let mut way = Way::default();
    let fetch = async {
        let answer = cx.fetcher.fetch_by(&url, &options, &mut way).await;
        // With it goes the sink, and the reader of a sitemap learns that this was all.
        drop(options);
        let ended = |exchange: &Exchange| exchange.ended;
        let ended_at = answer.as_ref().map_or_else(|_| Boottime::now(), ended);
        (answer, ended_at)
    };
    let ((answer, ended_at), reading) =
        tokio::join!(fetch, sitemap::take(cx, worker, &task, pieces));
    drop(permit);
    if let Err(error) = leave.end(cx, ended_at).await {
        return Ended::Trouble(error);
    }
    let reading = match reading {
        Ok(reading) => reading,
        Err(error) => return Ended::Trouble(error),
    };
    let key = url.host().clone();
    let ended = match answer {
        Ok(exchange) => {
            let usage = judging::usage(cx, &robots, url.as_url()).await;
            match answered(cx, worker, task, url, exchange, usage, reading).await {
                Ok((visit, news)) => {
                    Ended::Visited(Box::new(visit), news, Some(fetched(began, ended_at)))
                }
                Err(error) => return Ended::Trouble(error),
            }
        }
        // As before the request: nothing was made of it. A hop may have been answered, so the host's delay is kept.
        Err(FetchError::NoProxy { wait }) => return Ended::Busy(wait.max(delay)),
        // The seed may have come from another process just now, which names this host.
        Err(FetchError::PrivateAddress { .. }) if !was_named && is_named(cx, &url).await => {
            return Ended::Busy(delay);
        }
        Err(error) => {
            let (visit, news) = unanswered(cx, task, &error, way, began);
            Ended::Visited(Box::new(visit), news, Some(fetched(began, ended_at)))
        }
    };
    if let Ended::Visited(_, news, Some(fetched)) = &ended {
        page.keep();
        cx.tally
            .fetched(&key, !matches!(news, HostNews::Failed { .. }), fetched.took);
    }
    ended
}

/// Whether a seed names the host, by all that is known by now.
async fn is_named(cx: &Context, url: &PageUrl) -> bool {
    if let Err(error) = cx.rules.refresh(&cx.frontier).await {
        tracing::warn!(%error, "the rules of the scope could not be read");
    }
    cx.rules.names(url.host().host())
}

/// Why a task is not visited any more: since it was found, or while the page was that led to it, its shape was parked or the operator gave another
/// rule. Neither is asked of a seed, nor of what is no page.
async fn left_out(
    cx: &Context,
    task: &ClaimedTask,
    host: HostId,
    url: &PageUrl,
) -> Result<Option<Outcome>, FrontierError> {
    if task.is_seed || task.kind != TaskKind::Page {
        return Ok(None);
    }
    // Of a redirect the page that led to it was asked; an asset is judged as lying nearer than its depth says.
    if task.hops == 0
        && let Some(rule) = cx.rules.left_out_by(url, task.depth)
    {
        return Ok(Some(excluded(Reason::Rule, rule)));
    }
    let Some(shape) = cx.shapes.of(url) else {
        return Ok(None);
    };
    // What this process knows may be some seconds old, and who unparks a shape brings its tasks back at once.
    if !cx.shapes.is_still_parked(cx, host, &shape).await? {
        return Ok(None);
    }
    Ok(Some(excluded(Reason::Shape, shape)))
}

/// How a visit ends whose host has no page left for it.
fn without_page(cx: &Context, task: ClaimedTask, none: NoPage) -> Ended {
    /// Until those who have claimed what is left have visited some of it, or given it back.
    const WAIT: Duration = Duration::from_secs(1);
    match (none, cx.settings.budget.pages_per_host) {
        (NoPage::UsedUp, Some(most)) => {
            let detail = format!("budget.pages_per_host = {most}");
            not_asked(task, excluded(Reason::HostPages, detail))
        }
        _ => Ended::Busy(WAIT),
    }
}

fn excluded(reason: Reason, detail: String) -> Outcome {
    Outcome::Excluded {
        reason: reason.as_str().to_owned(),
        detail: Some(detail),
    }
}

fn fetched(began: Boottime, ended: Boottime) -> Fetched {
    Fetched {
        ended,
        took: ended - began,
    }
}

/// A task that lost a lease before may be one that kills its worker: that it is begun is noted before it can.
async fn may_begin(cx: &Context, worker: WorkerId, task: &ClaimedTask) -> bool {
    match cx.frontier.begin(worker, task).await {
        Ok(begun) => begun,
        Err(error) => {
            tracing::warn!(task.id = task.id.0, %error, "a visit could not be begun");
            false
        }
    }
}
