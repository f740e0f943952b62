//! What the pages of the web say and link to: a function of seed, host and page alone.

use std::fmt::{self, Write as _};

/// Of a page, about.
const PAGE_BYTES: usize = 20_000;

/// Text to cut paragraphs from.
const POOL_BYTES: usize = 1 << 18;

const WORDS: [&str; 24] = [
    "crawl",
    "server",
    "the",
    "of",
    "and",
    "request",
    "a",
    "link",
    "frontier",
    "host",
    "to",
    "in",
    "queue",
    "robots",
    "page",
    "is",
    "polite",
    "delay",
    "<b>bold</b>",
    "archive",
    "&amp;",
    "index",
    "<em>note</em>",
    "<code>x=1</code>",
];

/// What a path means.
#[derive(Clone, Copy)]
pub enum Asked {
    Robots,
    Root,
    Page(u32),
    Private,
    Nothing,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Robots => f.write_str("/robots.txt"),
            Asked::Root => f.write_str("/"),
            Asked::Page(n) => write!(f, "/p/{n}"),
            Asked::Private => f.write_str("/private/"),
            Asked::Nothing => f.write_str("?"),
        }
    }
}

pub struct Web {
    hosts: u16,
    pages: u32,
    links: u32,
    cross: u32,
    port: u16,
    seed: u64,
    pool: String,
}

/// Sebastiano Vigna's SplitMix64.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

impl Web {
    pub fn new(hosts: u16, pages: u32, links: u32, cross: u32, port: u16, seed: u64) -> Web {
        let mut pool = String::with_capacity(POOL_BYTES + 32);
        let mut chance = seed;
        while pool.len() < POOL_BYTES {
            chance = mix(chance);
            pool.push_str(WORDS[chance as usize % WORDS.len()]);
            pool.push(' ');
        }
        Web {
            hosts,
            pages,
            links,
            cross,
            port,
            seed,
            pool,
        }
    }

    /// The number of a host, from 1.
    pub fn host(&self, name: &str) -> Option<u16> {
        let number = name
            .strip_prefix('h')?
            .split_once(".site.test")?
            .0
            .parse()
            .ok()?;
        (1..=self.hosts).contains(&number).then_some(number)
    }

    pub fn asked(&self, path: &str) -> Asked {
        match path {
            "/robots.txt" => Asked::Robots,
            "/" => Asked::Root,
            _ if path.starts_with("/private/") => Asked::Private,
            _ => match path.strip_prefix("/p/").and_then(|n| n.parse().ok()) {
                Some(n) if n < self.pages => Asked::Page(n),
                _ => Asked::Nothing,
            },
        }
    }

    pub fn page(&self, host: u16, page: u32) -> String {
        let mut chance = mix(self.seed ^ (u64::from(host) << 32) ^ u64::from(page));
        let mut next = |below: u32| {
            chance = mix(chance);
            (chance % u64::from(below.max(1))) as u32
        };
        let mut html = String::with_capacity(PAGE_BYTES + 1_024);
        let _ = write!(
            html,
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>Page {page} of host {host}</title></head>\n<body><h1>Page {page} of host {host}</h1>\n<p><a href=\"/private/{page}\">private</a>\n"
        );
        for n in 1..self.links {
            // Some text between two links.
            let part = PAGE_BYTES / self.links as usize - 35;
            let from = next((POOL_BYTES - part) as u32) as usize;
            let from = self.pool[from..].find(' ').map_or(0, |space| from + space);
            let text = self.pool.get(from..from + part).unwrap_or_default();
            let text = text.rfind(' ').map_or(text, |space| &text[..space]);
            html.push_str("</p>\n<p>");
            html.push_str(text);
            html.push(' ');
            if n <= self.cross {
                self.cross_link(&mut html, host, page, n, &mut next);
            } else {
                self.own_link(&mut html, page, n - self.cross, &mut next);
            }
        }
        html.push_str("</p></body></html>\n");
        html
    }

    fn cross_link(
        &self,
        html: &mut String,
        host: u16,
        page: u32,
        n: u32,
        next: &mut impl FnMut(u32) -> u32,
    ) {
        let below = (u32::from(host) - 1) * self.cross + n + 1;
        let (to, at) = if page == 0 && below <= u32::from(self.hosts) {
            (below, 0)
        } else {
            (next(u32::from(self.hosts)) + 1, next(self.pages))
        };
        let _ = write!(
            html,
            "<a href=\"http://h{to:04}.site.test:{}{}\">host {to}</a>",
            self.port,
            path(at)
        );
    }

    fn own_link(&self, html: &mut String, page: u32, n: u32, next: &mut impl FnMut(u32) -> u32) {
        let below = 2 * page + n;
        let to = if n <= 2 && below < self.pages {
            below
        } else {
            next(self.pages)
        };
        let _ = match n % 4 {
            0 => write!(html, "<a href=\"{}#part{n}\">page {to}</a>", path(to)),
            1 if page > 0 && to > 0 => write!(html, "<a href=\"{to}\">page {to}</a>"),
            2 if page > 0 && to > 0 => write!(
                html,
                "<a class=x href='../p/./{to}' title=\"page\">page {to}</a>"
            ),
            _ => write!(html, "<a href={}>page {to}</a>", path(to)),
        };
    }
}

/// The path by which pages link to a page.
fn path(page: u32) -> String {
    match page {
        0 => "/".to_owned(),
        n => format!("/p/{n}"),
    }
}
