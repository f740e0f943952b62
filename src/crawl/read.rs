//! From an exchange to what it says: its page row, its links that belong to the crawl, its redirect.

use std::cell::RefCell;

use super::{
    context::Context,
    graph::{Aim, Kept, LinkGraph, PageLink},
    judging::Links,
    sitemap::SitemapUse,
    visit::Candidate,
};
use crate::{
    canon::{Canon, CanonError, HrefCache, PageUrl},
    exchange::Exchange,
    extract::{self, Extraction, Link, LinkKind, Wants, simhash},
    frontier::{ClaimedTask, Outcome, Step, TaskKind},
    pages::{PageRow, signals_json},
    schedule::Order,
    scope::{self, Place, Reason},
};

/// Bodies above this are parsed on the blocking pool: about half a millisecond of work.
const INLINE_BYTES: usize = 96 << 10;

/// Hrefs that each thread remembers. The navigation of a site is on all its pages.
const HREFS: usize = 8_192;

thread_local! {
    static CACHE: RefCell<HrefCache> = RefCell::new(HrefCache::new(HREFS));
}

/// What an answer came to.
pub(super) struct Read {
    pub(super) outcome: Outcome,
    pub(super) page: PageRow,
    pub(super) links: Vec<Candidate>,
    pub(super) edges: Vec<PageLink>,
    pub(super) widens: Option<(String, String)>,
}

/// Reads an answer that is not to be tried again. `usage`: what robots.txt says of the use of its content.
pub(super) async fn read(
    cx: &Context,
    task: &ClaimedTask,
    url: PageUrl,
    exchange: Exchange,
    usage: Option<String>,
) -> Read {
    if exchange.status == 304 {
        return unmodified(&exchange, usage.as_deref());
    }
    if exchange.is_redirect() {
        return redirect(cx, task, &url, &exchange).await;
    }
    // Before the links are judged: whoever learns of a rule meanwhile reads the page anew.
    let reading = cx.reading(url.as_url());
    let base = base_of(&url, &exchange);
    let how = How {
        token: cx.settings.robots_token.clone(),
        canon: cx.frontier.settings().canon.clone(),
        wants: cx.settings.wants,
        anchors: cx.settings.links != LinkGraph::None,
        body: cx.settings.keep_bodies,
        simhash: cx.settings.simhash,
    };
    let large = exchange.body.len() > INLINE_BYTES;
    let work = {
        let base = base.clone();
        move || parse(&base, &exchange, &how, usage.as_deref())
    };
    let parsed = if large {
        cx.on_blocking_pool(work).await
    } else {
        work()
    };
    let Judged {
        links,
        edges,
        withheld,
    } = candidates(cx, task, &base, parsed.found).await;
    Read {
        outcome: Outcome::Done { reason: None },
        page: PageRow {
            reading: Some(reading),
            links_withheld: withheld,
            ..parsed.page
        },
        links,
        edges,
        widens: None,
    }
}

/// It is as it was, and so are its links: they became tasks when it was read under the same rules.
fn unmodified(exchange: &Exchange, usage: Option<&str>) -> Read {
    Read {
        outcome: Outcome::Done { reason: None },
        page: PageRow {
            signals: signals_json(&Extraction::default(), usage),
            ..PageRow::unmodified(exchange)
        },
        links: Vec::new(),
        edges: Vec::new(),
        widens: None,
    }
}

/// What references of an answer are relative to: where it came from in the end, which has the same key as the page.
pub(super) fn base_of(url: &PageUrl, exchange: &Exchange) -> PageUrl {
    PageUrl::from_url(exchange.final_url.clone()).unwrap_or_else(|_| url.clone())
}

/// What the synchronous part makes of an answer.
struct Parsed {
    page: PageRow,
    found: Found,
}

/// Its links.
struct Found {
    links: Vec<Link>,
    nofollow: bool,
    /// The declared canonical, if it is not the first kind of any of them.
    canonical: Option<PageUrl>,
}

/// How pages of this crawl are read.
struct How {
    token: String,
    canon: Canon,
    wants: Wants,
    anchors: bool,
    body: bool,
    simhash: bool,
}

fn parse(base: &PageUrl, exchange: &Exchange, how: &How, usage: Option<&str>) -> Parsed {
    let mut found = if exchange.body.is_empty() {
        extract::of_header(&exchange.headers, &how.token)
    } else {
        let input = extract::Input {
            url: base,
            headers: &exchange.headers,
            body: &exchange.body,
            robots_token: &how.token,
            anchors: how.anchors,
            canon: &how.canon,
            wants: how.wants,
        };
        CACHE.with_borrow_mut(|cache| extract::extract(&input, cache))
    };
    let signals = signals_json(&found, usage);
    let links = std::mem::take(&mut found.links);
    let canonical = found
        .canonical_url
        .as_deref()
        .filter(|_| links.iter().all(|link| link.kind != LinkKind::Canonical))
        .and_then(|url| PageUrl::parse(url).ok());
    let Extraction {
        nofollow,
        links_excess,
        ..
    } = found;
    let simhash = found
        .text
        .as_deref()
        .filter(|_| how.simhash)
        .and_then(|text| simhash::of(found.media_type.as_deref(), text));
    let mut page = PageRow::answered(exchange, Some(found), how.body);
    page.simhash = simhash.map(u64::cast_signed);
    page.signals = signals;
    page.links = u32::try_from(links.len())
        .unwrap_or(u32::MAX)
        .saturating_add(links_excess);
    Parsed {
        page,
        found: Found {
            links,
            nofollow,
            canonical,
        },
    }
}

/// What a page leads to.
struct Judged {
    links: Vec<Candidate>,
    edges: Vec<PageLink>,
    /// Not all are followed that would be from elsewhere.
    withheld: bool,
}

/// The links that belong to the crawl, and those that the link graph keeps. Those that robots.txt is known to forbid come along excluded: each "no"
/// of it is a row.
async fn candidates(cx: &Context, task: &ClaimedTask, base: &PageUrl, found: Found) -> Judged {
    let mut kept = Kept::new(cx.settings.links);
    if !kept.any() && (found.nofollow || found.links.is_empty()) {
        return Judged {
            links: Vec::new(),
            edges: Vec::new(),
            withheld: found.nofollow,
        };
    }
    learn_scope(cx, base).await;
    let depth = task.depth.saturating_add(1);
    let mut links = Links::default();
    let outside = outside(cx, task, base).await;
    let place = Place {
        depth,
        outside: outside.saturating_add(1),
    };
    let withheld = found.nofollow || outside > 0 || cx.rules.is_too_deep(depth);
    // Where nobody counts the links to a task, or keeps them.
    let skips_known = !kept.any() && cx.settings.order != Order::InLinks;
    let canon = &cx.frontier.settings().canon;
    for link in found.links {
        if skips_known && cx.known.has(&link.url.digest(canon)) {
            continue;
        }
        let is_asset = link.kind.is_asset();
        let hops = match is_asset {
            // A style that has another, and so on, is like a redirect that leads to another.
            true => task.hops.saturating_add(1),
            false => 0,
        };
        let candidate = |excluded| Candidate {
            url: link.url.clone(),
            depth,
            hops,
            kind: match is_asset {
                true => TaskKind::Asset,
                false => TaskKind::Page,
            },
            priority: cx
                .settings
                .order
                .of_link(task.priority, depth, chance_of(cx, &link.url)),
            label: task.label.clone(),
            excluded,
        };
        let nofollow = found.nofollow || link.rel.nofollow;
        // With sitemaps only, a page leads nowhere but to what it is made of.
        let is_closed = cx.settings.sitemaps.used == SitemapUse::Only && !is_asset;
        // Of a link that is blocked there is no row: what is taken from the list may be found again.
        let is_blocked = cx.blocked.covering(&link.url).is_some();
        let aim = if nofollow || is_closed || is_blocked || hops > cx.settings.max_hops {
            Aim::withheld(cx, &link.url)
        } else {
            let place = match is_asset {
                true => Place::TRANSCLUDED,
                false => place,
            };
            let aim = Aim::Candidate(links.len());
            match cx.reject(&link.url, place) {
                None => {
                    links.push(cx, candidate(None));
                    aim
                }
                Some((reason, rule)) => match row_of(cx, &link.url, place, reason, rule) {
                    Some(detail) => {
                        links.push_judged(candidate(Some((reason.as_str(), detail))));
                        aim
                    }
                    None => Aim::rejected(&link.url, reason),
                },
            }
        };
        kept.push(link, nofollow, aim);
    }
    if let Some(url) = found.canonical {
        kept.push_bare(LinkKind::Canonical, Aim::withheld(cx, &url));
    }
    Judged {
        links: links.judged(cx).await,
        edges: kept.into_links(),
        withheld,
    }
}

/// A number that belongs to a page, whoever finds it. Of the digest that is asked for anyway, and so computed once.
pub(super) fn chance_of(cx: &Context, url: &PageUrl) -> u16 {
    let digest = url.digest(&cx.frontier.settings().canon);
    u16::from_be_bytes([digest.as_bytes()[0], digest.as_bytes()[1]])
}

/// Longest URL of which a row tells that it was left out.
pub(super) const LONGEST_ROW: usize = 8_000;

/// What the row of a link says that is left out; none where it gets no row: those that look like traps have one, so that somebody may look why,
/// others where the operator wants them.
pub(super) fn row_of(
    cx: &Context,
    url: &PageUrl,
    place: Place,
    reason: Reason,
    rule: Option<String>,
) -> Option<String> {
    let length = url.as_str().len();
    let wanted = match reason {
        Reason::OutOfScope | Reason::Rule | Reason::TooDeep => cx.settings.keep_excluded,
        // Only counted: rows are what the budget is about.
        Reason::HostUrls | Reason::HostPages => false,
        _ => true,
    };
    if !wanted || length > LONGEST_ROW {
        return None;
    }
    Some(match (reason, rule) {
        (_, Some(rule)) => rule,
        (Reason::OutOfScope, None) => "no rule takes it in".to_owned(),
        (Reason::TooDeep, None) => format!("{} links from a seed", place.depth),
        (Reason::TooLong, None) => format!("{length} characters"),
        (Reason::TooManyParameters | Reason::RepeatedParameter | Reason::NestedEscapes, None) => {
            "the query looks as if it grew without end".to_owned()
        }
        (Reason::FarDate, None) => "a calendar that goes on and on".to_owned(),
        (_, None) => "the path looks endless".to_owned(),
    })
}

/// Links in a row that led outside the scope to this page; 0 if it lies inside. Redirects are no links. Where none may lead outside, nobody asks.
async fn outside(cx: &Context, task: &ClaimedTask, page: &PageUrl) -> u16 {
    let most = cx.rules.extra_hops();
    if most == 0 || task.is_seed || cx.rules.is_inside(page, task.depth) {
        return 0;
    }
    if most == 1 {
        return 1;
    }
    match cx.frontier.way(task.id, LONGEST_WAY).await {
        Ok(way) => hops_outside(&way, |url, depth| cx.rules.is_inside(url, depth)),
        Err(error) => {
            tracing::warn!(task.id = task.id.0, %error, "it is not known how far outside a page lies; none of its links outside is taken");
            most
        }
    }
}

/// Tasks that are looked back on to know how far outside a page lies: as many hops as may be allowed, with some redirects.
const LONGEST_WAY: u16 = 64;

/// Counts the links at the end of a way that led outside.
fn hops_outside(way: &[Step], is_inside: impl Fn(&PageUrl, u16) -> bool) -> u16 {
    let outside = way.iter().take_while(|step| {
        !step.is_seed && PageUrl::parse(&step.url).is_ok_and(|url| !is_inside(&url, step.depth))
    });
    let links = outside.filter(|step| step.hops == 0).count();
    u16::try_from(links).unwrap_or(u16::MAX).max(1)
}

/// A page outside the scope as it is known here was put there by another process, whose rules are to be learnt before its links are
/// judged: else links to its own host would be lost.
pub(super) async fn learn_scope(cx: &Context, page: &PageUrl) {
    if !cx.rules.contains(page)
        && let Err(error) = cx.rules.refresh(&cx.frontier).await
    {
        tracing::warn!(%error, "the rules of the scope could not be read");
    }
}

/// A redirect is a result: the hop is recorded, its target judged like a link (but not a link deeper) and enqueued.
async fn redirect(cx: &Context, task: &ClaimedTask, url: &PageUrl, exchange: &Exchange) -> Read {
    let page = PageRow::answered(exchange, None, false);
    let not_followed = |page, reason| Read {
        outcome: Outcome::Done {
            reason: Some(reason),
        },
        page,
        links: Vec::new(),
        edges: Vec::new(),
        widens: None,
    };
    let edge = |aim| {
        let mut kept = Kept::new(cx.settings.links);
        kept.push_bare(LinkKind::Redirect, aim);
        kept.into_links()
    };
    let Some(location) = exchange.redirect_target() else {
        let reason = match exchange.header("location") {
            // There are others, which say something else.
            Some(one) if !one.trim().is_empty() => "redirect_malformed",
            _ => "redirect_without_target",
        };
        return not_followed(page, reason);
    };
    let target = match base_of(url, exchange).join(&location) {
        Ok(target) => target,
        Err(CanonError::Scheme { .. }) => return not_followed(page, "redirect_scheme"),
        Err(_) => return not_followed(page, "redirect_malformed"),
    };
    let page = PageRow {
        redirect_to: Some(crate::pages::clean(target.as_str(), 4_000)),
        ..page
    };
    if target.digest(&cx.frontier.settings().canon) == url.digest(&cx.frontier.settings().canon) {
        // To itself, which the fetch would have followed: robots.txt forbids this spelling.
        return not_followed(page, "redirect_robots");
    }
    let hops = task.hops.saturating_add(1);
    if hops > cx.settings.max_hops {
        return Read {
            edges: edge(Aim::withheld(cx, &target)),
            ..not_followed(page, "redirect_too_many_hops")
        };
    }
    learn_scope(cx, url).await;
    // A seed may have a depth of its own.
    let is_root = (task.is_seed || task.depth == 0) && task.kind == TaskKind::Page;
    let widens = (is_root && scope::widens(url, &target)).then(|| cx.rules.widened(url, &target));
    let place = match task.kind {
        // What an asset redirects to is one.
        TaskKind::Asset => Place::TRANSCLUDED,
        _ => Place {
            depth: task.depth,
            // Not a link further outside, but outside.
            outside: outside(cx, task, url).await.max(1),
        },
    };
    if let Some((reason, _)) = cx.reject(&target, place)
        && !(widens.is_some() && reason == Reason::OutOfScope)
    {
        return Read {
            edges: edge(Aim::rejected(&target, reason)),
            ..not_followed(page, reason.of_redirect())
        };
    }
    if cx.blocked.covering(&target).is_some() {
        return not_followed(page, "redirect_blocked");
    }
    let mut links = Links::default();
    let target = Candidate {
        url: target,
        depth: task.depth,
        hops,
        kind: task.kind,
        priority: task.priority,
        label: task.label.clone(),
        excluded: None,
    };
    links.push(cx, target);
    let links = links.judged(cx).await;
    let is_forbidden = links.iter().any(|link| link.excluded.is_some());
    let reason = is_forbidden.then_some("redirect_robots");
    Read {
        outcome: Outcome::Done { reason },
        page,
        links,
        edges: edge(Aim::Candidate(0)),
        widens,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(url: &str, hops: u16, is_seed: bool) -> Step {
        Step {
            url: url.to_owned(),
            depth: 1,
            hops,
            is_seed,
        }
    }

    #[test]
    fn only_the_links_since_the_last_page_inside_lead_outside() {
        let inside = |url: &PageUrl, _| url.host().host() == "in.test";
        let count = |way: &[Step]| hops_outside(way, inside);
        let seed = step("http://in.test/", 0, true);
        let (a, b) = (
            step("http://a.test/", 0, false),
            step("http://b.test/", 0, false),
        );
        let redirected = step("https://a.test/", 1, false);
        assert_eq!(count(&[a.clone(), seed.clone()]), 1);
        assert_eq!(count(&[b.clone(), a.clone(), seed.clone()]), 2);
        // A redirect is no link, also where it is what leads outside.
        assert_eq!(count(&[redirected.clone(), a.clone(), seed.clone()]), 1);
        assert_eq!(count(&[redirected, seed.clone()]), 1);
        let back = step("http://in.test/back", 0, false);
        assert_eq!(count(&[a.clone(), back, b, a, seed]), 1);
        // A seed is where it was wanted.
        assert_eq!(
            count(&[
                step("http://c.test/", 0, false),
                step("http://d.test/", 0, true)
            ]),
            1
        );
    }
}
