//! Whose fault a failure behind a proxy is: the proxy's, or the host's beyond it.
//!
//! HTTP proxies answer in the host's place where they cannot reach it, SOCKS servers have codes
//! (RFC 1928 §6). Neither is reliable: some servers call a name that does not resolve a general
//! failure, and a tunnel that is refused has one word for everything. So there is a third verdict, for
//! what one host alone does not show.

use http::header::{HeaderMap, SERVER};

use crate::exchange::text;

/// Whose fault it is that a host was not reached through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blame {
    /// The host's: the proxy works.
    Host,
    /// The host's most likely; of several sites in a row, the proxy's.
    Unclear,
    /// The same, but said in an answer that may as well be the host's own: so no other proxy asks it at once.
    Claimed,
}

/// What a proxy that refuses by its own rules or limits says: another may let us through (squid; RFC 9209 §2.3).
const REFUSALS: [&str; 4] = [
    "ERR_ACCESS_DENIED",
    "ERR_CACHE_ACCESS_DENIED",
    "http_request_denied",
    "connection_limit_reached",
];

/// What a proxy says of a failure within itself (RFC 9209 §2.3).
const FAILURES: [&str; 3] = [
    "proxy_internal_error",
    "proxy_configuration_error",
    "proxy_loop_detected",
];

/// What a proxy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::fetch) enum Said {
    /// That it failed itself.
    Failed(String),
    /// That it did not reach the host.
    Unreached(Blame, String),
}

/// Judges a failed connection by the words of its causes, outermost first: the types that tell are
/// not public.
pub(in crate::fetch) fn of_words(words: &[String]) -> Said {
    let said = |text: &str| words.iter().any(|word| word == text);
    let socks = |text: &str| said(&format!("SOCKS error: {text}"));
    if said("tunnel error: proxy authorization required") {
        return Said::Failed(WRONG_CREDENTIALS.to_owned());
    }
    if said("tunnel error: unsuccessful") {
        let reason = "it opens no tunnel to the host".to_owned();
        return Said::Unreached(Blame::Unclear, reason);
    }
    for (code, blame) in [
        ("network unreachable", Blame::Host),
        ("host unreachable", Blame::Host),
        ("connection refused", Blame::Host),
        ("ttl expired", Blame::Host),
        ("address type not supported", Blame::Host),
        ("connection not allowed", Blame::Unclear),
        ("general server failure", Blame::Unclear),
    ] {
        if socks(code) {
            return Said::Unreached(blame, code.to_owned());
        }
    }
    for refusal in [
        "credentials not accepted",
        "server does not support user/pass authentication",
    ] {
        if socks(refusal) {
            return Said::Failed(format!("it wants other credentials ({refusal})"));
        }
    }
    if socks("failed to create underlying connection") {
        return Said::Failed("it cannot be reached".to_owned());
    }
    Said::Failed(words.last().cloned().unwrap_or_default())
}

/// What a 407 means; a SOCKS server has words of its own.
const WRONG_CREDENTIALS: &str = "it wants other credentials (407)";

/// Judges an answer to a plain http request through a proxy: some are not the host's. None if it
/// is, as far as can be seen.
pub(in crate::fetch) fn of_headers(status: u16, headers: &HeaderMap) -> Option<Said> {
    if status == 407 {
        return Some(Said::Failed(WRONG_CREDENTIALS.to_owned()));
    }
    let is_tinyproxy = headers
        .get(SERVER)
        .is_some_and(|server| text(server).starts_with("tinyproxy"));
    match status {
        // What it says to a wrong password; 407 is for none at all.
        401 if is_tinyproxy => return Some(Said::Failed(WRONG_CREDENTIALS.to_owned())),
        // Its filter.
        403 if is_tinyproxy => {
            let reason = "it lets nobody there (403)".to_owned();
            return Some(Said::Unreached(Blame::Unclear, reason));
        }
        _ if status < 400 => return None,
        _ => {}
    }
    // Also with a 403: that a proxy lets us nowhere must not be read as a host's word on its robots.txt.
    let value = |name: &str| headers.get_all(name).iter().next_back().map(text);
    let squid = || {
        let error = value("x-squid-error")?;
        error.split(' ').next().map(str::to_owned)
    };
    // RFC 9209 §2.1.1 and §2.3.
    let named = value("proxy-status").as_deref().and_then(proxy_error);
    if let Some(error) = named.or_else(squid) {
        return Some(if FAILURES.contains(&error.as_str()) {
            Said::Failed(error)
        } else if REFUSALS.contains(&error.as_str()) {
            Said::Unreached(Blame::Unclear, error)
        } else {
            Said::Unreached(Blame::Host, error)
        });
    }
    (is_tinyproxy && status >= 500)
        .then(|| Said::Unreached(Blame::Host, format!("it answers {status}")))
}

/// Whether words of an answer are believed: whoever is asked can write them, and a host that could send a proxy to rest with them would
/// end a whole crawl. So they are the proxy's own only where it reached nobody (`has_reached`) since it started or last failed.
pub(in crate::fetch) fn believed(said: Said, has_reached: bool) -> Said {
    match said {
        Said::Failed(reason) if has_reached => Said::Unreached(Blame::Claimed, reason),
        Said::Unreached(Blame::Unclear, reason) => Said::Unreached(Blame::Claimed, reason),
        said => said,
    }
}

/// The error of the last proxy that names one: `a; received-status=200, b; error=dns_timeout`.
fn proxy_error(value: &str) -> Option<String> {
    let parameters = value.rsplit([',', ';']).map(str::trim);
    let mut errors = parameters.filter_map(|parameter| parameter.strip_prefix("error="));
    errors.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Said {
        of_words(
            &words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn codes_of_socks_tell_the_host_from_the_proxy() {
        let outer = "error connecting to socks proxy";
        let of = |code: &str| match words(&[outer, &format!("SOCKS error: {code}")]) {
            Said::Unreached(blame, _) => Some(blame),
            Said::Failed(_) => None,
        };
        assert_eq!(of("host unreachable"), Some(Blame::Host));
        assert_eq!(of("connection refused"), Some(Blame::Host));
        assert_eq!(of("general server failure"), Some(Blame::Unclear));
        assert_eq!(of("credentials not accepted"), None);
        assert_eq!(of("command not supported"), None);
        assert_eq!(of("failed to create underlying connection"), None);
    }

    #[test]
    fn an_answer_is_the_host_s_unless_a_proxy_says_that_it_is_its_own() {
        let of = |status, name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )]);
            of_headers(status, &headers)
        };
        let host = |words: &str| Some(Said::Unreached(Blame::Host, words.to_owned()));
        assert_eq!(of(502, "server", "nginx"), None);
        assert_eq!(of(200, "server", "tinyproxy/1.11.1"), None);
        assert_eq!(of(401, "server", "nginx"), None);
        assert!(matches!(
            of(401, "server", "tinyproxy/1.11.1"),
            Some(Said::Failed(_))
        ));
        assert_eq!(
            of(500, "server", "tinyproxy/1.11.1"),
            host("it answers 500")
        );
        assert_eq!(
            of(503, "x-squid-error", "ERR_DNS_FAIL 0"),
            host("ERR_DNS_FAIL")
        );
        assert_eq!(
            of(
                502,
                "proxy-status",
                "a; received-status=200, b; error=connection_refused"
            ),
            host("connection_refused")
        );
        assert_eq!(
            of(500, "proxy-status", "b; error=proxy_internal_error"),
            Some(Said::Failed("proxy_internal_error".to_owned()))
        );
        assert!(matches!(of(407, "server", "nginx"), Some(Said::Failed(_))));
    }

    #[test]
    fn a_proxy_that_lets_us_nowhere_is_not_taken_for_the_host() {
        let of = |status, name: &'static str, value: &'static str| {
            let value = http::HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(http::HeaderName::from_static(name), value)]);
            of_headers(status, &headers)
        };
        let refused = |words: &str| Some(Said::Unreached(Blame::Unclear, words.to_owned()));
        for (status, name, value, words) in [
            (
                403,
                "x-squid-error",
                "ERR_ACCESS_DENIED 0",
                "ERR_ACCESS_DENIED",
            ),
            (
                403,
                "proxy-status",
                "p; error=http_request_denied",
                "http_request_denied",
            ),
            (
                429,
                "proxy-status",
                "p; error=connection_limit_reached; details=x",
                "connection_limit_reached",
            ),
        ] {
            assert_eq!(of(status, name, value), refused(words));
        }
        assert_eq!(of(403, "proxy-status", "p; received-status=403"), None);
        assert_eq!(of(200, "x-squid-error", "ERR_ACCESS_DENIED 0"), None);
    }

    #[test]
    fn a_host_s_word_against_a_proxy_that_reached_others_is_a_doubt_at_most() {
        let failed = || Said::Failed("407".to_owned());
        assert_eq!(believed(failed(), false), failed());
        let doubt = Said::Unreached(Blame::Claimed, "407".to_owned());
        assert_eq!(believed(failed(), true), doubt);
    }
}
