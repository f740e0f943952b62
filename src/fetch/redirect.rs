//! Redirects that lead a page to itself: another spelling of its URL, or a cookie to be shown.
//!
//! A redirect elsewhere is a result, and its target a task of its own. A target with its source's
//! identity cannot be one, since that task exists: it is this very visit. So such hops are walked
//! here, with the cookies set on the way, and only those.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::{HeaderValue, SET_COOKIE};
use url::Url;

use crate::canon::PageUrl;
use crate::exchange;

/// The most hops inside one visit.
pub(super) const MOST_HOPS: u8 = 5;

/// The most cookies of one visit and the longest of them (RFC 6265 §6.1 asks for 50 and 4,096).
const MOST_COOKIES: usize = 50;
const LONGEST_COOKIE: usize = 4096;

/// The URL of the next hop, if the answer redirects `page` to itself.
pub(super) fn to_itself(
    page: &PageUrl,
    at: &PageUrl,
    status: u16,
    headers: &HeaderMap,
) -> Option<PageUrl> {
    if !exchange::is_redirect(status) {
        return None;
    }
    let target = at.join(&exchange::location(headers)?).ok()?;
    (target.digest() == page.digest()).then_some(target)
}

/// The cookies of one visit, by name. All its hops are on one host, so that a cookie's domain has
/// nothing to say; path and expiry matter little within seconds, but a deletion does.
#[derive(Debug, Default)]
pub(super) struct Jar {
    cookies: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Jar {
    /// Takes the cookies of an answer.
    pub(super) fn take(&mut self, headers: &HeaderMap) {
        for value in headers.get_all(SET_COOKIE) {
            let mut parts = value.as_bytes().split(|&byte| byte == b';');
            let pair = parts.next().unwrap_or_default();
            let Some(equals) = pair.iter().position(|&byte| byte == b'=') else {
                continue;
            };
            let name = pair[..equals].trim_ascii();
            let content = pair[equals + 1..].trim_ascii();
            if name.is_empty() || pair.len() > LONGEST_COOKIE {
                continue;
            }
            if parts.any(is_deletion) {
                self.cookies.remove(name);
            } else if self.cookies.len() < MOST_COOKIES || self.cookies.contains_key(name) {
                self.cookies.insert(name.to_vec(), content.to_vec());
            }
        }
    }

    /// The `Cookie` header, none for an empty jar.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let pairs: Vec<Vec<u8>> = self
            .cookies
            .iter()
            .map(|(name, content)| [name, &b"="[..], content].concat())
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let mut header = HeaderValue::from_bytes(&pairs.join(&b"; "[..])).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

/// `Max-Age` of zero or less (RFC 6265 §5.2.2).
fn is_deletion(attribute: &[u8]) -> bool {
    let attribute = String::from_utf8_lossy(attribute).to_ascii_lowercase();
    attribute.split_once('=').is_some_and(|(name, value)| {
        name.trim() == "max-age"
            && value
                .trim()
                .parse::<i64>()
                .is_ok_and(|seconds| seconds <= 0)
    })
}

/// The requests of one visit so far. The same URL asked for with the same cookies will answer the
/// same, so there is no need to walk all the hops of a circle.
#[derive(Debug)]
pub(super) struct Trail {
    seen: Vec<(Url, Option<HeaderValue>)>,
}

impl Trail {
    /// A visit that begins with this URL, and without a cookie.
    pub(super) fn new(url: &Url) -> Trail {
        Trail {
            seen: vec![(url.clone(), None)],
        }
    }

    /// Whether this request was made before; remembers it.
    pub(super) fn closes(&mut self, url: &Url, cookie: Option<HeaderValue>) -> bool {
        let step = (url.clone(), cookie);
        let closes = self.seen.contains(&step);
        self.seen.push(step);
        closes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(lines: &[&[u8]]) -> Option<String> {
        let mut jar = Jar::default();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(SET_COOKIE, HeaderValue::from_bytes(line).unwrap());
        }
        jar.take(&headers);
        jar.header()
            .map(|header| exchange::text(&header).into_owned())
    }

    #[test]
    fn cookies_are_shown_back_by_name_and_the_last_of_a_name_wins() {
        let lines: [&[u8]; 4] = [b"b=2; Path=/", b" a = 1 ;Secure", b"b=3", b"nameless"];
        assert_eq!(jar(&lines).as_deref(), Some("a=1; b=3"));
    }

    #[test]
    fn a_deleted_cookie_is_gone_and_odd_bytes_do_no_harm() {
        assert_eq!(jar(&[b"a=1", b"a=; Max-Age=0"]), None);
        assert_eq!(jar(&[b"a=\xE4\xFF"]).as_deref(), Some("a=äÿ"));
        assert_eq!(jar(&[b"=x", b"", b";"]), None);
    }

    #[test]
    fn a_jar_is_bounded() {
        let lines: Vec<String> = (0..99).map(|n| format!("c{n}=1")).collect();
        let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        assert_eq!(jar(&lines).unwrap().split("; ").count(), MOST_COOKIES);
        assert_eq!(
            jar(&[format!("a={}", "x".repeat(LONGEST_COOKIE)).as_bytes()]),
            None
        );
    }
}
