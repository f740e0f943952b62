//! Cookies (RFC 6265): those of an operator's file, those that hosts keep with us, those of one visit.
//!
//! The one idea: they lie upon one another. A request is shown what the file has for it, over that what its host's jar has, over that
//! what this visit was told; the upper one hides the same cookie below, also by deleting it. A visit's own jar is there always, since some
//! pages redirect to themselves until their cookie is shown, and ends with the visit. A host's jar is kept only where the operator
//! wants that: a crawl of many hosts remembers nothing of itself there, and is the same on every machine.
//!
//! Jars live in the memory of one process, within bounds, and die with it; no cookie that was kept goes to the database.
//! Written here, since the well-known store brings a second time crate and a second list of public suffixes.

mod cookie;
mod date;
mod netscape;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{HeaderValue, SET_COOKIE};
use url::Url;

pub use cookie::Cookie;
use cookie::{Seconds, host};

use super::hosts::Secrecy;
pub use netscape::CookieFile;

/// Cookies of one jar: browsers keep so many for a domain. RFC 6265 §6.1 asks for 50 at least.
const MOST_COOKIES: usize = 180;

/// Bytes of all jars that are kept: some ten thousand hosts with a cookie or two. Those unused for longest give way.
const MOST_BYTES: usize = 16 << 20;

/// Cookies of a header, in bytes: servers refuse more, and the oldest are left out.
const LONGEST_HEADER: usize = 16 << 10;

/// Whether hosts keep cookies with us from one visit to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepCookies {
    /// No host does: each visit begins without. The default.
    #[default]
    Off,
    /// Each does, in a jar of its own in this process.
    Host,
}

/// The seconds since 1970.
pub(super) fn now() -> Seconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        Seconds::try_from(since.as_secs()).unwrap_or(Seconds::MAX)
    })
}

/// Cookies by their time of coming.
#[derive(Clone, Debug, Default)]
pub(super) struct Jar {
    cookies: Vec<Cookie>,
}

impl Jar {
    /// Takes the cookies of an answer.
    fn take(&mut self, url: &Url, headers: &HeaderMap, secrecy: Secrecy, now: Seconds) {
        for line in headers.get_all(SET_COOKIE) {
            if let Some(cookie) = Cookie::read(line.as_bytes(), url, secrecy, now) {
                self.put(cookie, now);
            }
        }
    }

    fn put(&mut self, cookie: Cookie, now: Seconds) {
        if let Some(known) = self.cookies.iter_mut().find(|known| known.is_same(&cookie)) {
            *known = cookie;
            return;
        }
        if self.cookies.len() >= MOST_COOKIES {
            let over = self.cookies.iter().position(|cookie| cookie.is_over(now));
            self.cookies.remove(over.unwrap_or(0));
        }
        self.cookies.push(cookie);
    }

    fn weight(&self) -> usize {
        self.cookies.iter().map(Cookie::weight).sum()
    }
}

/// Lays what a jar has for a URL over what is there.
fn lay<'a>(
    shown: &mut Vec<&'a Cookie>,
    jar: impl IntoIterator<Item = &'a Cookie>,
    url: &Url,
    secrecy: Secrecy,
) {
    for cookie in jar.into_iter().filter(|cookie| cookie.is_for(url, secrecy)) {
        shown.retain(|below| !below.is_same(cookie));
        shown.push(cookie);
    }
}

/// The cookies of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cookies {
    /// By site; never changed.
    imported: Arc<HashMap<String, Vec<Cookie>>>,
    kept: Jars,
}

/// What hosts keep with us. Clones share it, so that it outlasts a fetcher that is built anew under other settings.
#[derive(Clone, Default)]
pub struct Jars(Arc<Shared>);

#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    /// Whether there are jars: most crawls keep none, and need not look.
    any: AtomicBool,
}

impl Jars {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Jars {
    /// Leaves out what is in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jars")
            .field(&self.lock().jars.len())
            .finish()
    }
}

/// Jars by site: a cookie may be meant for all hosts of one, and for no other (RFC 6265 §5.3, step 5).
#[derive(Debug, Default)]
struct Kept {
    jars: HashMap<String, (Jar, u64)>,
    bytes: usize,
    clock: u64,
}

impl Cookies {
    pub(super) fn new(imported: &[Cookie], kept: Jars) -> Cookies {
        let mut by_site: HashMap<String, Vec<Cookie>> = HashMap::new();
        for cookie in imported {
            by_site
                .entry(site(&cookie.domain).to_owned())
                .or_default()
                .push(cookie.clone());
        }
        Cookies {
            imported: Arc::new(by_site),
            kept,
        }
    }

    /// The operator's alone, whatever hosts keep with us.
    pub(super) fn of_operator(&self) -> Cookies {
        Cookies {
            imported: Arc::clone(&self.imported),
            kept: Jars::default(),
        }
    }

    fn take(&self, url: &Url, headers: &HeaderMap, secrecy: Secrecy, now: Seconds) {
        let Some((host, _)) = host(url) else {
            return;
        };
        let site = site(host);
        let mut kept = self.kept.lock();
        kept.take(site, url, headers, secrecy, now);
        self.kept
            .0
            .any
            .store(!kept.jars.is_empty(), Ordering::Relaxed);
    }
}

/// Bytes of a jar without a cookie, its name aside: about what a map's entry takes.
const EMPTY_JAR: usize = 96;

fn weight(site: &str, jar: &Jar) -> usize {
    EMPTY_JAR + site.len() + jar.weight()
}

impl Kept {
    /// A site without a cookie has no jar.
    fn take(&mut self, site: &str, url: &Url, headers: &HeaderMap, secrecy: Secrecy, now: Seconds) {
        self.clock += 1;
        let mut jar = match self.jars.remove(site) {
            Some((jar, _)) => {
                self.bytes = self.bytes.saturating_sub(weight(site, &jar));
                jar
            }
            None => Jar::default(),
        };
        jar.take(url, headers, secrecy, now);
        if !jar.cookies.is_empty() {
            self.bytes += weight(site, &jar);
            self.jars.insert(site.to_owned(), (jar, self.clock));
            self.shrink();
        }
    }

    /// Down to nine tenths, so that it is not done for each cookie.
    fn shrink(&mut self) {
        if self.bytes <= MOST_BYTES {
            return;
        }
        let mut oldest: Vec<(u64, String)> = self
            .jars
            .iter()
            .map(|(site, (_, used))| (*used, site.clone()))
            .collect();
        oldest.sort_unstable();
        for (_, site) in oldest {
            if self.bytes <= MOST_BYTES / 10 * 9 {
                break;
            }
            if let Some((jar, _)) = self.jars.remove(&site) {
                self.bytes = self.bytes.saturating_sub(weight(&site, &jar));
            }
        }
    }
}

/// The registrable domain of a host; an address and a bare suffix are their own.
pub(super) fn site(host: &str) -> &str {
    let is_address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
    match is_address {
        true => host,
        false => psl::domain_str(host).unwrap_or(host),
    }
}

/// The cookies of one visit, over those of the process.
#[derive(Debug)]
pub(super) struct VisitCookies {
    shared: Cookies,
    own: Jar,
}

impl VisitCookies {
    pub(super) fn new(shared: &Cookies) -> VisitCookies {
        VisitCookies {
            shared: shared.clone(),
            own: Jar::default(),
        }
    }

    /// Takes the cookies of an answer, for its host to keep or for this visit alone.
    pub(super) fn take(
        &mut self,
        url: &Url,
        headers: &HeaderMap,
        secrecy: Secrecy,
        keep: KeepCookies,
    ) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        match keep {
            KeepCookies::Off => self.own.take(url, headers, secrecy, now()),
            KeepCookies::Host => self.shared.take(url, headers, secrecy, now()),
        }
    }

    /// The `Cookie` header of a request, none without a cookie: longer paths first, and the older ones (RFC 6265 §5.4). `said` is what
    /// the operator set for the host, as a header's value; a cookie of the same name is shown instead.
    pub(super) fn header(
        &self,
        url: &Url,
        secrecy: Secrecy,
        said: Option<&HeaderValue>,
    ) -> Option<HeaderValue> {
        if said.is_none() && self.is_empty() {
            return None;
        }
        let (host, _) = host(url)?;
        let (site, now) = (site(host), now());
        let mut shown = Vec::new();
        if let Some(imported) = self.shared.imported.get(site) {
            lay(&mut shown, imported, url, secrecy);
        }
        let kept = self.kept_of(site);
        lay(&mut shown, &kept.cookies, url, secrecy);
        lay(&mut shown, &self.own.cookies, url, secrecy);
        shown.retain(|cookie| !cookie.is_over(now));
        shown.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs = said.map_or(&b""[..], HeaderValue::as_bytes);
        let said = pairs
            .split(|&byte| byte == b';')
            .map(<[u8]>::trim_ascii)
            .filter(|pair| !pair.is_empty() && !shown.iter().any(|cookie| is_named(pair, cookie)));
        let mut header: Vec<u8> = said.collect::<Vec<_>>().join(&b"; "[..]);
        for cookie in shown {
            if header.len() + cookie.name.len() + cookie.value.len() > LONGEST_HEADER {
                continue;
            }
            if !header.is_empty() {
                header.extend_from_slice(b"; ");
            }
            header.extend_from_slice(&cookie.name);
            header.push(b'=');
            header.extend_from_slice(&cookie.value);
        }
        if header.is_empty() {
            return None;
        }
        let mut header = HeaderValue::from_bytes(&header).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Whether no host has a cookie: the usual state, in which nothing is looked up.
    fn is_empty(&self) -> bool {
        self.own.cookies.is_empty()
            && self.shared.imported.is_empty()
            && !self.shared.kept.0.any.load(Ordering::Relaxed)
    }

    fn kept_of(&self, site: &str) -> Jar {
        let mut kept = self.shared.kept.lock();
        kept.clock += 1;
        let clock = kept.clock;
        match kept.jars.get_mut(site) {
            Some((jar, used)) => {
                *used = clock;
                jar.clone()
            }
            None => Jar::default(),
        }
    }
}

fn is_named(pair: &[u8], cookie: &Cookie) -> bool {
    let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
    name.trim_ascii() == cookie.name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::text;

    const KEPT: Secrecy = Secrecy::Kept;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn lines(lines: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(SET_COOKIE, HeaderValue::from_bytes(line).unwrap());
        }
        headers
    }

    /// What a visit that was told these lines shows.
    fn shown(told: &[&[u8]]) -> Option<String> {
        let at = url("http://127.0.0.1:8080/");
        let mut visit = VisitCookies::new(&Cookies::default());
        visit.take(&at, &lines(told), KEPT, KeepCookies::Off);
        visit
            .header(&at, KEPT, None)
            .map(|header| text(&header).into_owned())
    }

    #[test]
    fn cookies_are_shown_back_in_order_and_the_last_of_a_name_wins() {
        let told: [&[u8]; 4] = [b"b=2; Path=/", b" a = 1 ;Secure", b"b=3", b"nameless"];
        assert_eq!(shown(&told).as_deref(), Some("b=3; a=1"));
    }

    #[test]
    fn a_deleted_cookie_is_gone_and_odd_bytes_do_no_harm() {
        assert_eq!(shown(&[b"a=1", b"a=; Max-Age=0"]), None);
        assert_eq!(
            shown(&[b"a=1", b"a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]),
            None
        );
        assert_eq!(shown(&[b"a=\xE4\xFF"]).as_deref(), Some("a=äÿ"));
        assert_eq!(shown(&[b"=x", b"", b";"]), None);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_of_a_host_or_a_file_do_harm(line: Vec<u8>, text: String, path in "/[ -~]{0,20}") {
            let at = url(&format!("https://a.example{path}"));
            let line = [b"a=1; ", &line[..]].concat();
            for bytes in [&line[5..], &line] {
                if let Some(cookie) = Cookie::read(bytes, &at, KEPT, 0) {
                    let _ = (cookie.is_for(&at, KEPT), cookie.is_over(i64::MAX), cookie.weight());
                    proptest::prop_assert!(cookie.domain.ends_with("a.example"));
                }
            }
            let _ = date::parse(&line);
            let _ = CookieFile::read(&text.replace(' ', "\t"), 0);
        }
    }

    #[test]
    fn a_jar_and_a_header_are_bounded() {
        let told: Vec<String> = (0..999).map(|n| format!("c{n}=1")).collect();
        let told: Vec<&[u8]> = told.iter().map(String::as_bytes).collect();
        assert_eq!(shown(&told).unwrap().split("; ").count(), MOST_COOKIES);
        let told: Vec<String> = (0..9)
            .map(|n| format!("c{n}={}", "x".repeat(4_000)))
            .collect();
        let told: Vec<&[u8]> = told.iter().map(String::as_bytes).collect();
        assert!(shown(&told).unwrap().len() <= LONGEST_HEADER);
    }

    #[test]
    fn all_jars_together_are_bounded_and_the_one_unused_for_longest_gives_way() {
        let cookies = Cookies::default();
        let value = format!("a={}", "x".repeat(4_000));
        let count = MOST_BYTES / value.len() + 100;
        for n in 0..count {
            let at = url(&format!("https://h{n}.example/"));
            cookies.take(&at, &lines(&[value.as_bytes()]), KEPT, 0);
            // The first is used all the time.
            VisitCookies::new(&cookies).header(&url("https://h0.example/"), KEPT, None);
        }
        assert!(cookies.kept.lock().bytes <= MOST_BYTES);
        let has = |n: usize| {
            let at = url(&format!("https://h{n}.example/"));
            VisitCookies::new(&cookies)
                .header(&at, KEPT, None)
                .is_some()
        };
        assert!(has(0) && has(count - 1) && !has(1));
    }

    #[test]
    fn a_site_whose_cookies_are_refused_takes_no_room() {
        let cookies = Cookies::default();
        let take = |line: &[u8]| {
            let at = url("https://a.example/");
            cookies.take(&at, &lines(&[line]), KEPT, 0);
            let kept = cookies.kept.lock();
            (kept.jars.len(), kept.bytes)
        };
        assert_eq!(take(b"a=1; Domain=other.example"), (0, 0));
        let (jars, bytes) = take(b"a=1");
        assert_eq!(jars, 1);
        assert!(bytes > EMPTY_JAR, "the entry itself counts, too: {bytes}");
        assert_eq!(take(b"a=1"), (1, bytes));
    }

    #[test]
    fn a_visit_s_cookies_lie_over_the_host_s_and_those_over_the_file_s() {
        let file = CookieFile::read(
            "a.example\tFALSE\t/\tFALSE\t0\ta\tfile\na.example\tFALSE\t/\tFALSE\t0\tb\tfile\na.example\tFALSE\t/\tFALSE\t0\tc\tfile\n",
            0,
        );
        let cookies = Cookies::new(&file.cookies, Jars::default());
        let at = url("https://a.example/");
        let said = HeaderValue::from_static("a=said; d=said");
        let mut visit = VisitCookies::new(&cookies);
        visit.take(&at, &lines(&[b"b=host; Path=/"]), KEPT, KeepCookies::Host);
        visit.take(
            &at,
            &lines(&[b"c=; Path=/; Max-Age=0", b"e=visit"]),
            KEPT,
            KeepCookies::Off,
        );
        let shown = |visit: &VisitCookies| {
            text(&visit.header(&at, KEPT, Some(&said)).unwrap()).into_owned()
        };
        assert_eq!(shown(&visit), "d=said; a=file; b=host; e=visit");
        let next = VisitCookies::new(&cookies);
        assert_eq!(shown(&next), "d=said; a=file; c=file; b=host");
    }
}
