//! The rules of the key, applied to a URL that the WHATWG parser has serialised; see the module's list.

use std::borrow::Cow;

use url::{Position, Url};

use super::Canon;

/// The key of a URL without fragment and userinfo. Borrowed where the URL is its own key, as most are.
pub(super) fn canonical<'a>(url: &'a Url, canon: &Canon) -> Cow<'a, str> {
    let query = url.query();
    let options = canon.options();
    if query.is_none() && !url.path().contains('%') && options.is_none() {
        return Cow::Borrowed(url.as_str());
    }
    let mut key = String::with_capacity(url.as_str().len());
    key.push_str(&url[..Position::BeforePath]);
    let path = escapes(url.path());
    match options {
        None => key.push_str(&path),
        Some(options) => options.path(&path, &mut key),
    }
    let query = query.map(escapes).unwrap_or_default();
    let mut pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    if let Some(options) = options {
        options.pairs(url, &mut pairs);
    }
    // Stable, so that the pairs of one name keep their order.
    pairs.sort_by_key(|pair| pair.split_once('=').map_or(*pair, |(name, _)| name));
    for (n, pair) in pairs.into_iter().enumerate() {
        key.push(if n == 0 { '?' } else { '&' });
        key.push_str(pair);
    }
    Cow::Owned(key)
}

/// Writes the percent escapes of a path or query in their one form (rules 3 to 5).
pub(super) fn escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    // Where the last percent sign without its two digits stands in `out`.
    let mut lone: Option<usize> = None;
    let mut rest = 0;
    while let Some(at) = text[rest..].find('%').map(|at| rest + at) {
        out.push_str(&text[rest..at]);
        rest = at + 1;
        let Some((high, low)) = digits(bytes, at) else {
            lone = Some(out.len());
            out.push('%');
            continue;
        };
        let octet = high << 4 | low;
        if is_unreserved(octet) && !completes_escape(&out, lone, octet) {
            out.push(char::from(octet));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(char::from(HEX[usize::from(high)]));
            out.push(char::from(HEX[usize::from(low)]));
        }
        rest = at + 3;
    }
    out.push_str(&text[rest..]);
    Cow::Owned(out)
}

/// The text in the one form of its escapes, with letters beyond ASCII escaped as a path has them (UTF-8).
pub(crate) fn percent_encoded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return escapes(text);
    }
    let mut out = String::with_capacity(3 * text.len());
    for byte in text.bytes() {
        match byte.is_ascii() {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Cow::Owned(escapes(&out).into_owned())
}

/// The values of the two hexadecimal digits after the percent sign at `at`, if they are there.
fn digits(bytes: &[u8], at: usize) -> Option<(u8, u8)> {
    let value = |at: usize| {
        char::from(*bytes.get(at)?)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    Some((value(at + 1)?, value(at + 2)?))
}

fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// Whether this character, appended, would be read as a digit of an escape that the text does not have.
fn completes_escape(out: &str, lone: Option<usize>, octet: u8) -> bool {
    let Some(after) = lone.map(|at| &out.as_bytes()[at + 1..]) else {
        return false;
    };
    octet.is_ascii_hexdigit()
        && (after.is_empty() || (after.len() == 1 && after[0].is_ascii_hexdigit()))
}

/// The scheme that an operator wrote before a colon, if it is a scheme and not a host before its port.
pub(super) fn typed_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let port = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (named && !is_port).then_some(scheme)
}
