//! Signs in a query or a path that a site makes up its URLs as it goes: queries that grow, escapes of escapes, dates
//! that nobody has planned yet.

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

/// The latest year of a date in the URL: `/2031/05`, `2031-05`, `?year=2031`. A number alone is no date.
pub(super) fn latest_year(url: &Url) -> Option<u16> {
    let path = tokens(url.path()).collect::<Vec<_>>();
    let in_path = path.windows(2).filter_map(|pair| year_of(pair[0], pair[1]));
    let in_query = pairs(url).filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let parts: Vec<&str> = tokens(value).collect();
        let dated = parts
            .windows(2)
            .filter_map(|pair| year_of(pair[0], pair[1]))
            .max();
        let named = is_of_dates(name)
            .then(|| parts.first().and_then(|part| year(part)))
            .flatten();
        dated.max(named)
    });
    in_path.chain(in_query).max()
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|token| !token.is_empty())
}

/// A year with its month behind it.
fn year_of(first: &str, second: &str) -> Option<u16> {
    let month = second.parse::<u8>().ok()?;
    (second.len() <= 2 && (1..=12).contains(&month))
        .then(|| year(first))
        .flatten()
}

/// Four digits that may be a year; also the first four of eight that may be a date.
fn year(token: &str) -> Option<u16> {
    let is_date = matches!(token.len(), 4 | 6 | 8) && token.bytes().all(|b| b.is_ascii_digit());
    let year = token.get(..4)?.parse().ok()?;
    (is_date && (1900..3000).contains(&year)).then_some(year)
}

/// Names under which calendars have their dates.
fn is_of_dates(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "year", "yr", "y", "date", "day", "month", "week", "cal", "calendar", "from",
    ];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || name.ends_with("year") || name.ends_with("date")
}
