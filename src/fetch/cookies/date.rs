//! Dates of cookies, which servers write in more ways than HTTP has (RFC 6265 §5.1.1).

use chrono::NaiveDate;

const MONTHS: [&[u8]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Reads a date as the RFC's algorithm does, in seconds since 1970; none if a part is missing or out of bounds.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|&byte| is_delimiter(byte)) {
        if time.is_none()
            && let Some(found) = time_of(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = number(token, 1..=2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number(token, 2..=4)
        {
            year = Some(found);
        }
    }
    let (hour, minute, second) = time?;
    let year = match year? {
        short @ 70..=99 => short + 1900,
        short @ 0..=69 => short + 2000,
        full => full,
    };
    if year < 1601 {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month?, day?)?;
    Some(
        date.and_hms_opt(hour, minute, second)?
            .and_utc()
            .timestamp(),
    )
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2F | 0x3B..=0x40 | 0x5B..=0x60 | 0x7B..=0x7E)
}

/// The digits that a token begins with, if they are so many and what follows is no digit.
fn number(token: &[u8], digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let count = token
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let text = std::str::from_utf8(&token[..count]).ok()?;
    digits.contains(&count).then(|| text.parse().ok()).flatten()
}

fn time_of(token: &[u8]) -> Option<(u32, u32, u32)> {
    let mut parts = token.splitn(3, |&byte| byte == b':');
    let whole = |part: &[u8]| {
        let is_number = part.iter().all(u8::is_ascii_digit);
        is_number.then(|| number(part, 1..=2)).flatten()
    };
    let (hour, minute) = (whole(parts.next()?)?, whole(parts.next()?)?);
    Some((hour, minute, number(parts.next()?, 1..=2)?))
}

fn month_of(token: &[u8]) -> Option<u32> {
    let start = token.get(..3)?.to_ascii_lowercase();
    let index = MONTHS.iter().position(|month| *month == start)?;
    u32::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_in_the_ways_of_the_field() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06-Nov-1994 08:49:37 UTC",
            "06 november 1994 8:49:37",
            "1994 Nov 6 08:49:37Z",
        ] {
            // The last begins with four digits, which are no day.
            assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(parse(b"Thu, 01-Jan-1970 00:00:00 GMT"), Some(0));
        assert_eq!(
            parse(b"Fri, 31 Dec 9999 23:59:59 GMT"),
            Some(253_402_300_799)
        );
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "0",
            "never",
            "Sun, 06 Nov 1994",
            "32 Jan 2020 00:00:00",
            "1 Jan 1500 00:00:00",
            "1 Jan 2020 24:00:00",
            "1 Jan 2020 0:0",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
