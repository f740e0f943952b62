//! Character references (HTML standard §13.2.5.72 to §13.2.5.80), which the streaming parser leaves as they are.

use std::borrow::Cow;

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// Where a text stands, since the rule differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In an attribute: a name without semicolon before `=` or a letter or digit is no reference, so that
    /// `?a=1&copy=2` stays a query.
    Attribute,
    /// Between tags.
    Text,
}

/// Replaces all character references.
pub(super) fn decode(raw: &str, place: Place) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', raw.as_bytes()) else {
        return Cow::Borrowed(raw);
    };
    let mut out = String::with_capacity(raw.len());
    out.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    loop {
        // `rest` begins with an ampersand.
        let after = &rest[1..];
        let used = match after.strip_prefix('#') {
            Some(number) => numeric(number, &mut out).map(|used| used + 1),
            None => named(after, place, &mut out),
        };
        if used.is_none() {
            out.push('&');
        }
        rest = &after[used.unwrap_or(0)..];
        match memchr::memchr(b'&', rest.as_bytes()) {
            Some(next) => {
                out.push_str(&rest[..next]);
                rest = &rest[next..];
            }
            None => {
                out.push_str(rest);
                return Cow::Owned(out);
            }
        }
    }
}

/// Reads a number after `&#`; returns the bytes used, `None` if there are no digits.
fn numeric(text: &str, out: &mut String) -> Option<usize> {
    let (radix, start) = if text.starts_with(['x', 'X']) {
        (16, 1)
    } else {
        (10, 0)
    };
    let digits = text[start..]
        .bytes()
        .take_while(|byte| char::from(*byte).is_digit(radix))
        .count();
    if digits == 0 {
        return None;
    }
    let end = start + digits;
    // What does not fit is far above the last code point.
    let code = u32::from_str_radix(&text[start..end], radix).unwrap_or(u32::MAX);
    out.push(character(code));
    Some(end + usize::from(text[end..].starts_with(';')))
}

/// The character of a number; numbers of C1 controls mean windows-1252, those of no character U+FFFD.
fn character(code: u32) -> char {
    let remapped = code
        .checked_sub(0x80)
        .and_then(|at| C1_REPLACEMENTS.get(usize::try_from(at).ok()?).copied()?);
    match code {
        0 => char::REPLACEMENT_CHARACTER,
        _ => remapped
            .or_else(|| char::from_u32(code))
            .unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// Reads the longest name after `&`; returns the bytes used, `None` if there is no reference.
fn named(text: &str, place: Place, out: &mut String) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut longest = None;
    // The table holds each name and each beginning of one, the latter with two zeros.
    for end in 1..=bytes.len() {
        if !(bytes[end - 1].is_ascii_alphanumeric() || bytes[end - 1] == b';') {
            break;
        }
        match NAMED_ENTITIES.get(&text[..end]) {
            Some((0, _)) => {}
            Some(chars) => longest = Some((end, *chars)),
            None => break,
        }
    }
    let (end, (first, second)) = longest?;
    let is_closed = bytes[end - 1] == b';';
    let next = bytes.get(end);
    let goes_on = next.is_some_and(|byte| *byte == b'=' || byte.is_ascii_alphanumeric());
    if place == Place::Attribute && !is_closed && goes_on {
        return None;
    }
    out.extend(
        [first, second]
            .into_iter()
            .filter(|code| *code != 0)
            .filter_map(char::from_u32),
    );
    Some(end)
}
