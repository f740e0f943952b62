//! A plain crawl with the `spider` crate: plain HTTP, robots.txt obeyed, no delay, pages dropped as they come.
//!
//! `peers-spider URL CONCURRENCY [subdomains]` is one Website, with its subdomains if asked;
//! `peers-spider multi:HOSTS:PORT CONCURRENCY` is one Website a host h0001.site.test, …, all at once, with an equal share of the
//! concurrency each.

use std::time::Duration;

use spider::website::Website;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// spider keeps so many pages for subscribers for as long as it crawls; more costs memory and time.
const KEPT_FOR_SUBSCRIBERS: usize = 256;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [site, concurrency, how @ ..] = arguments.as_slice() else {
        eprintln!("usage: peers-spider URL|multi:HOSTS:PORT CONCURRENCY [subdomains]");
        std::process::exit(2);
    };
    let concurrency: usize = concurrency.parse().expect("CONCURRENCY is a number");
    let Some(many) = site.strip_prefix("multi:") else {
        let subdomains = how.iter().any(|word| word == "subdomains");
        crawl(site, concurrency, KEPT_FOR_SUBSCRIBERS, subdomains).await;
        return;
    };
    let (hosts, port) = many.split_once(':').expect("multi:HOSTS:PORT");
    let hosts: usize = hosts.parse().expect("HOSTS is a number");
    let (share, kept) = (concurrency / hosts, KEPT_FOR_SUBSCRIBERS / hosts);
    let mut crawls = JoinSet::new();
    for host in 1..=hosts {
        let url = format!("http://h{host:04}.site.test:{port}/");
        crawls.spawn(async move { crawl(&url, share.max(1), kept.max(1), false).await });
    }
    crawls.join_all().await;
}

async fn crawl(url: &str, concurrency: usize, kept: usize, subdomains: bool) {
    let mut website = Website::new(url);
    website
        .with_respect_robots_txt(true)
        .with_ignore_sitemap(true)
        .with_delay(0)
        .with_depth(0)
        .with_subdomains(subdomains)
        .with_concurrency_limit(Some(concurrency))
        .with_request_timeout(Some(Duration::from_secs(30)))
        .with_user_agent(Some("peers-spider/1.0"));
    let mut website = website.build().expect("a website of a good URL");
    let mut pages = website.subscribe(kept);
    let reader =
        tokio::spawn(async move { while !matches!(pages.recv().await, Err(RecvError::Closed)) {} });
    website.crawl().await;
    website.unsubscribe();
    reader.abort();
}
