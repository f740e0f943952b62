//! Asks the rules of a robots.txt, which are strangers' and may have been made to take long.
//!
//! What may take longer than half a millisecond is done on the blocking pool: other visits go on meanwhile.

use std::sync::Arc;

use url::Url;

use super::{context::Context, visit::Candidate};
use crate::{
    canon::PageUrl,
    robots::{Robots, Verdict},
};

/// The most [work](Robots::work) that is done in place: half a millisecond at worst.
const INLINE_WORK: usize = 80_000;

/// The most work on the links of one page, about half a second at worst. What is above it is judged one by one, when it is claimed.
const MOST_WORK: usize = 100_000_000;

/// What the rules of its host say of a URL.
pub(super) async fn verdict(cx: &Context, robots: &Arc<Robots>, url: &Url) -> Verdict {
    ask(cx, robots, url, Robots::judge).await
}

/// What they say of the use of its content.
pub(super) async fn usage(cx: &Context, robots: &Arc<Robots>, url: &Url) -> Option<String> {
    let said = |robots: &Robots, url: &Url| robots.content_usage(url).map(str::to_owned);
    ask(cx, robots, url, said).await
}

async fn ask<T: Send + 'static>(
    cx: &Context,
    robots: &Arc<Robots>,
    url: &Url,
    question: fn(&Robots, &Url) -> T,
) -> T {
    if robots.work(url.as_str().len()) <= INLINE_WORK {
        return question(robots, url);
    }
    let (robots, url) = (Arc::clone(robots), url.clone());
    cx.on_blocking_pool(move || question(&robots, &url)).await
}

/// Links of one page, to be judged together.
#[derive(Default)]
pub(super) struct Links {
    found: Vec<(Candidate, Option<Arc<Robots>>)>,
    work: usize,
}

impl Links {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Adds one that nothing more is asked about.
    pub(super) fn push_judged(&mut self, link: Candidate) {
        self.found.push((link, None));
    }

    /// Adds one that robots.txt is asked about, as far as it is known here: a host that was not asked yet is asked when it is claimed. So is
    /// every host, once the links before have used up the work.
    pub(super) fn push(&mut self, cx: &Context, link: Candidate) {
        let robots = cx.rules_of(&link.url);
        let robots = robots.filter(|robots| self.take(robots, &link.url));
        self.found.push((link, robots));
    }

    /// Takes the work of a URL out of what is left; false if it is more.
    fn take(&mut self, robots: &Robots, url: &PageUrl) -> bool {
        let work = self.work.saturating_add(robots.work(url.as_str().len()));
        let fits = work <= MOST_WORK;
        if fits {
            self.work = work;
        }
        fits
    }

    /// All of them, those excluded that robots.txt forbids.
    pub(super) async fn judged(self, cx: &Context) -> Vec<Candidate> {
        if self.work <= INLINE_WORK {
            return self.judge();
        }
        cx.on_blocking_pool(move || self.judge()).await
    }

    fn judge(self) -> Vec<Candidate> {
        let judged = self.found.into_iter().map(|(mut link, robots)| {
            if let Some(Verdict::Disallowed { rule }) =
                robots.map(|robots| robots.judge(link.url.as_url()))
            {
                link.excluded = Some(("robots", rule));
            }
            link
        });
        judged.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_of_a_file_count_towards_the_work_of_a_page_and_what_fits_it_goes_elsewhere() {
        let url = PageUrl::parse("http://h.test/a").unwrap();
        let long = Robots::parse(
            format!("User-agent: *\nDisallow: /{}zz\n", "*a".repeat(240_000)).as_bytes(),
            "ourbot",
        );
        let mut links = Links::default();
        let judged = (0..5_000).filter(|_| links.take(&long, &url)).count();
        assert!((200..=210).contains(&judged), "{judged} of 5000 links");
        assert!(links.work > INLINE_WORK);
        let short = Robots::parse(b"User-agent: *\nDisallow: /*a\n", "ourbot");
        let mut links = Links::default();
        assert!((0..200).all(|_| links.take(&short, &url)));
        assert!(links.work <= INLINE_WORK);
    }
}
