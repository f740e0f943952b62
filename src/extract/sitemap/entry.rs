//! The fields of an entry, from text.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

use super::{ChangeFreq, Entry, EntryKind, text::is_blank};

/// Longest text of a field, in bytes; sitemaps.org allows URLs of 2,048 characters.
pub(super) const LONGEST: usize = 8_192;

/// A date before the web is a clock that was never set, or the zero of some language.
const FIRST_YEAR: i32 = 1990;

impl Entry {
    pub(super) fn bare(kind: EntryKind, loc: String) -> Entry {
        Entry {
            kind,
            loc,
            lastmod: None,
            priority: None,
            changefreq: None,
        }
    }
}

impl ChangeFreq {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeFreq::Always => "always",
            ChangeFreq::Hourly => "hourly",
            ChangeFreq::Daily => "daily",
            ChangeFreq::Weekly => "weekly",
            ChangeFreq::Monthly => "monthly",
            ChangeFreq::Yearly => "yearly",
            ChangeFreq::Never => "never",
        }
    }

    pub(super) fn read(text: &str) -> Option<ChangeFreq> {
        use ChangeFreq::{Always, Daily, Hourly, Monthly, Never, Weekly, Yearly};
        [Always, Hourly, Daily, Weekly, Monthly, Yearly, Never]
            .into_iter()
            .find(|word| word.as_str().eq_ignore_ascii_case(tidy(text)))
    }
}

/// A text without what nobody sees around it.
pub(super) fn tidy(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// A priority from 0 to 1.
pub(super) fn priority(text: &str) -> Option<f32> {
    let value: f32 = tidy(text).replace(',', ".").parse().ok()?;
    (0.0..=1.0).contains(&value).then_some(value)
}

/// A date in the forms of W3C-DTF, which sitemaps.org asks for, and in those that are met besides.
pub(super) fn lastmod(text: &str) -> Option<DateTime<Utc>> {
    let text = tidy(text);
    let date = |text: &str| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let midnight = |date: NaiveDate| date.and_hms_opt(0, 0, 0).map(|time| time.and_utc());
    let zoned = [
        "%Y-%m-%dT%H:%M%#z",
        "%Y-%m-%dT%H:%M:%S%.f%#z",
        "%Y-%m-%d %H:%M:%S%.f %#z",
    ];
    let plain = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ];
    let found = DateTime::parse_from_rfc3339(text)
        .map(|moment| moment.to_utc())
        .ok()
        .or_else(|| date(text).and_then(midnight))
        .or_else(|| {
            let mut forms = zoned.into_iter();
            forms
                .find_map(|form| DateTime::parse_from_str(text, form).ok())
                .map(|moment| moment.to_utc())
        })
        .or_else(|| {
            let mut forms = plain.into_iter();
            forms
                .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
                .map(|moment| moment.and_utc())
        })
        .or_else(|| date(&format!("{text}-01")).and_then(midnight))
        .or_else(|| date(&format!("{text}-01-01")).and_then(midnight))
        .or_else(|| {
            DateTime::parse_from_rfc2822(text)
                .ok()
                .map(|moment| moment.to_utc())
        })?;
    use chrono::Datelike as _;
    (FIRST_YEAR..=9_999)
        .contains(&found.year())
        .then_some(found)
}
