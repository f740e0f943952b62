//! Character references (HTML standard §13.2.5.72 to §13.2.5.80), which the tokenizer leaves as they are.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scraper::Html;

    use super::*;

    /// What html5ever makes of an attribute's value and of a text.
    fn by_tree(raw: &str, place: Place) -> String {
        let document = Html::parse_fragment(&match place {
            Place::Attribute => format!("<p title=\"{raw}\">"),
            Place::Text => format!("<p>{raw}</p>"),
        });
        let paragraph = document
            .select(&scraper::Selector::parse("p").unwrap())
            .next()
            .unwrap();
        match place {
            Place::Attribute => paragraph.attr("title").unwrap_or_default().to_owned(),
            Place::Text => paragraph.text().collect(),
        }
    }

    #[test]
    fn references_are_decoded_by_the_rule_of_their_place() {
        for (raw, attribute, text) in [
            ("a&amp;b", "a&b", "a&b"),
            ("a&ampb", "a&ampb", "a&b"),
            ("a&amp=b", "a&amp=b", "a&=b"),
            ("a&amp", "a&", "a&"),
            ("a&amp b", "a& b", "a& b"),
            ("&copy=7", "&copy=7", "\u{a9}=7"),
            ("&notit;", "&notit;", "\u{ac}it;"),
            ("&notin;", "\u{2209}", "\u{2209}"),
            ("&NotEqualTilde;", "\u{2242}\u{338}", "\u{2242}\u{338}"),
            ("&#38;&#x26;&#X26;&#38", "&&&&", "&&&&"),
            (
                "&#x80;&#150;&#129;",
                "\u{20ac}\u{2013}\u{81}",
                "\u{20ac}\u{2013}\u{81}",
            ),
            (
                "&#0;&#xD800;&#x110000;&#99999999999;",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("&#;&#x;&;&&&", "&#;&#x;&;&&&", "&#;&#x;&;&&&"),
            ("&nosuch;&é;", "&nosuch;&é;", "&nosuch;&é;"),
            ("&amp;amp;", "&amp;", "&amp;"),
            ("plain", "plain", "plain"),
        ] {
            assert_eq!(
                decode(raw, Place::Attribute),
                attribute,
                "{raw} in an attribute"
            );
            assert_eq!(decode(raw, Place::Text), text, "{raw} in a text");
        }
    }

    #[test]
    fn a_text_without_references_is_not_copied() {
        assert!(matches!(decode("plain", Place::Text), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn they_are_decoded_as_by_a_whole_parser(pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "&", "&#", "&#x", ";", "=", "amp", "AMP", "copy", "not", "notin", "it", "lt", "gt", "quot", "para", "x", "0", "9",
                "80", "9f", "d800", "10ffff", "fdd0", "sect", "hellip", "CounterClockwiseContourIntegral", "acE", " ", "é",
            ]).prop_map(str::to_owned),
            "[a-zA-Z]{1,4}",
        ], 0..12)) {
            let raw = pieces.concat();
            for place in [Place::Attribute, Place::Text] {
                prop_assert_eq!(decode(&raw, place).into_owned(), by_tree(&raw, place), "{:?} {:?}", raw, place);
            }
        }
    }
}
