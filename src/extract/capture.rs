//! Texts of titles and headings, and how they are tidied.

use super::entities::{self, Place};

/// What is buffered of a title or heading before its references are decoded, in bytes: the longest names take 33 a
/// character.
const MAX_CAPTURED_BYTES: usize = 64 * 1024;

/// Where text is collected until its element ends; the first that has any counts.
pub(super) struct Capture {
    limit: usize,
    pub(super) open: bool,
    raw: String,
    value: Option<String>,
}

impl Capture {
    pub(super) fn new(limit: usize) -> Capture {
        Capture {
            limit,
            open: false,
            raw: String::new(),
            value: None,
        }
    }

    /// Whether no element had a text so far.
    pub(super) fn is_empty(&self) -> bool {
        self.value.is_none()
    }

    /// Adds a text as it is written, if one is wanted.
    pub(super) fn push(&mut self, text: &str) {
        if self.open {
            self.push_str(text);
        }
    }

    fn push_str(&mut self, text: &str) {
        if self.raw.len() < MAX_CAPTURED_BYTES {
            self.raw
                .push_str(&text[..text.floor_char_boundary(MAX_CAPTURED_BYTES)]);
        }
    }

    /// Adds a text whose references are decoded already, as words of their own.
    pub(super) fn push_decoded(&mut self, text: &str) {
        if self.open && !text.trim().is_empty() {
            self.push_str(" ");
            self.push_str(&text.replace('&', "&amp;"));
            self.push_str(" ");
        }
    }

    /// Ends the text at hand and gives it away.
    pub(super) fn take(&mut self) -> Option<String> {
        self.close();
        self.value.take()
    }

    pub(super) fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.value = tidy(&entities::decode(&self.raw, Place::Text), self.limit);
            self.raw.clear();
        }
    }
}

/// The text with its white space collapsed, without NUL, cut after so many characters; `None` if nothing is left.
pub(super) fn tidy(text: &str, max_chars: usize) -> Option<String> {
    let mut out = String::new();
    let (mut count, mut gap) = (0, false);
    for c in text.chars().filter(|c| *c != '\0') {
        if c.is_whitespace() {
            gap = count > 0;
            continue;
        }
        let needed = 1 + usize::from(gap);
        if count + needed > max_chars {
            break;
        }
        if std::mem::take(&mut gap) {
            out.push(' ');
        }
        out.push(c);
        count += needed;
    }
    (count > 0).then_some(out)
}
