//! The attribute states (HTML standard §13.2.5.32 to §13.2.5.40).

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use super::super::super::entities::{self, Place};
use super::Tag;
use super::scan::{self, is_blank};

/// Attributes of a tag that are kept; what nobody wrote by hand need not be remembered.
const MAX_ATTRIBUTES: usize = 1_024;

/// Where an attribute stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
}

/// Where a tag ends.
#[derive(Debug)]
pub(super) struct End {
    /// Behind its `>`.
    pub(super) at: usize,
    pub(super) is_self_closing: bool,
}

/// Reads from behind a tag's name to its end; `None` if it has none.
#[inline]
pub(super) fn read(bytes: &[u8], at: usize, found: Option<&mut Vec<Attribute>>) -> Option<End> {
    match bytes.get(at) {
        Some(b'>') => Some(end(at, false)),
        _ => read_all(bytes, at, found),
    }
}

fn read_all(bytes: &[u8], mut at: usize, mut found: Option<&mut Vec<Attribute>>) -> Option<End> {
    let mut keep = |name: Range<usize>, value: Range<usize>| {
        if let Some(found) = &mut found
            && found.len() < MAX_ATTRIBUTES
        {
            found.push(Attribute { name, value });
        }
    };
    loop {
        // Before attribute name, after attribute value (quoted), self-closing start tag: what may stand there differs in errors only.
        match *bytes.get(at)? {
            b'>' => return Some(end(at, false)),
            b'/' if *bytes.get(at + 1)? == b'>' => return Some(end(at + 1, true)),
            byte if byte == b'/' || is_blank(byte) => {
                at += 1;
                continue;
            }
            _ => {}
        }
        // An equals sign at its beginning belongs to the name.
        let name_end = scan::end(bytes, at + 1, [b'/', b'>', b'=']);
        let name = at..name_end;
        let equals = behind_blanks(bytes, name_end);
        if *bytes.get(equals)? != b'=' {
            keep(name, equals..equals);
            at = equals;
            continue;
        }
        let value = behind_blanks(bytes, equals + 1);
        match *bytes.get(value)? {
            quote @ (b'"' | b'\'') => {
                let value_end = scan::next(quote, bytes, value + 1)?;
                keep(name, value + 1..value_end);
                at = value_end + 1;
            }
            b'>' => {
                keep(name, value..value);
                return Some(end(value, false));
            }
            _ => {
                at = scan::end(bytes, value, [b'>']);
                keep(name, value..at);
            }
        }
    }
}

#[inline]
fn end(sign: usize, is_self_closing: bool) -> End {
    End {
        at: sign + 1,
        is_self_closing,
    }
}

#[inline]
fn behind_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

impl<'t> Tag<'_, 't> {
    /// The value of the first attribute of this name (in lower case), as it is written.
    #[inline]
    fn raw(&self, name: &str) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        let found = self
            .attributes
            .iter()
            .find(|found| bytes[found.name.clone()].eq_ignore_ascii_case(name.as_bytes()))?;
        Some(&self.text[found.value.clone()])
    }

    pub(in crate::extract::html) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// An attribute's value, its references decoded.
    #[inline]
    pub(in crate::extract::html) fn attribute(&self, name: &str) -> Option<Cow<'t, str>> {
        self.raw(name).map(decoded)
    }
}

/// A value, its references decoded.
#[inline]
pub(super) fn decoded(value: &str) -> Cow<'_, str> {
    match memchr2(b'&', 0, value.as_bytes()) {
        None => Cow::Borrowed(value),
        Some(_) if value.contains('\0') => {
            let value = value.replace('\0', "\u{fffd}");
            Cow::Owned(entities::decode(&value, Place::Attribute).into_owned())
        }
        Some(_) => entities::decode(value, Place::Attribute),
    }
}
