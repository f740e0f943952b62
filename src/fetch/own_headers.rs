//! Which headers an operator may add to requests.

use http::header::{self, HeaderName};

/// Those that the fetcher or HTTP itself writes: another value would break the exchange, or what we make of it.
const OURS: [(HeaderName, &str); 15] = [
    (header::HOST, "the URL says it"),
    (header::CONTENT_LENGTH, "requests have no body"),
    (header::CONTENT_TYPE, "requests have no body"),
    (header::TRANSFER_ENCODING, "requests have no body"),
    (header::CONNECTION, "connections are the client's affair"),
    (header::UPGRADE, "connections are the client's affair"),
    (header::TE, "connections are the client's affair"),
    (header::TRAILER, "requests have no body"),
    (header::EXPECT, "requests have no body"),
    (header::ACCEPT_ENCODING, "it names what can be decoded"),
    (header::RANGE, "pages are fetched whole"),
    (header::IF_RANGE, "pages are fetched whole"),
    (header::IF_MATCH, "pages are fetched whatever they are"),
    (
        header::PROXY_AUTHORIZATION,
        "a proxy's credentials stand in its URL",
    ),
    (header::USER_AGENT, "the key identity.user_agent says it"),
];

/// Validators of a stored page: theirs is the time of its last visit.
const VALIDATORS: [HeaderName; 3] = [
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

/// Why a header cannot be set for requests; none if it can.
pub fn header_refusal(name: &HeaderName) -> Option<&'static str> {
    if let Some((_, why)) = OURS.iter().find(|(ours, _)| ours == name) {
        return Some(why);
    }
    if VALIDATORS.contains(name) {
        return Some("it belongs to the last visit of each page");
    }
    matches!(
        name.as_str(),
        "keep-alive" | "proxy-connection" | "http2-settings"
    )
    .then_some("connections are the client's affair")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_are_refused_and_others_are_not() {
        for name in [
            "host",
            "Content-Length",
            "Connection",
            "Transfer-Encoding",
            "Keep-Alive",
            "User-Agent",
            "If-None-Match",
        ] {
            let name: HeaderName = name.parse().unwrap();
            assert!(header_refusal(&name).is_some(), "{name}");
        }
        for name in [
            "Accept",
            "Accept-Language",
            "X-Api-Key",
            "Authorization",
            "Referer",
            "From",
        ] {
            let name: HeaderName = name.parse().unwrap();
            assert_eq!(header_refusal(&name), None, "{name}");
        }
    }
}
