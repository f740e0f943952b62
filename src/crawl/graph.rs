//! Which links of a page the link graph keeps, and where they lead.

use std::{fmt, str::FromStr};

use super::context::Context;
use crate::{
    canon::PageUrl,
    extract::{Link, LinkKind},
    scope::Reason,
};

/// Longest URL that is kept of a link out of the crawl, in characters.
const LONGEST_URL: usize = 4_000;

/// Which links go to table `links`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkGraph {
    /// None.
    #[default]
    None,
    /// Those from task to task.
    Internal,
    /// Those that lead out of the crawl as well, with their URLs.
    All,
}

impl LinkGraph {
    /// Every choice.
    pub const ALL: [LinkGraph; 3] = [LinkGraph::None, LinkGraph::Internal, LinkGraph::All];

    /// The word for it in settings and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            LinkGraph::None => "none",
            LinkGraph::Internal => "internal",
            LinkGraph::All => "all",
        }
    }
}

impl fmt::Display for LinkGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LinkGraph {
    type Err = String;

    fn from_str(text: &str) -> Result<LinkGraph, String> {
        LinkGraph::ALL
            .into_iter()
            .find(|choice| choice.as_str() == text)
            .ok_or_else(|| format!("{text:?} is none of \"none\", \"internal\", \"all\""))
    }
}

/// A link of a page, as it was read.
#[derive(Clone, Debug)]
pub(super) struct PageLink {
    pub(super) aim: Aim,
    pub(super) kind: LinkKind,
    pub(super) nofollow: bool,
    pub(super) rel: Option<Box<str>>,
    pub(super) anchor: Option<Box<str>>,
}

impl PageLink {
    /// About how many bytes its texts take in memory: a URL once more for its row.
    pub(super) fn weight(&self) -> usize {
        let texts = [&self.rel, &self.anchor].into_iter().flatten();
        let url = match &self.aim {
            Aim::Candidate(_) => 0,
            Aim::Page(url) | Aim::Elsewhere(url) => 2 * url.as_str().len(),
        };
        url + texts.map(|text| text.len()).sum::<usize>()
    }
}

/// Where it leads, as far as can be told before the finish.
#[derive(Clone, Debug)]
pub(super) enum Aim {
    /// To one of the visit's candidates, by its place among them.
    Candidate(usize),
    /// To a page that is not followed from here: a task only if another link leads there.
    Page(PageUrl),
    /// Out of the scope.
    Elsewhere(PageUrl),
}

impl Aim {
    /// Of a link that is not followed since somebody asked for that.
    pub(super) fn withheld(cx: &Context, url: &PageUrl) -> Aim {
        match cx.rules.contains(url) {
            true => Aim::Page(url.clone()),
            false => Aim::Elsewhere(url.clone()),
        }
    }

    /// Of a link that is not followed since it was rejected.
    pub(super) fn rejected(url: &PageUrl, reason: Reason) -> Aim {
        match reason {
            Reason::OutOfScope => Aim::Elsewhere(url.clone()),
            _ => Aim::Page(url.clone()),
        }
    }
}

/// The links of one page that are kept.
#[derive(Debug)]
pub(super) struct Kept {
    graph: LinkGraph,
    links: Vec<PageLink>,
}

impl Kept {
    pub(super) fn new(graph: LinkGraph) -> Kept {
        Kept {
            graph,
            links: Vec::new(),
        }
    }

    /// Whether any are.
    pub(super) fn any(&self) -> bool {
        self.graph != LinkGraph::None
    }

    /// Takes a link of the page's text or header.
    pub(super) fn push(&mut self, link: Link, nofollow: bool, aim: Aim) {
        self.add(PageLink {
            aim,
            kind: link.kind,
            nofollow,
            rel: link.rel_text,
            anchor: link.anchor,
        });
    }

    /// Takes a link that is no text: a redirect, a canonical.
    pub(super) fn push_bare(&mut self, kind: LinkKind, aim: Aim) {
        self.add(PageLink {
            aim,
            kind,
            nofollow: false,
            rel: None,
            anchor: None,
        });
    }

    fn add(&mut self, link: PageLink) {
        let kept = match (self.graph, &link.aim) {
            (LinkGraph::None, _) => false,
            (LinkGraph::Internal, aim) => !matches!(aim, Aim::Elsewhere(_)),
            (LinkGraph::All, _) => true,
        };
        if kept {
            self.links.push(link);
        }
    }

    pub(super) fn into_links(self) -> Vec<PageLink> {
        self.links
    }
}

/// The URL of a link out of the crawl, as its row has it.
pub(super) fn url_text(url: &PageUrl) -> String {
    crate::pages::clean(url.as_str(), LONGEST_URL)
}
