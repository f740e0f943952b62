//! Texts of titles and headings, and how they are tidied.

use std::borrow::Cow;

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
    let text = match memchr::memchr(0, text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace('\0', "")),
        None => Cow::Borrowed(text),
    };
    let mut out = String::new();
    let mut left = max_chars;
    for word in text.split_whitespace() {
        let gap = usize::from(!out.is_empty());
        if left <= gap {
            break;
        }
        if gap > 0 {
            out.push(' ');
            left -= gap;
        }
        match word.char_indices().nth(left) {
            Some((end, _)) => {
                out.push_str(&word[..end]);
                break;
            }
            None => {
                out.push_str(word);
                left -= word.chars().count();
            }
        }
    }
    (!out.is_empty()).then_some(out)
}
