//! Shapes of URLs, and whether pages of one shape still bring something new.
//!
//! The shape of a URL is what stays when its numbers, ids and values are blanked: `/cal/2031/05/07?y=3` has the shape
//! `/cal/#/#/#?y=#`. A calendar, a cart or a session id makes URLs without end and all of one shape; so do products.
//! What tells them apart is what the pages say: of the last 200 pages of a shape, a trap has a handful of different ones.

use std::collections::HashMap;

use url::Url;

/// Pages of a shape that are looked back on.
pub const WINDOW: usize = 200;

/// Characters of a shape that are kept; what is longer is the same shape from there on.
const LONGEST: usize = 300;

/// From when on a shape is judged, and how few different pages make it a trap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShapeLimits {
    /// Pages of a shape before it is judged, at most [`WINDOW`]; 0: none ever is. 100: fewer say little.
    pub pages: usize,
    /// The part of different pages among them, 0 to 1, at or below which the shape brings nothing new; 0.1.
    pub share: f64,
}

impl Default for ShapeLimits {
    fn default() -> ShapeLimits {
        ShapeLimits {
            pages: 100,
            share: 0.1,
        }
    }
}

/// What the last pages of a shape say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There are too few pages yet.
    TooFew,
    /// They bring something new.
    Fresh,
    /// They do not.
    Stale,
}

/// The shape of a URL: its path and query with what varies blanked. None where nothing was blanked: it is the only URL of its shape.
pub fn of(url: &Url) -> Option<String> {
    let mut shape = String::with_capacity(url.path().len());
    let mut is_blanked = false;
    for segment in url.path().split('/').skip(1) {
        shape.push('/');
        is_blanked |= blank(segment, &mut shape);
    }
    let mut names: Vec<&str> = url
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
        .collect();
    names.sort_unstable();
    names.dedup();
    for (n, name) in names.into_iter().enumerate() {
        shape.push(if n == 0 { '?' } else { '&' });
        blank(name, &mut shape);
        shape.push_str("=#");
        is_blanked = true;
    }
    if let Some((end, _)) = shape.char_indices().nth(LONGEST) {
        shape.truncate(end);
    }
    is_blanked.then_some(shape)
}

/// Writes a segment without its numbers; one that looks like an id is blank as a whole. Answers whether something was blanked.
fn blank(segment: &str, shape: &mut String) -> bool {
    if is_id(segment) {
        shape.push('#');
        return true;
    }
    let mut is_blanked = false;
    let mut in_number = false;
    for c in segment.chars() {
        let is_digit = c.is_ascii_digit();
        if is_digit && !in_number {
            shape.push('#');
        }
        if !is_digit {
            shape.push(c);
        }
        is_blanked |= is_digit;
        in_number = is_digit;
    }
    is_blanked
}

/// Shortest id: words and versions like `html5` and `v2-3-1` are shorter.
const ID: usize = 10;

/// Whether a segment looks drawn by lot: long, of one piece, with letters and digits that take turns. `f3a9c01be7d2` does, `iphone-15-pro` does
/// not. UUIDs have their dashes.
fn is_id(segment: &str) -> bool {
    let chars = || segment.chars().filter(|c| *c != '-');
    let hex = chars().all(|c| c.is_ascii_hexdigit());
    let whole = !segment.contains('-') || hex;
    let turns = segment
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count();
    segment.len() >= ID
        && whole
        && chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && segment.bytes().any(|b| b.is_ascii_digit())
        && segment.bytes().any(|b| b.is_ascii_alphabetic())
        && turns >= 3
}

/// Judges a shape by the digests of its last pages.
pub fn judge(digests: &[i32], limits: &ShapeLimits) -> Verdict {
    let needed = limits.pages.min(WINDOW);
    if needed == 0 || digests.len() < needed {
        return Verdict::TooFew;
    }
    #[allow(clippy::cast_precision_loss, reason = "at most 200")]
    let share = distinct(digests).len() as f64 / digests.len() as f64;
    if share <= limits.share {
        Verdict::Stale
    } else {
        Verdict::Fresh
    }
}

/// The different digests among them, each with how often it occurs, the most frequent first.
pub fn distinct(digests: &[i32]) -> Vec<(i32, usize)> {
    let mut counts: HashMap<i32, usize> = HashMap::new();
    for digest in digests {
        *counts.entry(*digest).or_default() += 1;
    }
    let mut counts: Vec<(i32, usize)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|(digest, n)| (std::cmp::Reverse(*n), *digest));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Option<String> {
        of(&Url::parse(&format!("http://h.test{text}")).unwrap())
    }

    #[test]
    fn what_varies_is_blank_in_a_shape_and_what_names_is_not() {
        for (url, expected) in [
            ("/cal/2031/05/07?y=3", Some("/cal/#/#/#?y=#")),
            ("/p/iphone-15-pro", Some("/p/iphone-#-pro")),
            ("/s/f3a9c01be7d2/page", Some("/s/#/page")),
            ("/s/6f1c2f7e-9b1a-4b8e-8f6e-0d8f5d1f2a3b", Some("/s/#")),
            ("/list?b=2&a=1&a=2", Some("/list?a=#&b=#")),
            ("/html5", Some("/html#")),
            ("/", None),
            ("/about/us", None),
            ("/internationalisation", None),
        ] {
            assert_eq!(shape(url).as_deref(), expected, "{url}");
        }
        let long = format!("/1{}", "/ab".repeat(400));
        assert_eq!(shape(&long).unwrap().chars().count(), LONGEST);
    }

    /// Digests of so many pages, of which so many share a few and the others are all different.
    fn pages(all: i32, alike: i32, digests: i32) -> Vec<i32> {
        (0..all)
            .map(|n| if n < alike { n % digests } else { 1_000 + n })
            .collect()
    }

    #[test]
    fn two_hundred_calendar_pages_of_which_190_share_three_digests_are_stale() {
        let limits = ShapeLimits::default();
        assert_eq!(judge(&pages(200, 190, 3), &limits), Verdict::Stale);
    }

    #[test]
    fn two_hundred_product_pages_with_195_digests_are_fresh() {
        let limits = ShapeLimits::default();
        let products = pages(200, 6, 1);
        assert_eq!(distinct(&products).len(), 195);
        assert_eq!(judge(&products, &limits), Verdict::Fresh);
    }

    #[test]
    fn twenty_pages_are_too_few_to_judge_and_the_limits_are_where_they_say() {
        let limits = ShapeLimits::default();
        assert_eq!(judge(&pages(20, 20, 1), &limits), Verdict::TooFew);
        assert_eq!(judge(&pages(99, 99, 1), &limits), Verdict::TooFew);
        assert_eq!(judge(&pages(100, 100, 1), &limits), Verdict::Stale);
        assert_eq!(judge(&pages(100, 100, 10), &limits), Verdict::Stale);
        assert_eq!(judge(&pages(100, 100, 11), &limits), Verdict::Fresh);
        let none = ShapeLimits { pages: 0, ..limits };
        assert_eq!(judge(&pages(200, 200, 1), &none), Verdict::TooFew);
    }

    #[test]
    fn the_most_frequent_digest_comes_first_in_the_evidence() {
        assert_eq!(distinct(&[5, 7, 7, 5, 7, 1]), [(7, 3), (5, 2), (1, 1)]);
    }
}
