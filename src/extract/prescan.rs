//! The encoding that a body declares within itself: `<meta>` and the XML declaration.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Elements whose content is no markup.
const RAW_ELEMENTS: [&[u8]; 7] = [
    b"script",
    b"style",
    b"title",
    b"textarea",
    b"xmp",
    b"iframe",
    b"noframes",
];

/// The encoding of a label. Those that the Encoding standard replaces by an error, as they were abused for attacks on
/// browsers, count as unknown: a crawler runs no scripts, and a guess loses less.
pub(super) fn by_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label)
}

/// The encoding that a `<meta>` names (HTML standard, "prescan a byte stream to determine its encoding"; unlike that,
/// the contents of scripts and the like are skipped, as a parser would).
pub(super) fn in_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while let Some(start) = memchr::memchr(b'<', bytes.get(at..)?).map(|found| at + found) {
        let tag = &bytes[start..];
        at = if tag.starts_with(b"<!--") {
            start + 2 + memchr::memmem::find(&tag[2..], b"-->")? + 3
        } else if tag.get(1).is_some_and(u8::is_ascii_alphabetic) {
            let name_len = tag[1..]
                .iter()
                .position(|byte| b" \t\r\n\x0c/>".contains(byte))
                .unwrap_or(tag.len() - 1);
            let name = &tag[1..=name_len];
            let mut attributes = Attributes {
                bytes,
                at: start + 1 + name_len,
            };
            if name.eq_ignore_ascii_case(b"meta") {
                if let Some(encoding) = of_meta(&mut attributes) {
                    return Some(encoding);
                }
            } else {
                attributes.by_ref().for_each(drop);
            }
            match RAW_ELEMENTS
                .iter()
                .find(|raw| name.eq_ignore_ascii_case(raw))
            {
                Some(raw) => attributes.at + end_of_raw(&bytes[attributes.at..], raw)?,
                None => attributes.at,
            }
        } else if matches!(tag.get(1), Some(b'!' | b'/' | b'?')) {
            start + memchr::memchr(b'>', tag)? + 1
        } else {
            start + 1
        };
    }
    None
}

/// Where the end tag of a raw element begins.
fn end_of_raw(bytes: &[u8], name: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(bytes, b"</").find(|at| {
        bytes
            .get(at + 2..at + 2 + name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name))
    })
}

fn of_meta(attributes: &mut Attributes<'_>) -> Option<&'static Encoding> {
    let (mut charset, mut content, mut is_pragma) = (None, None, false);
    for (name, value) in attributes {
        if name.eq_ignore_ascii_case(b"charset") {
            charset = charset.or(by_label(value));
        } else if name.eq_ignore_ascii_case(b"content") {
            content = content.or_else(|| in_content(&String::from_utf8_lossy(value)));
        } else if name.eq_ignore_ascii_case(b"http-equiv") {
            is_pragma |= value.eq_ignore_ascii_case(b"content-type");
        }
    }
    let pragma = content
        .filter(|_| is_pragma)
        .and_then(|label| by_label(label.as_bytes()));
    charset.or(pragma).map(as_ascii_superset)
}

/// A declaration that could be read as ASCII was not written in UTF-16, and `x-user-defined` is a trick of scripts (HTML standard).
fn as_ascii_superset(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == encoding_rs::X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

/// The label in `text/html; charset=…` (HTML standard, "extracting a character encoding from a meta element").
pub(super) fn in_content(content: &str) -> Option<String> {
    let lower = content.to_ascii_lowercase();
    let value = lower.match_indices("charset").find_map(|(at, word)| {
        let after = content[at + word.len()..].trim_ascii_start();
        after.strip_prefix('=').map(str::trim_ascii_start)
    })?;
    let label = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split_once(quote)?.0,
        _ => value
            .split(|c: char| c == ';' || c.is_ascii_whitespace())
            .next()?,
    };
    Some(label.to_owned())
}

/// The encoding that `<?xml … encoding="…"?>` names (XML 1.0 §4.3.3).
pub(super) fn in_xml_declaration(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = bytes.trim_ascii_start().strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let after = &declaration[memchr::memmem::find(declaration, b"encoding")? + b"encoding".len()..];
    let value = after
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let quote = value.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    by_label(value[1..].split(|byte| byte == quote).next()?).map(as_ascii_superset)
}

/// UTF-16 where a body begins with `<?x` in it and without a mark (HTML standard, first step of the prescan).
pub(super) fn in_utf16_declaration(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0") {
        Some(UTF_16LE)
    } else if bytes.starts_with(b"\0<\0?\0x") {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// The attributes of a tag from after its name on; ends behind the tag's `>`.
struct Attributes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Attributes<'a> {
    fn skip(&mut self, set: &[u8]) {
        while self
            .bytes
            .get(self.at)
            .is_some_and(|byte| set.contains(byte))
        {
            self.at += 1;
        }
    }

    fn take_until(&mut self, set: &[u8]) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest
            .iter()
            .position(|byte| set.contains(byte))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        const SPACE: &[u8] = b" \t\r\n\x0c";
        self.skip(b" \t\r\n\x0c/");
        let first = *self.bytes.get(self.at)?;
        if first == b'>' {
            self.at += 1;
            return None;
        }
        let start = self.at;
        self.at += 1;
        self.take_until(b"= \t\r\n\x0c/>");
        let name = &self.bytes[start..self.at];
        self.skip(SPACE);
        if self.bytes.get(self.at) != Some(&b'=') {
            return Some((name, &[]));
        }
        self.at += 1;
        self.skip(SPACE);
        let value = match self.bytes.get(self.at) {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let value = self.take_until(&[*quote]);
                self.at = (self.at + 1).min(self.bytes.len());
                value
            }
            _ => self.take_until(b" \t\r\n\x0c>"),
        };
        Some((name, value))
    }
}
