//! From bytes to text, piece by piece.

use encoding_rs::{Decoder, Encoding, UTF_8};

use crate::extract::prescan;

/// Bytes that are waited for before the encoding is settled: an XML declaration is shorter.
const HEAD: usize = 256;

/// Bytes as they come, and what they mean.
#[derive(Debug)]
pub(super) struct Decoding {
    label: Option<&'static Encoding>,
    head: Vec<u8>,
    decoder: Option<Decoder>,
}

impl Decoding {
    pub(super) fn new(charset: Option<&str>) -> Decoding {
        Decoding {
            label: charset.and_then(|label| Encoding::for_label(label.as_bytes())),
            head: Vec::new(),
            decoder: None,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], text: &mut String) {
        if self.decoder.is_some() {
            return self.decode(bytes, text, false);
        }
        self.head.extend_from_slice(bytes);
        if self.head.len() >= HEAD {
            self.begin(text, false);
        }
    }

    pub(super) fn finish(&mut self, text: &mut String) {
        match self.decoder {
            Some(_) => self.decode(&[], text, true),
            None => self.begin(text, true),
        }
        self.decoder = None;
        self.head = Vec::new();
    }

    fn begin(&mut self, text: &mut String, last: bool) {
        let head = std::mem::take(&mut self.head);
        let encoding = of_bytes(&head)
            .or(self.label)
            .or_else(|| prescan::in_xml_declaration(declaration(&head)))
            .unwrap_or(UTF_8);
        // A byte-order mark outranks all that was said.
        self.decoder = Some(encoding.new_decoder());
        self.decode(&head, text, last);
    }

    fn decode(&mut self, mut bytes: &[u8], text: &mut String, last: bool) {
        let Some(decoder) = &mut self.decoder else {
            return;
        };
        loop {
            // The longest that may come of it, or the loop goes round again.
            text.reserve(
                decoder
                    .max_utf8_buffer_length(bytes.len())
                    .unwrap_or(bytes.len()),
            );
            let (result, read, _) = decoder.decode_to_string(bytes, text, last);
            bytes = &bytes[read..];
            if result == encoding_rs::CoderResult::InputEmpty {
                return;
            }
        }
    }
}

/// What the bytes themselves say: UTF-16 without its mark.
fn of_bytes(head: &[u8]) -> Option<&'static Encoding> {
    match head {
        [0, b'<', ..] => Some(encoding_rs::UTF_16BE),
        [b'<', 0, ..] => Some(encoding_rs::UTF_16LE),
        _ => None,
    }
}

/// From the declaration on: blanks and marks before it are no reason not to believe it.
fn declaration(head: &[u8]) -> &[u8] {
    let at = memchr::memmem::find(head, b"<?xml").unwrap_or(0);
    &head[at..]
}

/// White space of any script, byte-order marks and other characters that nobody sees.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

/// A text without the blanks that it begins with.
pub(super) fn without_blanks(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}
