//! The lists of what a key may leave out: session ids and tracking parameters.
//!
//! They are of version [`LISTS`], and never change: stored digests depend on them. A longer list will be another
//! version, which only crawls have that begin with it.
//!
//! What is listed is what a product or a platform writes, and no site gives another meaning. Names that sites do use
//! for something else (`sid` is a story's or a shop's number as well) count only with a value that looks like a session
//! id. Sources: Heritrix's `StripSessionIDs` and `StripSessionCFIDs`, Nutch's `regex-normalize.xml`, Servlet 6.0 §7.1.3
//! (`jsessionid`), the platforms' own manuals; for tracking the help pages of those who add the parameters.

/// Version of the lists.
pub const LISTS: u32 = 1;

/// Names of session ids, in lower case, whatever their value.
const SESSIONS: [&str; 4] = [
    "jsessionid",
    "phpsessid",
    "asp.net_sessionid",
    "bv_sessionid",
];

/// Names of session ids, in lower case, where the value [looks like one](looks_like_an_id).
const PERHAPS_SESSIONS: [&str; 6] = [
    "sid",
    "sessid",
    "sessionid",
    "session_id",
    "oscsid",
    "zenid",
];

/// Classic ASP's name begins so, and eight letters follow.
const ASP_SESSION: &str = "aspsessionid";

/// ColdFusion's two, which are session ids only together: `cfid` alone is some number.
const COLD_FUSION: [&str; 2] = ["cfid", "cftoken"];

/// What campaigns, advertisers and mailers add to follow a visitor, in lower case; a star is any rest.
const TRACKING: [&str; 34] = [
    "utm_*",      // Urchin, Google Analytics
    "gclid",      // Google Ads
    "gclsrc",     //
    "dclid",      // Google's display network
    "gbraid",     //
    "wbraid",     //
    "gad_source", //
    "gad_campaignid",
    "srsltid",       // Google's Merchant Center
    "_ga",           // Google Analytics between domains
    "_gl",           //
    "fbclid",        // Facebook
    "igsh",          // Instagram
    "igshid",        //
    "msclkid",       // Microsoft
    "twclid",        // Twitter
    "ttclid",        // TikTok
    "li_fat_id",     // LinkedIn
    "epik",          // Pinterest
    "yclid",         // Yandex
    "ysclid",        //
    "_openstat",     // Openstat
    "rb_clickid",    // Rakuten
    "wickedid",      // Wicked Reports
    "mc_cid",        // Mailchimp
    "mc_eid",        //
    "_hsenc",        // HubSpot
    "_hsmi",         //
    "__hstc",        //
    "__hssc",        //
    "__hsfp",        //
    "hsctatracking", //
    "mkt_tok",       // Marketo
    "vero_id",       // Vero
];

/// All names of the lists.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let sessions = SESSIONS.into_iter().chain(PERHAPS_SESSIONS);
    let sessions = sessions.chain(COLD_FUSION).chain([ASP_SESSION]);
    sessions.chain(TRACKING)
}

/// The shortest value that may be a session id, in characters: such ids have 64 bits at least, 16 hexadecimal digits.
const SHORTEST_ID: usize = 16;

/// Whether a pair is a session id by itself. Its parts are as they stand in the key.
pub(super) fn is_session(name: &str, value: &str) -> bool {
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    let is_asp = || {
        name.split_at_checked(ASP_SESSION.len())
            .is_some_and(|(head, rest)| {
                head.eq_ignore_ascii_case(ASP_SESSION)
                    && rest.len() == 8
                    && rest.bytes().all(|byte| byte.is_ascii_alphabetic())
            })
    };
    SESSIONS.iter().any(&is)
        || (PERHAPS_SESSIONS.iter().any(is) && looks_like_an_id(value))
        || is_asp()
}

/// Which of ColdFusion's two a name is.
pub(super) fn cold_fusion(name: &str) -> Option<usize> {
    COLD_FUSION
        .iter()
        .position(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a name is a tracking parameter's.
pub(super) fn is_tracking(name: &str) -> bool {
    TRACKING
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(head) => name
                .get(..head.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(head)),
            None => name.eq_ignore_ascii_case(pattern),
        })
}

/// Letters and digits alone, among them a digit: neither a word nor a slug.
fn looks_like_an_id(value: &str) -> bool {
    value.len() >= SHORTEST_ID
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether a segment is ASP.NET's, which keeps the session in the path: `(S(…))`, or with `A(…)` and `F(…)` beside it
/// (ASP.NET, "cookieless").
pub(super) fn is_asp_net(segment: &str) -> bool {
    let Some(mut rest) = segment
        .strip_prefix('(')
        .and_then(|inner| inner.strip_suffix(')'))
    else {
        return false;
    };
    let mut has_session = false;
    while let Some((kind, after)) = rest.split_at_checked(1) {
        let Some((value, next)) = after
            .strip_prefix('(')
            .and_then(|value| value.split_once(')'))
        else {
            return false;
        };
        let is_value = !value.is_empty()
            && value
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if !is_value || !matches!(kind, "A" | "S" | "F") {
            return false;
        }
        has_session |= kind == "S";
        rest = next;
    }
    has_session
}
