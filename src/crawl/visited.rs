//! What a visit comes to: the page, a failure that is tried again or not, and what that says of the host.

use std::time::SystemTime;

use super::{
    context::Context,
    read, sitemap,
    visit::{Ended, HostNews, Visit},
};
use crate::{
    canon::PageUrl,
    clock::Boottime,
    exchange::Exchange,
    fetch::{self, Disposition, FetchError, Way},
    frontier::{ClaimedTask, FrontierError, Outcome, TaskKind, WorkerId},
    pages::PageRow,
    schedule::retry::{self, Trouble},
};

/// There was an answer: it is the page, or it asks to come again.
pub(super) async fn answered(
    cx: &Context,
    worker: WorkerId,
    task: ClaimedTask,
    url: PageUrl,
    exchange: Exchange,
    usage: Option<String>,
    reading: Option<sitemap::Reading>,
) -> Result<(Visit, HostNews), FrontierError> {
    let status = exchange.status;
    if !retry::is_retried(status) {
        let read = match reading {
            Some(reading) => sitemap::read(cx, &task, &url, &exchange, &reading).await?,
            None if task.kind == TaskKind::Sitemap && exchange.is_redirect() => {
                sitemap::redirect(cx, worker, &task, &url, &exchange).await?
            }
            None => read::read(cx, &task, url, exchange, usage).await,
        };
        tracing::debug!(task.id = task.id.0, url.full = %task.url, http.response.status_code = status, links = read.links.len(), "visited");
        let visit = Visit {
            outcome: read.outcome,
            page: Some(read.page),
            links: read.links,
            edges: read.edges,
            widens: read.widens,
            task,
        };
        return Ok((visit, HostNews::Answered));
    }
    let trouble = retry::trouble_of(
        status,
        fetch::retry_after(&exchange.headers, SystemTime::now()),
    );
    let row = PageRow::answered(&exchange, None, false);
    let failure = Failure {
        class: status_class(status),
        words: format!("the server answered {status}"),
        trouble,
    };
    let visit = failed(cx, task, failure, Some(row));
    let news = match trouble {
        Trouble::Patience(asked) => {
            let retry = &cx.settings.retry;
            HostNews::Patience {
                wait: asked
                    .unwrap_or(retry.too_many_wait)
                    .min(retry.max_retry_after),
                note: format!("it answered {status} and asked for patience"),
            }
        }
        _ => HostNews::Answered,
    };
    Ok((visit, news))
}

/// There was none.
pub(super) fn unanswered(
    cx: &Context,
    task: ClaimedTask,
    error: &FetchError,
    way: Way,
    began: Boottime,
) -> (Visit, HostNews) {
    let is_proxy_s = error.disposition() == Disposition::Proxy;
    let trouble = match error.disposition() {
        Disposition::Retry => Trouble::Passing,
        Disposition::RetryFew => Trouble::Unreachable,
        // Proxies that work for others all the time, and fail for this one: else it would come back for ever.
        Disposition::Proxy
            if task.deferrals >= cx.settings.retry.max_deferrals
                && PageUrl::parse(&task.url)
                    .is_ok_and(|url| cx.fetcher.proxies_serve(url.as_url())) =>
        {
            Trouble::Passing
        }
        Disposition::Proxy => Trouble::Proxy,
        _ => Trouble::Lasting,
    };
    tracing::debug!(task.id = task.id.0, url.full = %task.url, error.type = error.class(), %error, "not fetched");
    let row = PageRow {
        http_status: error.status(),
        ip: way.ip,
        ..PageRow::without_answer(
            error.class(),
            &error.to_string(),
            began.elapsed(),
            way.proxy,
        )
    };
    let visit = failed(
        cx,
        task,
        Failure {
            class: error.class(),
            words: error.to_string(),
            trouble,
        },
        // The page is what it was: nobody was asked.
        (!is_proxy_s).then_some(row),
    );
    let news = match (&visit.outcome, trouble) {
        (
            Outcome::Failed {
                due: Some(wait), ..
            },
            Trouble::Proxy,
        ) => HostNews::Unasked {
            wait: *wait,
            note: error.to_string(),
        },
        _ if error.is_host_level() => HostNews::Failed {
            note: error.to_string(),
        },
        _ => HostNews::Asked,
    };
    (visit, news)
}

pub(super) struct Failure {
    pub(super) class: &'static str,
    pub(super) words: String,
    pub(super) trouble: Trouble,
}

pub(super) fn failed(
    cx: &Context,
    task: ClaimedTask,
    failure: Failure,
    page: Option<PageRow>,
) -> Visit {
    let chance = rand::random::<f64>();
    let (due, charged) = match retry::next(
        &cx.settings.retry,
        failure.trouble,
        task.attempt,
        task.deferrals,
        chance,
    ) {
        retry::Verdict::Again { wait, charged } => (Some(wait), charged),
        retry::Verdict::GiveUp => (None, true),
    };
    let outcome = Outcome::Failed {
        reason: failure.class.to_owned(),
        detail: Some(crate::pages::clean(&failure.words, 1_000)),
        due,
        charged,
    };
    Visit {
        task,
        outcome,
        page,
        links: Vec::new(),
        edges: Vec::new(),
        widens: None,
    }
}

pub(super) fn not_asked(task: ClaimedTask, outcome: Outcome) -> Ended {
    Ended::Visited(
        Box::new(Visit {
            task,
            outcome,
            page: None,
            links: Vec::new(),
            edges: Vec::new(),
            widens: None,
        }),
        HostNews::NotAsked,
        None,
    )
}

/// The class of a status that is retried, as `reason` has it.
fn status_class(status: u16) -> &'static str {
    match status {
        408 => "http_408",
        429 => "http_429",
        500 => "http_500",
        502 => "http_502",
        503 => "http_503",
        504 => "http_504",
        522 => "http_522",
        _ => "http_524",
    }
}
