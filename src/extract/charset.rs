//! The encoding of a body: byte-order mark, header, declaration, detection, in this order (HTML standard §13.2.3.2).

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::canon::HostKey;

use super::CharsetFrom;
use super::media::Markup;

/// How far a `<meta>` is looked for. A browser's prescan ends at 1,024 bytes, yet its parser heeds a later one, too;
/// here one scan does both.
const SCANNED_BYTES: usize = 256 * 1024;

/// How many bytes the detector is fed; its guess is settled long before.
const DETECTED_BYTES: usize = 256 * 1024;

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

/// A decoded body.
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) encoding: &'static Encoding,
    pub(super) from: CharsetFrom,
}

/// Decodes a body; what cannot be decoded becomes U+FFFD. An unknown label is as good as none.
pub(super) fn decode(body: &[u8], label: Option<&str>, markup: Markup, host: &HostKey) -> Decoded {
    let (encoding, from, mark) = match Encoding::for_bom(body) {
        Some((encoding, mark)) => (encoding, CharsetFrom::Bom, mark),
        None => {
            let (encoding, from) = choose(body, label, markup, host);
            (encoding, from, 0)
        }
    };
    let (text, _) = encoding.decode_without_bom_handling(&body[mark..]);
    Decoded {
        text: text.into_owned(),
        encoding,
        from,
    }
}

fn choose(
    body: &[u8],
    label: Option<&str>,
    markup: Markup,
    host: &HostKey,
) -> (&'static Encoding, CharsetFrom) {
    if let Some(encoding) = label.and_then(|label| by_label(label.as_bytes())) {
        return (encoding, CharsetFrom::Header);
    }
    let scanned = &body[..body.len().min(SCANNED_BYTES)];
    let declared = match markup {
        Markup::Html => in_meta(scanned).or_else(|| in_xml_declaration(scanned)),
        Markup::Xml => in_xml_declaration(scanned),
        Markup::None => None,
    };
    if let Some(encoding) = declared {
        return (encoding, CharsetFrom::Meta);
    }
    if body.is_ascii() {
        return (UTF_8, CharsetFrom::Default);
    }
    (detect(body, host), CharsetFrom::Detected)
}

/// The encoding of a label. Those that the Encoding standard replaces by an error, as they were abused for attacks on
/// browsers, count as unknown: a crawler runs no scripts, and a guess loses less.
fn by_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label)
}

fn detect(body: &[u8], host: &HostKey) -> &'static Encoding {
    // A cut body may end within a character.
    if std::str::from_utf8(body).map_or_else(|error| error.error_len().is_none(), |_| true) {
        return UTF_8;
    }
    let head = &body[..body.len().min(DETECTED_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(head, head.len() == body.len());
    let tld = host
        .host()
        .rsplit('.')
        .next()
        .filter(|tld| tld.bytes().all(|byte| byte.is_ascii_lowercase()));
    detector.guess(
        tld.filter(|tld| !tld.is_empty()).map(str::as_bytes),
        Utf8Detection::Allow,
    )
}

/// The encoding that a `<meta>` names (HTML standard, "prescan a byte stream to determine its encoding"; unlike that,
/// the contents of scripts and the like are skipped, as a parser would).
fn in_meta(bytes: &[u8]) -> Option<&'static Encoding> {
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
    if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE {
        UTF_8
    } else if encoding == encoding_rs::X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

/// The label in `text/html; charset=…` (HTML standard, "extracting a character encoding from a meta element").
pub(super) fn in_content(content: &str) -> Option<String> {
    let mut rest = content;
    loop {
        let lower = rest.to_ascii_lowercase();
        let after = rest[lower.find("charset")? + "charset".len()..].trim_ascii_start();
        let Some(value) = after.strip_prefix('=') else {
            rest = after;
            continue;
        };
        let value = value.trim_ascii_start();
        let label = match value.chars().next()? {
            quote @ ('"' | '\'') => value[1..].split_once(quote)?.0,
            _ => value
                .split(|c: char| c == ';' || c.is_ascii_whitespace())
                .next()?,
        };
        return Some(label.to_owned());
    }
}

/// The encoding that `<?xml … encoding="…"?>` names (XML 1.0 §4.3.3).
fn in_xml_declaration(bytes: &[u8]) -> Option<&'static Encoding> {
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
