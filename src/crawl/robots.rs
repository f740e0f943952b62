//! robots.txt of a held host: fetched once by its holder, stored for all, obeyed from the first page on.

use std::{sync::Arc, time::Duration};

use url::Url;

use super::{
    address::{Leave, Refusal},
    context::Context,
    dispatch::rest_for_its_address,
    guests::{Answer, Turn, Welcome},
    sitemap,
    stock::Fetched,
};
use crate::{
    canon::HostKey,
    clock::Boottime,
    fetch::{Disposition, FetchError, RobotsFetch, RobotsHop, RobotsHops},
    frontier::{FrontierError, HostId, Pace, StoredRobots},
    robots::{Access, MAX_CRAWL_DELAY, Robots, access},
};

/// What came of asking for it.
pub(super) enum RobotsNews {
    /// It is known; with the delay of the host from now on, and the end of the fetch.
    Known {
        robots: Arc<Robots>,
        delay: Duration,
        fetched: Fetched,
    },
    /// The host waits, or was given up: it could not be had, or it names a delay that others do not keep yet. With the end of the fetch.
    Deferred { fetched: Fetched },
    /// The deadline was too near to ask, or the crawl is being left.
    NotAsked,
    /// The frontier failed.
    Trouble(FrontierError),
}

/// What came of the requests.
enum Asked {
    /// None was made.
    Nothing,
    /// A redirect led to an address or a host that others ask: nothing is known, and the host rests. With the end of the last request.
    InVain(Boottime),
    /// With its age: it may have been the answer to another host's question.
    Answer(Box<RobotsFetch>, Duration),
}

/// Longest time for which an answer does for the hosts whose robots.txt leads there, too.
const KEPT: Duration = Duration::from_secs(600);

/// The same of one that says that nothing is known.
const REFUSAL_KEPT: Duration = Duration::from_secs(60);

/// Fetches robots.txt of a host that this worker holds, and stores what it means.
pub(super) async fn ask(
    cx: &Arc<Context>,
    host: HostId,
    key: &HostKey,
    delay: Duration,
    deadline: Boottime,
) -> RobotsNews {
    if cx.blocked.covering_host(key).is_some() {
        // No task of it will be visited, and whoever opted out is not asked for this either.
        return RobotsNews::Known {
            robots: Arc::new(Robots::allow_all()),
            delay,
            fetched: over(Boottime::now()),
        };
    }
    // The seed may have come from another process just now: a host that it names is asked at a private address, too.
    if !cx.rules.names(key.host())
        && let Err(error) = cx.rules.refresh(&cx.frontier).await
    {
        return RobotsNews::Trouble(error);
    }
    let asked = tokio::select! {
        biased;
        () = cx.abort.cancelled() => Ok(Asked::Nothing),
        asked = requests(cx, host, key, delay, deadline) => asked,
    };
    let (fetched, age) = match asked {
        Ok(Asked::Answer(fetched, age)) => (fetched, age),
        Ok(Asked::InVain(ended)) => {
            return RobotsNews::Deferred {
                fetched: over(ended),
            };
        }
        Ok(Asked::Nothing) => return RobotsNews::NotAsked,
        Err(error) => return RobotsNews::Trouble(error),
    };
    let result = match access(fetched.answer()) {
        Access::Defer => defer(cx, host, key, &fetched).await,
        Access::Rules => store(cx, host, key, &fetched, age, true).await,
        Access::AllowAll => store(cx, host, key, &fetched, age, false).await,
    };
    result.unwrap_or_else(RobotsNews::Trouble)
}

/// Asks, over as many redirects as there are. Each is a request under the ceiling, the rate and the address's delay like any other; as a hop of a
/// visit it takes its turn in the rate afterwards, since the claim may not last until then. The hold of a host that a redirect leads to is not
/// asked for (`guests`).
async fn requests(
    cx: &Arc<Context>,
    host: HostId,
    key: &HostKey,
    delay: Duration,
    deadline: Boottime,
) -> Result<Asked, FrontierError> {
    let worker = cx.licence.worker();
    let pending = cx.guests.pending(key);
    let first = match &pending {
        Some(pending) => pending.url.clone(),
        None => key.robots_url(),
    };
    // Whatever ends it early, it goes on from there.
    let keep = |url: &Url, hops: u8, wait: Duration| {
        if hops > 0 {
            cx.guests.wait(key.clone(), url.clone(), hops, wait);
        }
    };
    let count = pending.as_ref().map_or(0, |pending| pending.hops);
    if let Some(wait) = cx.fetcher.proxies_rest(&first) {
        keep(&first, count, wait);
        rest_for_its_address(cx, host, wait).await?;
        return Ok(Asked::Nothing);
    }
    let _permit = cx.leave_to_ask().await;
    let mut leave = match Leave::wait(cx, &first).await {
        Ok(leave) => leave,
        Err(Refusal::Busy(wait)) => {
            keep(&first, count, wait);
            rest_for_its_address(cx, host, wait).await?;
            return Ok(Asked::Nothing);
        }
        Err(Refusal::Trouble(error)) => return Err(error),
    };
    if !cx.fits(deadline) || !leave.fits(cx) || !cx.licensed_as(worker) {
        keep(&first, count, Duration::ZERO);
        leave.end(cx, Boottime::now()).await?;
        return Ok(Asked::Nothing);
    }
    let pause = delay.max(cx.settings.ip_delay);
    let mut hops = cx.fetcher.robots_hops(key, cx.settings.visit_budget, pause);
    if let Some(pending) = pending {
        hops = hops.resumed(pending.url, pending.hops);
    }
    let (mut asked, mut turn, mut ended) = (Vec::new(), None, None);
    loop {
        if hops.count() > 0 {
            let guest = as_guest(cx, key, &hops, turn).await;
            let in_vain = ended.map_or(Asked::Nothing, Asked::InVain);
            turn = match guest {
                Guest::Turn(turn) => Some(turn),
                Guest::AtHome => {
                    let (url, count) = (hops.url().clone(), hops.count());
                    let Ok(rested) = hops.rest().await else {
                        // Its delay is longer than a fetch may last: it goes on with the next claim.
                        keep(&url, count, pause);
                        leave.end(cx, ended.unwrap_or_else(Boottime::now)).await?;
                        return Ok(in_vain);
                    };
                    hops = rested;
                    None
                }
                Guest::Known(answer) => {
                    leave.end(cx, hops.ended()).await?;
                    let (age, retry_after) = (answer.ended.elapsed(), answer.retry_after);
                    let (body, url) = (answer.body.clone(), answer.url.clone());
                    let fetched = hops.answered(answer.status, body, url, retry_after);
                    return Ok(Asked::Answer(Box::new(fetched), age));
                }
                Guest::Later(wait) => {
                    keep(hops.url(), hops.count(), wait);
                    leave.end(cx, hops.ended()).await?;
                    rest_for_its_address(cx, host, wait).await?;
                    return Ok(in_vain);
                }
            };
        }
        if let Some(ended) = ended {
            leave = match leave.pass_on(cx, hops.url(), ended).await {
                Ok(leave) => leave,
                Err(Refusal::Busy(wait)) => {
                    keep(hops.url(), hops.count(), wait);
                    rest_for_its_address(cx, host, wait).await?;
                    return Ok(Asked::InVain(ended));
                }
                Err(Refusal::Trouble(error)) => return Err(error),
            };
            if let Some(turns) = &cx.turns {
                turns.owe();
            }
        }
        asked.push(hops.url().clone());
        match hops.ask(leave.address()).await {
            RobotsHop::Over(fetched) => {
                keep_for_others(cx, &asked, &fetched);
                if let Some(turn) = turn {
                    Turn::over(turn, fetched.ended);
                }
                leave.end(cx, fetched.ended).await?;
                return Ok(Asked::Answer(fetched, Duration::ZERO));
            }
            RobotsHop::On(next) => {
                ended = Some(next.ended());
                hops = *next;
            }
        }
    }
}

/// Where a redirect leads to.
enum Guest {
    /// The host itself.
    AtHome,
    /// Another one, which may be asked now.
    Turn(Turn),
    /// It need not be asked.
    Known(Arc<Answer>),
    /// It may be asked after this long.
    Later(Duration),
}

/// Waits until a host may be asked that a redirect leads to, where it is another one; or says how long that would take, where it is long.
async fn as_guest(cx: &Context, key: &HostKey, hops: &RobotsHops, turn: Option<Turn>) -> Guest {
    let (url, ended) = (hops.url(), hops.ended());
    let authority = url.origin().ascii_serialization();
    let known = cx.guests.known(url);
    let turn = match turn {
        Some(turn) if known.is_some() => {
            turn.over(ended);
            None
        }
        Some(turn) => turn.go_on(url, ended).await,
        None => None,
    };
    if authority == key.robots_url().origin().ascii_serialization() {
        return Guest::AtHome;
    }
    if let Some(turn) = turn {
        return Guest::Turn(turn);
    }
    // Its own delay, where it is known here.
    let own = HostKey::parse(&authority)
        .ok()
        .and_then(|host| cx.robots(&host)?.crawl_delay());
    let delay = cx.frontier.settings().delay.max(own.unwrap_or_default());
    match cx.guests.come(url, delay).await {
        Welcome::Turn(turn) => Guest::Turn(turn),
        Welcome::Known(answer) => Guest::Known(answer),
        Welcome::Later(wait) => Guest::Later(wait),
    }
}

/// Keeps an answer for the hosts whose robots.txt leads there, too.
fn keep_for_others(cx: &Context, asked: &[Url], fetched: &RobotsFetch) {
    let settings = cx.frontier.settings();
    let span = match access(fetched.answer()) {
        Access::Rules => settings.robots_ttl.min(KEPT),
        Access::AllowAll => settings.robots_error_ttl.min(KEPT),
        Access::Defer => REFUSAL_KEPT,
    };
    cx.guests.keep(asked, fetched, span);
}

async fn store(
    cx: &Context,
    host: HostId,
    key: &HostKey,
    fetched: &RobotsFetch,
    age: Duration,
    has_rules: bool,
) -> Result<RobotsNews, FrontierError> {
    let settings = cx.frontier.settings();
    let body = has_rules.then_some(fetched.body.as_ref());
    let ttl = if has_rules {
        settings.robots_ttl
    } else {
        settings.robots_error_ttl
    };
    // An answer to another counts from when he had it.
    let ttl = ttl.saturating_sub(age);
    let robots = cx.keep_robots(key.clone(), body, ttl);
    let row = StoredRobots {
        http_status: fetched.status,
        hops: fetched.hops,
        crawl_delay: robots.asked_delay(),
        error: fetched.error.as_ref().map(FetchError::class),
        final_url: (fetched.final_url != key.robots_url())
            .then(|| crate::pages::clean(fetched.final_url.as_str(), 4_000)),
        sitemaps: robots
            .sitemaps()
            .iter()
            .take(100)
            .map(|url| crate::pages::clean(url, 4_000))
            .collect(),
        body: body.map(<[u8]>::to_vec),
        ttl,
    };
    if let Some(asked) = robots
        .asked_delay()
        .filter(|asked| *asked > MAX_CRAWL_DELAY)
    {
        tracing::info!(host = %key, asked_s = asked.as_secs(), "robots.txt asks for a crawl delay of more than {}, which is what is kept",
            humantime::format_duration(MAX_CRAWL_DELAY));
    }
    sitemap::name(cx, host, key, &robots, &row.sitemaps).await?;
    let Some(delay) = cx.frontier.store_robots(host, &row).await? else {
        tracing::debug!(host = %key, "robots.txt names a delay; the host rests until nobody fetches without it");
        return Ok(RobotsNews::Deferred {
            fetched: over(fetched.ended),
        });
    };
    tracing::debug!(host = %key, http.response.status_code = fetched.status, delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), "robots.txt is known");
    Ok(RobotsNews::Known {
        robots,
        delay,
        fetched: over(fetched.ended),
    })
}

/// How long it took is left out: the file is small, and asked for once a day.
fn over(ended: Boottime) -> Fetched {
    Fetched {
        ended,
        took: Duration::ZERO,
    }
}

/// 429, 5xx and silence never mean "allowed" (RFC 9309 §2.3.1.4; NUTCH-3011 for 429).
async fn defer(
    cx: &Context,
    host: HostId,
    key: &HostKey,
    fetched: &RobotsFetch,
) -> Result<RobotsNews, FrontierError> {
    let retry = &cx.settings.retry;
    // A proxy's failure says nothing of the host, and does not count towards giving it up.
    if let Some(error) = &fetched.error
        && error.disposition() == Disposition::Proxy
    {
        let wait = cx.fetcher.proxies_rest(&key.robots_url());
        let wait = wait
            .unwrap_or_default()
            .max(retry.waits.first().copied().unwrap_or_default());
        let note = format!("robots.txt could not be had: {error}");
        cx.frontier
            .defer(host, wait, Pace::Same, Some(&note))
            .await?;
        return Ok(RobotsNews::Deferred {
            fetched: over(fetched.ended),
        });
    }
    let wait = fetched
        .retry_after
        .unwrap_or_default()
        .min(retry.max_retry_after)
        .max(retry.robots_wait);
    let note = match (&fetched.status, &fetched.error) {
        (Some(status), _) => format!("robots.txt answered {status}"),
        (None, Some(error)) => format!("robots.txt could not be had: {error}"),
        (None, None) => "robots.txt could not be had".to_owned(),
    };
    let class = fetched.error.as_ref().map(FetchError::class);
    let given_up = cx
        .frontier
        .robots_failed(host, wait, retry.robots_tries, fetched.status, class, &note)
        .await?;
    if given_up {
        tracing::info!(host = %key, "{note}; the host is given up after {} waits", retry.robots_tries);
    } else {
        tracing::info!(host = %key, "{note}; the host waits for {}", humantime::format_duration(Duration::from_secs(wait.as_secs())));
    }
    Ok(RobotsNews::Deferred {
        fetched: over(fetched.ended),
    })
}
