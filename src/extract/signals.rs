//! What page and header say about the use of the page: in an index, in archives, for training. Recorded, and but for
//! `nofollow` nothing here changes what is crawled.

use http::HeaderMap;

use super::capture::tidy;
use super::directives::words;
use crate::exchange;

/// Longest text that is kept of one signal, in characters.
pub(super) const MAX_SIGNAL_CHARS: usize = 1_000;

/// The signals of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// `noindex`, or `none`, in meta robots or `X-Robots-Tag`.
    pub noindex: bool,
    /// `noarchive`, likewise.
    pub noarchive: bool,
    /// `noai`, likewise: no use for training.
    pub noai: bool,
    /// `noimageai`, likewise: none of its images.
    pub noimageai: bool,
    /// All of the header field `Content-Usage`, a dictionary (draft-ietf-aipref-attach §2): `train-ai=n`.
    pub content_usage: Option<String>,
    /// `tdm-reservation` of header or meta (TDMRep): `1` reserves the rights of text and data mining. Where they
    /// differ, `1` counts.
    pub tdm_reservation: Option<String>,
    /// `tdm-policy` of meta, else of the header: the URL of a policy.
    pub tdm_policy: Option<String>,
}

/// What TDMRep lets a page say in `<meta>`.
#[derive(Debug, Default)]
pub(super) struct TdmMeta {
    pub(super) reservation: Option<String>,
    pub(super) policy: Option<String>,
}

impl Signals {
    /// Reads them off the directives that apply to us, the header and the page's own.
    pub(super) fn of(directives: &[String], headers: &HeaderMap, meta: TdmMeta) -> Signals {
        let mut found = Signals {
            content_usage: field(headers, "content-usage"),
            tdm_reservation: reservation(field(headers, "tdm-reservation"), meta.reservation),
            tdm_policy: meta.policy.or_else(|| field(headers, "tdm-policy")),
            ..Signals::default()
        };
        for word in words(directives) {
            let is = |name: &str| word.eq_ignore_ascii_case(name);
            found.noindex |= is("noindex") || is("none");
            found.noarchive |= is("noarchive");
            found.noai |= is("noai");
            found.noimageai |= is("noimageai");
        }
        found
    }
}

fn reservation(header: Option<String>, meta: Option<String>) -> Option<String> {
    match (header, meta) {
        (Some(header), Some(meta)) => Some(if header == "1" { header } else { meta }),
        (header, meta) => meta.or(header),
    }
}

/// All values of a field, which is a list (RFC 9110 §5.3).
fn field(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Vec<_> = headers.get_all(name).iter().map(exchange::text).collect();
    tidy(&values.join(", "), MAX_SIGNAL_CHARS)
}
