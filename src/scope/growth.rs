//! Signs in a query or a path that a site makes up its URLs as it goes: queries that grow, escapes of escapes, dates
//! that nobody has planned yet.

use std::ops::RangeInclusive;

use url::Url;

/// How deep the escapes of a URL are escaped again: `%25` followed by `25`, or `amp;` followed by `amp;`, each time more.
pub(super) fn nesting(url: &Url) -> usize {
    let text = url.as_str().as_bytes();
    let percent = longest_run(text, b"%25", b"25");
    let ampersand = longest_run(text, b"amp;", b"amp;");
    percent.max(ampersand)
}

/// The most repetitions of `again` behind a `first`, the first counted.
fn longest_run(text: &[u8], first: &[u8], again: &[u8]) -> usize {
    let mut longest = 0;
    let mut at = 0;
    while at < text.len() {
        if !text[at..].starts_with(first) {
            at += 1;
            continue;
        }
        let mut run = 1;
        at += first.len();
        while text[at..].starts_with(again) {
            run += 1;
            at += again.len();
        }
        longest = longest.max(run);
    }
    longest
}

/// Parameters of the query.
pub(super) fn parameters(url: &Url) -> usize {
    pairs(url).count()
}

/// How often the most frequent parameter stands in the query with the same value.
pub(super) fn repeated_parameter(url: &Url) -> usize {
    let mut sorted: Vec<&str> = pairs(url).collect();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a == b).map(<[&str]>::len);
    runs.max().unwrap_or(0)
}

fn pairs(url: &Url) -> impl Iterator<Item = &str> {
    let query = url.query().unwrap_or_default();
    query.split('&').filter(|pair| !pair.is_empty())
}

/// Whether a date in the URL is of one of these years: `/2032/05`, `2032-05`, `?date=20320501`, `?year=2032`, `?y=2032&m=5`. A number alone is no
/// date.
pub(super) fn has_date(url: &Url, years: &RangeInclusive<u16>) -> bool {
    let is_dated = |text: &str| {
        let tokens: Vec<&str> = tokens(text).collect();
        let mut pairs = tokens.windows(2);
        pairs.any(|pair| is_year(pair[0], years) && is_number(pair[1], 12))
    };
    let has_month = || pairs(url).any(is_month);
    is_dated(url.path())
        || pairs(url).any(|pair| {
            let Some((name, value)) = pair.split_once('=') else {
                return false;
            };
            let first = tokens(value).next().unwrap_or_default();
            is_dated(value)
                || match name_of(name) {
                    Some(Name::Year) => is_year(first, years) || is_date(first, years),
                    Some(Name::Date) => {
                        is_date(first, years) || (is_year(first, years) && has_month())
                    }
                    None => false,
                }
        })
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|token| !token.is_empty())
}

/// Four digits, one of these years.
fn is_year(token: &str, years: &RangeInclusive<u16>) -> bool {
    token.len() == 4
        && token.bytes().all(|byte| byte.is_ascii_digit())
        && token.parse().is_ok_and(|year| years.contains(&year))
}

/// A year with its month and perhaps the day in one number.
fn is_date(token: &str, years: &RangeInclusive<u16>) -> bool {
    let (Some(year), Some(month)) = (token.get(..4), token.get(4..6)) else {
        return false;
    };
    let day = &token[6..];
    is_year(year, years)
        && is_number(month, 12)
        && (day.is_empty() || (day.len() == 2 && is_number(day, 31)))
}

/// A month or a day: a number from 1 on, of two digits at most.
fn is_number(token: &str, most: u8) -> bool {
    token.len() <= 2
        && token
            .parse::<u8>()
            .is_ok_and(|number| (1..=most).contains(&number))
}

fn is_month(pair: &str) -> bool {
    const NAMES: [&str; 4] = ["m", "mo", "mon", "month"];
    let is_named = |name: &str| NAMES.iter().any(|month| name.eq_ignore_ascii_case(month));
    pair.split_once('=')
        .is_some_and(|(name, value)| is_named(name) && is_number(value, 12))
}

/// Under which names calendars have their dates.
enum Name {
    /// A number under it is a year.
    Year,
    /// It may be anything: a date only with its month.
    Date,
}

fn name_of(name: &str) -> Option<Name> {
    const YEARS: [&str; 2] = ["yr", "calendar"];
    const DATES: [&str; 5] = ["y", "day", "month", "week", "cal"];
    let name = name.to_ascii_lowercase();
    if YEARS.contains(&name.as_str()) || name.ends_with("year") {
        return Some(Name::Year);
    }
    (DATES.contains(&name.as_str()) || name.ends_with("date")).then_some(Name::Date)
}
