//! The attribute states (HTML standard §13.2.5.32 to §13.2.5.40).

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::super::super::entities::{self, Place};
use super::{Tag, is_blank};

/// Attributes of a tag that are kept; what nobody wrote by hand need not be remembered.
const MAX_ATTRIBUTES: usize = 1_024;

/// An attribute as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::extract::html) struct Attribute<'t> {
    pub(super) name: &'t str,
    pub(super) value: &'t str,
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
pub(super) fn read<'t>(
    text: &'t str,
    mut at: usize,
    mut found: Option<&mut Vec<Attribute<'t>>>,
) -> Option<End> {
    let bytes = text.as_bytes();
    let mut keep = |name: &'t str, value: &'t str| {
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
        let name_end = at + 1 + length(&bytes[at + 1..], ends_name);
        let name = &text[at..name_end];
        let equals = name_end + length(&bytes[name_end..], is_no_blank);
        if *bytes.get(equals)? != b'=' {
            keep(name, "");
            at = equals;
            continue;
        }
        let value = equals + 1 + length(&bytes[equals + 1..], is_no_blank);
        match *bytes.get(value)? {
            quote @ (b'"' | b'\'') => {
                let value_end = value + 1 + memchr(quote, &bytes[value + 1..])?;
                keep(name, &text[value + 1..value_end]);
                at = value_end + 1;
            }
            b'>' => {
                keep(name, "");
                return Some(end(value, false));
            }
            _ => {
                at = value + length(&bytes[value..], |byte| is_blank(byte) || byte == b'>');
                keep(name, &text[value..at]);
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
fn length(bytes: &[u8], ends: impl Fn(u8) -> bool) -> usize {
    bytes
        .iter()
        .position(|&byte| ends(byte))
        .unwrap_or(bytes.len())
}

#[inline]
fn ends_name(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b'/' | b'>' | b'=')
}

#[inline]
fn is_no_blank(byte: u8) -> bool {
    !is_blank(byte)
}

impl<'t> Tag<'_, 't> {
    /// The value of the first attribute of this name (in lower case), as it is written.
    #[inline]
    fn raw(&self, name: &str) -> Option<&'t str> {
        let named = |found: &&Attribute<'_>| found.name.eq_ignore_ascii_case(name);
        self.attributes.iter().find(named).map(|found| found.value)
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
