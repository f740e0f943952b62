//! One HTTP exchange as data: what was asked, what came back, how long it took.
//!
//! `fetch` makes exchanges, `extract` and `pages` read them; nothing here touches the network.
//! Header values are kept as the bytes they are (RFC 9110 §5.5 allows any above 0x7F), so the
//! readers below never fail on them: they decode, and say how.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use url::Url;

use crate::clock::Boottime;

/// One answered request.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The URL as asked for, without a fragment.
    pub url: Url,
    /// The URL that gave this answer: another spelling of `url` after `hops` redirects to its own
    /// identity, else equal to it.
    pub final_url: Url,
    /// Redirects followed inside this exchange, 0 to 5.
    pub hops: u8,
    /// The HTTP status code, 200 to 999. 304 only where a condition was sent: the body is that of the last visit.
    pub status: u16,
    /// The version of HTTP that it came in.
    pub version: http::Version,
    /// All response headers, values as bytes.
    pub headers: HeaderMap,
    /// The body after content coding, cut at the fetcher's cap. As it was sent where `coding` says so.
    pub body: Bytes,
    /// The body was handed on as it came, and is not in `body`.
    pub streamed: bool,
    /// Payload bytes received, before content decoding and without the framing of the transfer.
    pub wire_bytes: u64,
    /// Why `body` is not all that the server has, if so.
    pub truncated: Option<Truncated>,
    /// What became of the `Content-Encoding`.
    pub coding: Coding,
    /// The address that answered; none behind a proxy.
    pub ip: Option<IpAddr>,
    /// The label of the proxy in use, never its credentials.
    pub proxy: Option<Arc<str>>,
    /// From the start of the first request to the end of the last body.
    pub elapsed: Duration,
    /// When the last body ended: the delay of a polite host counts from here.
    pub ended: Boottime,
}

/// Why a body is shorter than what the server has. The words are those of WARC 1.1 §5.13 where it
/// has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Truncated {
    /// Cut at the cap on its length.
    Length,
    /// It was still coming when the time for the whole fetch was over.
    Time,
    /// Its compressed stream ended early.
    Disconnect,
    /// It is a part of what the server has (206), though none was asked for.
    Partial,
    /// Not read at all: its media type is not wanted.
    Unwanted,
}

impl Truncated {
    /// The word stored in `pages.truncated`.
    pub fn as_str(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
            Truncated::Partial => "partial",
            Truncated::Unwanted => "unwanted",
        }
    }
}

/// What became of a body's `Content-Encoding` (RFC 9110 §8.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Coding {
    /// There was none: the body is as it was sent.
    #[default]
    Identity,
    /// Every coding was undone.
    Decoded,
    /// A coding that we do not know: the body is as it was sent, still coded.
    Unsupported,
    /// The header names a coding that the bytes are not in: the body is as it was sent.
    Mismatch,
}

impl Coding {
    /// The word for logs and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Decoded => "decoded",
            Coding::Unsupported => "unsupported",
            Coding::Mismatch => "mismatch",
        }
    }
}

impl Exchange {
    /// The version of HTTP as a number: `1.1`, `2`.
    pub fn http_version(&self) -> &'static str {
        match self.version {
            http::Version::HTTP_09 => "0.9",
            http::Version::HTTP_10 => "1.0",
            http::Version::HTTP_2 => "2",
            http::Version::HTTP_3 => "3",
            _ => "1.1",
        }
    }

    /// Whether the status is one whose `Location` names where the resource is now: 301, 302, 303,
    /// 307 or 308 (RFC 9110 §15.4; 300 and 304 are not).
    pub fn is_redirect(&self) -> bool {
        is_redirect(self.status)
    }

    /// The `Location` of a redirect, not resolved; none if the status is no redirect or the header
    /// is missing or empty. Bytes that are not UTF-8 are percent-encoded, as browsers do.
    pub fn redirect_target(&self) -> Option<String> {
        if self.is_redirect() {
            location(&self.headers)
        } else {
            None
        }
    }

    /// The `Content-Type` as sent, parameters and all; none if missing or empty.
    pub fn content_type(&self) -> Option<String> {
        let text = self.header(CONTENT_TYPE.as_str())?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The first value of a header, decoded by [`text`]. The name is compared without case.
    pub fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        self.headers.get(name).map(text)
    }
}

/// Whether a status is a redirect that [`location`] is asked for.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// A `Location` as a URL reference: UTF-8 as it is, other bytes above 0x7F percent-encoded. None if it is missing or empty, or if there
/// are several that differ: browsers believe none of those either, since one may have been smuggled in.
pub fn location(headers: &HeaderMap) -> Option<String> {
    let mut all = headers.get_all(LOCATION).iter();
    let bytes = all.next()?.as_bytes().trim_ascii();
    if bytes.is_empty() || all.any(|other| other.as_bytes().trim_ascii() != bytes) {
        return None;
    }
    Some(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().fold(String::new(), |mut out, &byte| {
            if byte.is_ascii() {
                out.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
            out
        }),
    })
}

/// A header value as text: UTF-8 if it is, else ISO-8859-1, which each byte string is.
pub fn text(value: &HeaderValue) -> Cow<'_, str> {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.as_bytes().iter().copied().map(char::from).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value).unwrap());
        headers
    }

    #[test]
    fn a_header_value_is_read_as_utf8_and_else_as_latin_1() {
        let value = |bytes: &[u8]| text(&HeaderValue::from_bytes(bytes).unwrap()).into_owned();
        assert_eq!(value("Jänner".as_bytes()), "Jänner");
        assert_eq!(value(b"J\xE4nner"), "Jänner");
    }

    #[test]
    fn a_location_that_is_not_utf8_is_percent_encoded() {
        assert_eq!(
            location(&headers("location", b" /caf\xE9?a=1 ")).unwrap(),
            "/caf%E9?a=1"
        );
        assert_eq!(
            location(&headers("location", "/café".as_bytes())).unwrap(),
            "/café"
        );
        assert_eq!(location(&headers("location", b"  ")), None);
        assert_eq!(location(&HeaderMap::new()), None);
    }

    #[test]
    fn only_five_statuses_are_redirects() {
        let found: Vec<u16> = (100..600).filter(|&status| is_redirect(status)).collect();
        assert_eq!(found, [301, 302, 303, 307, 308]);
    }
}
