//! How long a server asks us to stay away: `Retry-After` (RFC 9110 §10.2.3).

use std::time::{Duration, SystemTime};

use chrono::{DateTime, NaiveDateTime, Utc};
use http::HeaderMap;
use http::header::RETRY_AFTER;

/// The longest wait that is believed: an hour. A server that says a year has made a mistake, and
/// the host would be lost to the crawl.
const LONGEST: Duration = Duration::from_secs(3600);

/// Reads `Retry-After`, in seconds or as an HTTP-date, relative to `now`.
///
/// Capped at one hour; a date in the past is zero; none if the header is missing or is neither.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a u64 holds is still a number, and above the cap.
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(LONGEST));
    }
    let date = http_date(text)?;
    let wait = SystemTime::from(date)
        .duration_since(now)
        .unwrap_or(Duration::ZERO);
    Some(wait.min(LONGEST))
}

/// The three forms of RFC 9110 §5.6.7. The weekday is skipped, since it says nothing and is at
/// times wrong; any zone name counts as GMT, as the RFC demands.
pub(super) fn http_date(text: &str) -> Option<DateTime<Utc>> {
    let parse = |text: &str, form| NaiveDateTime::parse_from_str(text, form).ok();
    let date = match text.split_once(',') {
        Some((_, rest)) => {
            let rest = rest.trim();
            let rest = rest.rsplit_once(' ').map_or(rest, |(head, _zone)| head);
            // The four-digit year is tried last: "%Y" takes "94" for the year 94.
            parse(rest, "%d-%b-%y %H:%M:%S").or_else(|| parse(rest, "%d %b %Y %H:%M:%S"))
        }
        None => parse(text.split_once(' ')?.1.trim(), "%b %e %H:%M:%S %Y"),
    };
    date.map(|date| date.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT, the date of the RFC's examples.
    fn rfc_moment() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn wait(value: &str, now: SystemTime) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        retry_after(&headers, now)
    }

    #[test]
    fn seconds_are_capped_at_an_hour_without_overflow() {
        let now = SystemTime::now();
        assert_eq!(wait(" 120 ", now), Some(Duration::from_secs(120)));
        assert_eq!(wait("0", now), Some(Duration::ZERO));
        assert_eq!(wait("1000000000", now), Some(LONGEST));
        assert_eq!(wait("99999999999999999999999999", now), Some(LONGEST));
    }

    #[test]
    fn all_three_forms_of_a_date_are_read() {
        let now = rfc_moment() - Duration::from_secs(3);
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(wait(date, now), Some(Duration::from_secs(3)), "{date}");
        }
    }

    #[test]
    fn a_date_in_the_past_is_no_wait_and_a_far_one_is_capped() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(
            wait(date, rfc_moment() + Duration::from_secs(9)),
            Some(Duration::ZERO)
        );
        assert_eq!(
            wait(date, rfc_moment() - Duration::from_secs(9_999)),
            Some(LONGEST)
        );
    }

    #[test]
    fn what_is_neither_is_ignored() {
        for value in ["soon", "-5", "1.5", "", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(wait(value, rfc_moment()), None, "{value}");
        }
    }
}
