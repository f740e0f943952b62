//! One cookie: read from `Set-Cookie`, and to whom it is shown (RFC 6265 §5).

use url::{Host, Url};

use super::date;
use crate::fetch::hosts::{Secrecy, is_public_suffix};

/// Name and value together, at most; an attribute's value, at most (RFC 6265bis §5.6).
const LONGEST: usize = 4_096;
const LONGEST_ATTRIBUTE: usize = 1_024;

/// Seconds since 1970, as the machine's clock has them.
pub(in crate::fetch) type Seconds = i64;

/// A cookie with the bounds of its use.
#[derive(Clone, PartialEq, Eq)]
pub struct Cookie {
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
    /// Without dots at either end, in lower case.
    pub(super) domain: String,
    /// For that very host alone, not for those below it.
    pub(super) host_only: bool,
    pub(super) path: Vec<u8>,
    /// Shown over https, and to this machine itself.
    pub(super) secure: bool,
    pub(super) port: Port,
    /// None: until the process ends. A moment that has passed: it is deleted, and hides the one that lies below.
    pub(super) expires: Option<Seconds>,
}

/// At which ports a cookie's host is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    /// All: a cookie file names none.
    Any,
    /// The one whose answer set it; none: the default of http or https.
    Only(Option<u16>),
}

/// The host of a URL as cookies compare it.
pub(super) fn host(url: &Url) -> Option<(&str, bool)> {
    let name = url.host_str()?;
    let is_name = matches!(url.host(), Some(Host::Domain(_)));
    Some((name.strip_suffix('.').unwrap_or(name), is_name))
}

impl Cookie {
    /// Reads a `Set-Cookie` of an answer to `url`; none if it is none, or not for that host to set.
    ///
    /// Stricter than the RFC in two ways, since nothing that a host was told may go where it did not come from: a cookie keeps to its
    /// port, as our hosts do, and one that came over https is never shown over http.
    pub(super) fn read(line: &[u8], url: &Url, secrecy: Secrecy, now: Seconds) -> Option<Cookie> {
        let mut parts = line.split(|&byte| byte == b';');
        let pair = parts.next()?;
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        if name.is_empty() || name.len() + value.len() > LONGEST || has_controls(pair) {
            return None;
        }
        let (host, is_name) = host(url)?;
        let mut cookie = Cookie {
            name: name.to_vec(),
            value: value.to_vec(),
            domain: host.to_owned(),
            host_only: true,
            path: default_path(url.path()),
            secure: url.scheme() == "https",
            port: Port::Only(url.port()),
            expires: None,
        };
        let (mut is_aged, mut has_path, mut says_secure) = (false, false, false);
        for attribute in parts {
            let (key, value) = match attribute.iter().position(|&byte| byte == b'=') {
                Some(equals) => (&attribute[..equals], attribute[equals + 1..].trim_ascii()),
                None => (attribute, &b""[..]),
            };
            if value.len() > LONGEST_ATTRIBUTE {
                continue;
            }
            match &key.trim_ascii().to_ascii_lowercase()[..] {
                b"max-age" => {
                    if let Some(age) = seconds(value) {
                        is_aged = true;
                        cookie.expires = Some(if age <= 0 { 0 } else { now.saturating_add(age) });
                    }
                }
                b"expires" if !is_aged => cookie.expires = date::parse(value).or(cookie.expires),
                b"domain" => {
                    let value = value.strip_prefix(b".").unwrap_or(value);
                    let domain = std::str::from_utf8(value).ok()?.to_ascii_lowercase();
                    cookie.host_only = domain.is_empty();
                    cookie.domain = if domain.is_empty() {
                        host.to_owned()
                    } else {
                        domain
                    };
                }
                b"path" => {
                    has_path = value.starts_with(b"/");
                    cookie.path = match has_path {
                        true => value.to_vec(),
                        false => default_path(url.path()),
                    };
                }
                b"secure" => says_secure = true,
                _ => {}
            }
        }
        if says_secure && secrecy == Secrecy::Open {
            return None;
        }
        cookie.secure |= says_secure;
        // A host that is a public suffix may set a cookie for itself alone (RFC 6265 §5.3, step 5).
        if !cookie.host_only && is_public_suffix(&cookie.domain) {
            cookie.host_only = true;
            if cookie.domain != host {
                return None;
            }
        }
        let is_whole = cookie.host_only && has_path && cookie.path == b"/";
        let prefixed = |prefix: &[u8]| {
            name.get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if (prefixed(b"__Secure-") && !says_secure)
            || (prefixed(b"__Host-") && !(says_secure && is_whole))
        {
            return None;
        }
        cookie.is_for_host(host, is_name).then_some(cookie)
    }

    /// Whether a request for this URL shows it. One that is over is for the same URLs: it hides another.
    pub(super) fn is_for(&self, url: &Url, secrecy: Secrecy) -> bool {
        let Some((host, is_name)) = host(url) else {
            return false;
        };
        let port_fits = match self.port {
            Port::Any => true,
            Port::Only(port) => port == url.port(),
        };
        port_fits
            && (!self.secure || secrecy == Secrecy::Kept)
            && self.is_for_host(host, is_name)
            && self.is_for_path(url.path().as_bytes())
    }

    /// RFC 6265 §5.1.3. An address has no hosts below it.
    fn is_for_host(&self, host: &str, is_name: bool) -> bool {
        host == self.domain
            || (!self.host_only
                && is_name
                && host
                    .strip_suffix(self.domain.as_str())
                    .is_some_and(|rest| rest.ends_with('.')))
    }

    /// RFC 6265 §5.1.4.
    fn is_for_path(&self, path: &[u8]) -> bool {
        path.strip_prefix(&self.path[..]).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(b"/") || self.path.ends_with(b"/")
        })
    }

    /// Whether its time is over.
    pub(super) fn is_over(&self, now: Seconds) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    /// Whether the one replaces the other (RFC 6265 §5.3, step 11).
    pub(super) fn is_same(&self, other: &Cookie) -> bool {
        self.name == other.name
            && self.domain == other.domain
            && self.host_only == other.host_only
            && self.path == other.path
            && (self.port == other.port || self.port == Port::Any || other.port == Port::Any)
    }

    /// About how many bytes it takes in memory.
    pub(super) fn weight(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len() + 128
    }
}

impl std::fmt::Debug for Cookie {
    /// Leaves out the value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookie")
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("domain", &self.domain)
            .field("path", &String::from_utf8_lossy(&self.path))
            .finish_non_exhaustive()
    }
}

/// RFC 6265 §5.1.4: the path up to its last slash.
fn default_path(path: &str) -> Vec<u8> {
    match path.rfind('/') {
        Some(0) | None => b"/".to_vec(),
        Some(slash) => path.as_bytes()[..slash].to_vec(),
    }
}

pub(super) fn has_controls(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .any(|&byte| byte.is_ascii_control() && byte != b'\t')
}

/// RFC 6265 §5.2.2; more digits than a number holds are still a number.
fn seconds(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let most = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    Some(text.parse().unwrap_or(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(line: &str, url: &str) -> Option<Cookie> {
        let url = Url::parse(url).unwrap();
        Cookie::read(line.as_bytes(), &url, Secrecy::of(&url, true), 1_000)
    }

    /// Whether a cookie that `from` sets by this line is shown to `to`.
    fn is_shown(line: &str, from: &str, to: &str) -> bool {
        let to = Url::parse(to).unwrap();
        let secrecy = Secrecy::of(&to, true);
        set(line, from).is_some_and(|cookie| cookie.is_for(&to, secrecy))
    }

    #[test]
    fn a_cookie_is_for_its_own_host_or_for_all_of_its_domain() {
        let from = "https://www.example.org/";
        assert!(is_shown("a=1", from, "https://www.example.org/x"));
        assert!(!is_shown("a=1", from, "https://example.org/"));
        assert!(!is_shown("a=1", from, "https://b.www.example.org/"));
        for domain in ["example.org", ".EXAMPLE.org"] {
            let line = format!("a=1; Domain={domain}");
            assert!(is_shown(&line, from, "https://shop.example.org/"));
            assert!(is_shown(&line, from, "https://example.org/"));
            assert!(!is_shown(&line, from, "https://badexample.org/"));
        }
        for domain in ["other.example", "b.www.example.org", "org", "co.uk"] {
            assert_eq!(
                set(&format!("a=1; Domain={domain}"), from),
                None,
                "{domain}"
            );
        }
        // A suffix that is a host, too, has it for itself.
        let own = set("a=1; Domain=github.io", "https://github.io/").unwrap();
        assert!(!own.is_for(&Url::parse("https://me.github.io/").unwrap(), Secrecy::Kept));
        assert_eq!(set("a=1; Domain=0.0.1", "http://127.0.0.1/"), None);
    }

    #[test]
    fn a_cookie_is_for_its_path_and_what_lies_below() {
        let from = "https://a.example/docs/intro";
        for (line, path, shown) in [
            ("a=1", "/docs", true),
            ("a=1", "/docs/x", true),
            ("a=1", "/docsx", false),
            ("a=1", "/", false),
            ("a=1; Path=/", "/", true),
            ("a=1; Path=/x/", "/x/y", true),
            ("a=1; Path=/x/", "/x", false),
            ("a=1; Path=nonsense", "/docs/x", true),
        ] {
            assert_eq!(
                is_shown(line, from, &format!("https://a.example{path}")),
                shown,
                "{line} {path}"
            );
        }
    }

    #[test]
    fn what_came_over_https_is_not_shown_over_http_and_no_port_sees_another_s() {
        assert!(!is_shown("a=1", "https://a.example/", "http://a.example/"));
        assert!(is_shown("a=1", "http://a.example/", "https://a.example/"));
        assert_eq!(set("a=1; Secure", "http://a.example/"), None);
        assert!(is_shown(
            "a=1; Secure",
            "http://localhost/",
            "http://localhost/"
        ));
        assert!(!is_shown(
            "a=1",
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8081/"
        ));
        assert!(is_shown(
            "a=1",
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8080/"
        ));
    }

    #[test]
    fn max_age_wins_over_expires_and_both_may_delete() {
        let over = |line: &str| set(line, "http://a.example/").unwrap().is_over(1_000);
        assert!(!over("a=1"));
        assert!(!over(
            "a=1; Expires=Thu, 01 Jan 1970 00:00:01 GMT; Max-Age=60"
        ));
        assert!(!over(
            "a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:01 GMT"
        ));
        assert!(!over("a=1; Expires=nonsense; Max-Age=99999999999999999999"));
        for line in [
            "a=; Max-Age=0",
            "a=; max-age = -1",
            "a=; Max-Age=-99999999999999999999",
            "a=; Expires=Thu, 01-Jan-1970 00:00:00 GMT",
        ] {
            assert!(over(line), "{line}");
        }
    }

    #[test]
    fn what_is_no_cookie_is_none_and_prefixes_are_held_to_their_word() {
        let from = "https://a.example/";
        let long = format!("a={}", "x".repeat(LONGEST));
        for line in ["", ";", "=x", "nameless", "a=1\u{1}", &long] {
            assert_eq!(set(line, from), None, "{line:.20}");
        }
        assert_eq!(set("__Secure-a=1", from), None);
        assert!(set("__Secure-a=1; Secure", from).is_some());
        assert_eq!(
            set("__Host-a=1; Secure; Path=/; Domain=a.example", from),
            None
        );
        assert!(set("__Host-a=1; Secure; Path=/", from).is_some());
    }
}
