//! Redirects that lead a page to itself: another spelling of its URL, or a cookie to be shown.
//!
//! A redirect elsewhere is a result, and its target a task of its own. A target with its source's
//! identity cannot be one, since that task exists: it is this very visit. So such hops are walked
//! here, with the cookies set on the way, and only those.

use http::HeaderMap;
use http::header::HeaderValue;
use url::Url;

use crate::canon::{Canon, PageUrl};
use crate::exchange;

/// The most hops inside one visit.
pub(super) const MOST_HOPS: u8 = 5;

/// The URL of the next hop, if the answer redirects `page` to itself.
pub(super) fn to_itself(
    page: &PageUrl,
    at: &PageUrl,
    status: u16,
    headers: &HeaderMap,
    canon: &Canon,
) -> Option<PageUrl> {
    if !exchange::is_redirect(status) {
        return None;
    }
    let target = at.join(&exchange::location(headers)?).ok()?;
    (target.digest(canon) == page.digest(canon)).then_some(target)
}

/// The requests of one visit so far. The same URL asked for with the same cookies will answer the
/// same, so there is no need to walk all the hops of a circle.
#[derive(Debug, Default)]
pub(super) struct Trail {
    seen: Vec<(Url, Option<HeaderValue>)>,
}

impl Trail {
    /// Remembers a request.
    pub(super) fn add(&mut self, url: &Url, cookie: Option<HeaderValue>) {
        self.seen.push((url.clone(), cookie));
    }

    /// Whether this request was made before.
    pub(super) fn has(&self, url: &Url, cookie: Option<&HeaderValue>) -> bool {
        let mut seen = self.seen.iter();
        seen.any(|(known, shown)| known == url && shown.as_ref() == cookie)
    }
}
