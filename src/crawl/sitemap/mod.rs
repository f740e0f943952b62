//! Sitemaps: named by robots.txt, visited like pages, and read while they come.
//!
//! | part | what it does |
//! |---|---|
//! | here | which sitemaps become tasks, which answers are read as sitemaps |
//! | `reading` | entries become tasks in batches, while the body is still coming |
//! | `naming` | on which hosts a sitemap may name pages |
//! | `visited` | what a visit of one comes to |

mod naming;
mod reading;
mod visited;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use url::Url;

use super::{context::Context, visit::Candidate};
use crate::{
    canon::{HostKey, PageUrl},
    extract::sitemap::{Guess, MOST_BYTES, MOST_URLS, guess},
    fetch::{Piece, Sink},
    frontier::{ClaimedTask, Found, FrontierError, HostId, NewLink, TaskId, TaskKind},
    robots::Robots,
    scope::ScopeKind,
};

pub(super) use reading::{Reading, take};
pub(super) use visited::{read, redirect};

/// Which sitemaps are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SitemapUse {
    /// Those that robots.txt names, where whole hosts or sites are crawled; and seeds that are sitemaps.
    #[default]
    Auto,
    /// Those of each host of the crawl, whatever its scope.
    Include,
    /// The same, and links of pages are not followed.
    Only,
    /// None.
    Skip,
}

impl SitemapUse {
    /// All of them.
    pub const ALL: [SitemapUse; 4] = [
        SitemapUse::Auto,
        SitemapUse::Include,
        SitemapUse::Only,
        SitemapUse::Skip,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            SitemapUse::Auto => "auto",
            SitemapUse::Include => "include",
            SitemapUse::Only => "only",
            SitemapUse::Skip => "skip",
        }
    }
}

/// How sitemaps are found and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapSettings {
    /// Which are read. Default [`SitemapUse::Auto`].
    pub used: SitemapUse,
    /// Whether `/sitemap.xml` is asked for where robots.txt names none. Default no; with [`SitemapUse::Only`] it always is.
    pub guess: bool,
    /// Bytes of one sitemap, decoded. Default 50 MiB, as sitemaps.org allows.
    pub max_bytes: u64,
    /// URLs of one sitemap. Default 50,000, as sitemaps.org allows.
    pub max_urls: u32,
}

impl Default for SitemapSettings {
    fn default() -> SitemapSettings {
        SitemapSettings {
            used: SitemapUse::default(),
            guess: false,
            max_bytes: MOST_BYTES,
            max_urls: MOST_URLS,
        }
    }
}

/// Where the guess looks.
const CUSTOMARY: &str = "/sitemap.xml";

/// Sitemaps of one robots.txt.
const MOST_NAMED: usize = 100;

/// The root of a host whose sitemaps are read in this crawl.
fn wanted_root(cx: &Context, host: &HostKey) -> Option<Url> {
    let kind = cx.rules.kind();
    let wanted = match cx.settings.sitemaps.used {
        SitemapUse::Skip => false,
        SitemapUse::Auto => matches!(kind, ScopeKind::Host | ScopeKind::Site),
        SitemapUse::Include | SitemapUse::Only => true,
    };
    let root = host.robots_url().join("/").ok()?;
    // A host that only holds a sitemap of another is no host of the crawl. Of a folder's host nothing but the folder is in scope.
    let is_ours = kind == ScopeKind::Prefix
        || PageUrl::from_url(root.clone()).is_ok_and(|root| cx.rules.contains(&root));
    (wanted && is_ours).then_some(root)
}

/// The sitemaps that a robots.txt names, as far as they are looked at, with the lines.
fn named_by(robots: &Robots) -> impl Iterator<Item = (&str, PageUrl)> {
    let lines = robots.sitemaps().iter().take(MOST_NAMED);
    lines
        .filter_map(|line| Some((line.as_str(), PageUrl::parse(line).ok()?)))
        .filter(|(_, url)| url.as_str().len() <= super::read::LONGEST_ROW)
}

/// Makes tasks of the sitemaps that a robots.txt names, if they are read in this crawl. Before it is stored: whoever is cut off between
/// fetches it again. But `lines`, what it will say of sitemaps when it is stored, is written first: another process may read one at once.
pub(super) async fn name(
    cx: &Context,
    id: HostId,
    host: &HostKey,
    robots: &Robots,
    lines: &[String],
) -> Result<(), FrontierError> {
    let settings = &cx.settings.sitemaps;
    let Some(root) = wanted_root(cx, host) else {
        return Ok(());
    };
    let mut named: Vec<(String, PageUrl)> = named_by(robots)
        .map(|(line, url)| (crate::pages::clean(line, 4_000), url))
        .collect();
    let guesses = settings.guess || settings.used == SitemapUse::Only;
    if named.is_empty() && guesses {
        let guess = root.join(CUSTOMARY).ok();
        let guess = guess.and_then(|url| PageUrl::from_url(url).ok());
        named.extend(guess.map(|url| (String::new(), url)));
    }
    if named.is_empty() {
        return Ok(());
    }
    let keys: Vec<HostKey> = named.iter().map(|(_, url)| url.host().clone()).collect();
    let hosts = cx.frontier.hosts(&keys).await?;
    let (lines_found, found): (Vec<&str>, Vec<Found>) = named
        .iter()
        .filter_map(|(line, url)| {
            let link = Candidate {
                url: url.clone(),
                depth: 0,
                hops: 0,
                kind: TaskKind::Sitemap,
                priority: 0,
                label: None,
                excluded: None,
            };
            let found = Found {
                link: link_of(cx, *hosts.get(url.host())?, link),
                said: None,
            };
            Some((line.as_str(), found))
        })
        .unzip();
    if !lines.is_empty() {
        let named: Vec<(&str, &Found)> = lines_found.into_iter().zip(&found).collect();
        let again = cx.frontier.name_sitemaps(id, lines, &named).await?;
        if again > 0 {
            tracing::debug!(%host, sitemaps = again, "sitemaps to read again");
            cx.stir();
        }
    }
    readmit(cx, None, &found).await?;
    let fresh = cx
        .frontier
        .enqueue_found(cx.licence.worker(), None, &found)
        .await?;
    if fresh.is_some_and(|fresh| fresh > 0) {
        tracing::debug!(%host, sitemaps = found.len(), "sitemaps to read");
        cx.stir();
    }
    Ok(())
}

/// Whether a task that was found as a page is a sitemap that the robots.txt of its host names: a seed is claimed before that is known.
pub(super) fn is_named(cx: &Context, task: &ClaimedTask, url: &PageUrl, robots: &Robots) -> bool {
    task.kind == TaskKind::Page
        && task.depth == 0
        && !robots.sitemaps().is_empty()
        && wanted_root(cx, url.host()).is_some()
        && named_by(robots).any(|(_, named)| named.as_str() == url.as_str())
}

/// What was left out where it was found before belongs to the crawl where a sitemap names it.
async fn readmit(cx: &Context, via: Option<TaskId>, found: &[Found]) -> Result<(), FrontierError> {
    if !cx.settings.keep_excluded {
        return Ok(());
    }
    let links = found.iter().map(|one| (via, &one.link));
    let taken: Vec<(Option<TaskId>, &NewLink)> =
        links.filter(|(_, link)| link.excluded.is_none()).collect();
    cx.frontier.readmit(&taken).await
}

/// A candidate whose host has a row.
fn link_of(cx: &Context, host: HostId, link: Candidate) -> NewLink {
    NewLink {
        host,
        digest: link.url.digest(&cx.frontier.settings().canon),
        url: link.url.as_str().to_owned(),
        depth: link.depth,
        hops: link.hops,
        kind: link.kind,
        priority: link.priority,
        label: link.label,
        excluded: link.excluded,
    }
}

type MayTake = fn(&Url, Option<&str>) -> bool;
type Takes = fn(&[u8]) -> bool;

/// Where the body of a task goes, if it is a sitemap; none where none is read.
pub(super) fn sink(cx: &Context, task: &ClaimedTask) -> Option<(Sink, mpsc::Receiver<Piece>)> {
    let settings = &cx.settings.sitemaps;
    let is_list = settings.used == SitemapUse::Only && task.is_seed;
    let (may_take, takes): (MayTake, Takes) = match (task.kind, settings.used) {
        (TaskKind::Sitemap, _) => (|_, _| true, |head| guess(head) != Guess::Other),
        (TaskKind::Asset, _) | (TaskKind::Page, SitemapUse::Skip) => return None,
        // The operator's list of what to crawl, and nothing else.
        (TaskKind::Page, _) if is_list => (may_be_sitemap, |head| {
            guess(head) == Guess::Sitemap || (guess(head) == Guess::Unclear && is_urls(head))
        }),
        (TaskKind::Page, _) => (may_be_sitemap, |head| guess(head) == Guess::Sitemap),
    };
    Some(Sink::new(settings.max_bytes, may_take, takes))
}

/// Whether an answer's head is worth a look: XML and text, whatever has no type, and files that are called compressed XML or text.
fn may_be_sitemap(url: &Url, media_type: Option<&str>) -> bool {
    let path = url.path();
    match media_type {
        None | Some("text/plain" | "text/xml" | "application/xml") => true,
        Some("text/html") => false,
        Some(other) if other.ends_with("+xml") => other != "application/xhtml+xml",
        Some(_) => [".xml", ".xml.gz", ".txt.gz"]
            .iter()
            .any(|end| path.ends_with(end)),
    }
}

/// Whether a text begins with a URL.
fn is_urls(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let head = head.trim_ascii_start();
    [&b"http://"[..], b"https://"].iter().any(|scheme| {
        head.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}
