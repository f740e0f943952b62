//! What the targets of `fuzz/` need to see of this room; there for them only.

use bytes::Bytes;
use http::HeaderMap;

use super::cookies::{Cookies, Jars, KeepCookies, VisitCookies};
use super::decode;
use super::hosts::Secrecy;
use super::redirect;
use crate::canon::{BASE, PageUrl};
use crate::exchange::{Coding, Truncated};

thread_local! {
    static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without I/O");
}

/// Undoes the content coding.
pub fn decoded(headers: &HeaderMap, wire: Bytes, cap: usize) -> (Bytes, Coding, Option<Truncated>) {
    let decoded =
        RUNTIME.with(|runtime| runtime.block_on(decode::decode(headers, wire, None, cap)));
    (decoded.body, decoded.coding, decoded.truncated)
}

/// The next hop of a visit, if the answer redirects the page to itself.
pub fn to_itself(page: &PageUrl, status: u16, headers: &HeaderMap) -> Option<PageUrl> {
    redirect::to_itself(page, page, status, headers, &BASE)
}

/// The `Cookie` of a second request of a visit.
pub fn cookie(page: &PageUrl, headers: &HeaderMap) -> Option<http::HeaderValue> {
    let mut cookies = VisitCookies::new(&Cookies::new(&[], Jars::default()));
    let secrecy = Secrecy::of(page.as_url(), true);
    cookies.take(page.as_url(), headers, secrecy, KeepCookies::Off);
    cookies.header(page.as_url(), secrecy, None)
}
