//! The encoding of a body: byte-order mark, header, declaration, detection, in this order (HTML standard §13.2.3.2).

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

use crate::canon::HostKey;

use super::CharsetFrom;
use super::media::Markup;
use super::prescan::{by_label, in_meta, in_utf16_declaration, in_xml_declaration};

/// How far a `<meta>` is looked for. A browser's prescan ends at 1,024 bytes, yet its parser heeds a later one, too;
/// here one scan does both.
const SCANNED_BYTES: usize = 256 * 1024;

/// How many bytes the detector is fed; its guess is settled long before.
const DETECTED_BYTES: usize = 256 * 1024;

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
        Markup::Html => in_utf16_declaration(scanned)
            .or_else(|| in_meta(scanned))
            .or_else(|| in_xml_declaration(scanned)),
        markup if markup.is_xml() => {
            in_utf16_declaration(scanned).or_else(|| in_xml_declaration(scanned))
        }
        _ => None,
    };
    if let Some(encoding) = declared {
        return (encoding, CharsetFrom::Meta);
    }
    if body.is_ascii() {
        return (UTF_8, CharsetFrom::Default);
    }
    (detect(body, host), CharsetFrom::Detected)
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
