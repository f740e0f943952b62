//! What a page asks of robots: `X-Robots-Tag` and `<meta name=robots>`, general or addressed to one agent.
//!
//! The rule that search engines publish: of all directives that apply, general or ours, the restrictive ones add up.

use http::HeaderMap;

/// Directives whose name is followed by a colon, which must not be taken for an agent.
const WITH_VALUE: [&str; 4] = [
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// The directives of all `X-Robots-Tag` fields that apply to us.
///
/// A name and a colon address what follows in the field to that agent: `otherbot: noindex, nofollow`.
pub(super) fn of_headers(headers: &HeaderMap, token: &str) -> Vec<String> {
    let mut found = Vec::new();
    for field in headers.get_all("x-robots-tag") {
        let field = String::from_utf8_lossy(field.as_bytes());
        let (mut applies, mut is_date) = (true, false);
        for item in field
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            // A date may have a comma, and a time its colons: `unavailable_after: Wed, 2025-06-25T15:00:00Z`.
            if is_date && item.starts_with(|c: char| c.is_ascii_digit()) {
                found.extend(applies.then(|| item.to_owned()));
                continue;
            }
            let directive = match item.split_once(':') {
                Some((agent, directive)) if is_agent(agent.trim()) => {
                    applies = agent.trim().eq_ignore_ascii_case(token) || agent.trim() == "*";
                    directive.trim()
                }
                _ => item,
            };
            is_date = directive
                .get(..17)
                .is_some_and(|name| name.eq_ignore_ascii_case("unavailable_after"));
            if applies && !directive.is_empty() {
                found.push(directive.to_owned());
            }
        }
    }
    found
}

fn is_agent(name: &str) -> bool {
    let is_token = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_*./".contains(&byte));
    !name.is_empty()
        && is_token
        && !WITH_VALUE
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a `<meta>` of this name speaks to us.
pub(super) fn is_addressed(name: &str, token: &str) -> bool {
    let name = name.trim();
    name.eq_ignore_ascii_case("robots") || (!token.is_empty() && name.eq_ignore_ascii_case(token))
}

/// Whether one of these lists of directives says `nofollow`, or `none`, which includes it.
pub(super) fn forbid_following(directives: &[String]) -> bool {
    words(directives)
        .any(|word| word.eq_ignore_ascii_case("nofollow") || word.eq_ignore_ascii_case("none"))
}

/// The directives that are words by themselves, whatever separates them. One with a value is left out with it: the
/// `none` of `max-image-preview: none` is about pictures.
pub(super) fn words(directives: &[String]) -> impl Iterator<Item = &str> {
    directives.iter().flat_map(|list| {
        let mut of_value = false;
        list.split([',', ';'])
            .flat_map(|item| item.split_whitespace().chain(std::iter::once("")))
            .filter(move |word| {
                let is_value = std::mem::replace(&mut of_value, word.ends_with(':'));
                !is_value && !word.is_empty() && !word.contains(':')
            })
    })
}
