//! How fast pages are read: their links found, resolved and made canonical, on one core.
//!
//! On what Debian's documentation packages put into `/usr/share/doc`, which is as varied as the web of the 2000s and all
//! there is without asking the network: `cargo bench --bench extract`, after `apt-get install openjdk-17-doc`. Pages are read
//! into memory first. Each line is the best of five rounds.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::collections::HashSet;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use pgcrawl::canon::{HrefCache, PageUrl};
use pgcrawl::extract::{Input, Wants, extract, simhash};

/// How many pages a round reads: every nth of all.
const PAGES: usize = 2_000;

const ROUNDS: usize = 5;

fn main() {
    let mut paths = Vec::new();
    find(Path::new("/usr/share/doc"), &mut HashSet::new(), &mut paths);
    let every = (paths.len() / PAGES).max(1);
    let pages: Vec<(PageUrl, Vec<u8>)> = paths
        .iter()
        .step_by(every)
        .filter_map(|path| {
            let url = PageUrl::parse(&format!("http://docs.test{}", path.display())).ok()?;
            Some((url, std::fs::read(path).ok()?))
        })
        .collect();
    let bytes: usize = pages.iter().map(|(_, body)| body.len()).sum();
    if pages.is_empty() {
        println!("skipped: there are no pages in /usr/share/doc; openjdk-17-doc has some");
        return;
    }
    println!(
        "{} pages, {:.1} KiB each on average",
        pages.len(),
        bytes as f64 / pages.len() as f64 / 1024.0
    );
    let assets = Wants {
        assets: true,
        ..Wants::default()
    };
    for (name, anchors, wants) in [
        ("links", false, Wants::default()),
        ("links, their texts", true, Wants::default()),
        ("links, assets", false, assets),
    ] {
        let (best, links) = (0..ROUNDS)
            .map(|_| round(&pages, anchors, wants))
            .min()
            .unwrap_or_default();
        let seconds = best.as_secs_f64();
        println!(
            "{name:20} {:8.0} pages/s {:7.1} MB/s {:5.1} links a page",
            pages.len() as f64 / seconds,
            bytes as f64 / seconds / 1e6,
            links as f64 / pages.len() as f64
        );
    }
    let texts: Vec<_> = pages
        .iter()
        .map(|(_, body)| String::from_utf8_lossy(body))
        .collect();
    let best = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        for text in &texts {
            black_box(simhash::of_html(text));
        }
        began.elapsed()
    });
    let seconds = best.min().unwrap_or_default().as_secs_f64();
    println!(
        "{:20} {:8.0} pages/s {:7.1} MB/s",
        "fingerprint",
        pages.len() as f64 / seconds,
        bytes as f64 / seconds / 1e6
    );
}

/// Reads all pages once, with the cache of hrefs that a thread of a crawl has.
fn round(pages: &[(PageUrl, Vec<u8>)], anchors: bool, wants: Wants) -> (Duration, usize) {
    let mut cache = HrefCache::new(8_192);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    let began = Instant::now();
    let links = pages.iter().map(|(url, body)| {
        let input = Input {
            canon: &pgcrawl::canon::BASE,
            url,
            headers: &headers,
            body,
            robots_token: "ourbot",
            anchors,
            wants,
        };
        extract(&input, &mut cache).links.len()
    });
    let links = links.sum();
    (began.elapsed(), links)
}

/// The HTML files below a folder, each once.
fn find(folder: &Path, seen: &mut HashSet<PathBuf>, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort_unstable();
    for path in entries {
        if !path.canonicalize().is_ok_and(|real| seen.insert(real)) {
            continue;
        }
        if path.is_dir() {
            find(&path, seen, found);
        } else if path.extension().is_some_and(|ending| ending == "html") {
            found.push(path);
        }
    }
}
