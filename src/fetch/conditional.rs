//! What a second visit says of the first: "send it only if it has changed" (RFC 9110 §13).

use http::HeaderMap;
use http::header::{HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use url::Url;

use super::retry_after::http_date;

/// The longest validator that is sent back. Entity-tags have some dozen bytes; what is longer fills requests.
const LONGEST: usize = 1_000;

/// The validators of a stored answer, and the URL that gave it.
///
/// A 304 says that the answer of *that* URL is what it was: they are shown to no other spelling of
/// the page. Where a visit comes to that URL more than once, as one that is sent back to it with a
/// cookie, each of these requests shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    url: String,
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
}

impl Validators {
    /// The validators of the answer that `url` gave, byte for byte as they came; weak ones and
    /// unquoted ones, too. None if neither can be sent.
    ///
    /// What holds bytes above 0x7F is left out, since a column of text does not tell how they were
    /// sent; so is a date that is none, which a server must ignore (RFC 9110 §13.1.3).
    pub fn stored(
        url: &str,
        etag: Option<&str>,
        last_modified: Option<&str>,
    ) -> Option<Validators> {
        let exact = |value: &str| {
            let sendable = value.is_ascii() && !value.is_empty() && value.len() <= LONGEST;
            sendable
                .then(|| HeaderValue::from_str(value).ok())
                .flatten()
        };
        let validators = Validators {
            url: url.to_owned(),
            etag: etag.and_then(exact),
            last_modified: last_modified
                .filter(|value| http_date(value).is_some())
                .and_then(exact),
        };
        let any = validators.etag.is_some() || validators.last_modified.is_some();
        any.then_some(validators)
    }

    /// The header fields for a request to `url`; none if the answer was another URL's. Servers that
    /// know entity-tags ignore the date (RFC 9110 §13.1.3).
    pub(super) fn headers(&self, url: &Url) -> Option<HeaderMap> {
        if url.as_str() != self.url {
            return None;
        }
        let mut headers = HeaderMap::new();
        if let Some(etag) = &self.etag {
            headers.insert(IF_NONE_MATCH, etag.clone());
        }
        if let Some(date) = &self.last_modified {
            headers.insert(IF_MODIFIED_SINCE, date.clone());
        }
        Some(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn sent(etag: Option<&str>, date: Option<&str>) -> Vec<(String, String)> {
        let url = Url::parse("http://a.test/").unwrap();
        let headers = Validators::stored(url.as_str(), etag, date)
            .and_then(|validators| validators.headers(&url))
            .unwrap_or_default();
        let pair = |(name, value): (&http::HeaderName, &HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        headers.iter().map(pair).collect()
    }

    #[test]
    fn validators_go_back_as_they_came() {
        for etag in ["\"a\"", "W/\"a\"", "unquoted", "\"\"", "\"a b\""] {
            assert_eq!(
                sent(Some(etag), None),
                [("if-none-match".to_owned(), etag.to_owned())]
            );
        }
        assert_eq!(
            sent(Some("\"a\""), Some(DATE)),
            [
                ("if-none-match".to_owned(), "\"a\"".to_owned()),
                ("if-modified-since".to_owned(), DATE.to_owned())
            ]
        );
    }

    #[test]
    fn what_may_not_be_what_was_sent_is_not_sent() {
        let long = "x".repeat(LONGEST + 1);
        for etag in ["\"caf\u{e9}\"", "", "\"a\u{7f}\"", long.as_str()] {
            assert_eq!(sent(Some(etag), None), [], "{etag}");
        }
        for date in ["yesterday", "Freitag, 3. J\u{e4}nner 2025", "0"] {
            assert_eq!(sent(None, Some(date)), [], "{date}");
        }
    }

    #[test]
    fn validators_are_shown_to_the_url_that_gave_them_only() {
        let validators = Validators::stored("http://a.test/?a=1&b=2", Some("\"a\""), None).unwrap();
        let of = |url| validators.headers(&Url::parse(url).unwrap());
        assert!(of("http://a.test/?a=1&b=2").is_some());
        assert!(of("http://a.test/?b=2&a=1").is_none());
    }
}
