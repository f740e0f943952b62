//! A fingerprint of a page's text that differs little where the text does (Charikar 2002; Manku, Jain and Das Sarma 2007).
//!
//! Fingerprints are stored and compared for years, so everything here is fixed: whoever changes a rule raises [`VERSION`], and
//! fingerprints of different versions have nothing to do with each other.
//!
//! - **Text**: what stands between tags, without comments and without what `<script>`, `<style>`, `<template>`, `<noscript>` and
//!   `<title>` hold. Not a parser: a fingerprint need not know how browsers mend a broken page, only do the same each time. Character references are
//!   read as written.
//! - **Words**: runs of ASCII letters (in lower case), digits, and what is neither ASCII, a no-break space nor of U+2000 to U+2E7F
//!   (punctuation and symbols). From U+2E80 on, where scripts are written without blanks, each character is a word.
//! - **Features**: each three words in a row. A word is hashed piece by piece: runs of ASCII letters and digits in pieces of eight bytes (the last of
//!   what is left), every other character as a piece. A piece is a little-endian number, filled up with zeros; to the hash so far it does
//!   `fold((hash ^ piece) * FACTOR)`, where `fold` xors both halves of the product of 128 bits. Three words come to
//!   `mix(a + rotl(b, 21) + rotl(c, 42))`, where `mix` is the finaliser of MurmurHash3 and sums wrap.
//! - **Fingerprint**: a bit is 1 where it is 1 in more than half of the features, each counted as often as it occurs.

/// Raise it when any rule above changes.
pub const VERSION: u32 = 2;

/// Words below which a text has no fingerprint: of some words, each is too much of it.
pub const MIN_WORDS: usize = 32;

/// The hash of nothing, and what it is multiplied with: the golden ratio and the square root of three, their first 64 bits after the point.
const NO_WORD: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xbb67_ae85_84ca_a73b;

/// Set in all ASCII letters and digits that are lower case, and in no other of them.
const LOWER: u64 = 0x2020_2020_2020_2020;

/// Elements whose content is no visible text, in the order in which they are asked.
const HIDDEN: [&[u8]; 5] = [b"script", b"style", b"template", b"noscript", b"title"];

/// The fingerprint of an HTML page's visible text; `None` below [`MIN_WORDS`]. Time is linear in the length.
pub fn of_html(html: &str) -> Option<u64> {
    let mut sketch = Sketch::default();
    let mut rest = html.as_bytes();
    while let Some(at) = memchr::memchr(b'<', rest) {
        sketch.text(&rest[..at]);
        rest = &rest[at..];
        match rest.get(1) {
            Some(b'!') if rest.starts_with(b"<!--") => rest = after(rest, b"-->", 4),
            Some(b'a'..=b'z' | b'A'..=b'Z') => {
                let hidden = HIDDEN.iter().find(|name| is_tag(&rest[1..], name));
                rest = after_tag(rest);
                if let Some(name) = hidden {
                    rest = after_element(rest, name);
                }
            }
            Some(b'/' | b'!' | b'?') => rest = after_tag(rest),
            // A sign of its own.
            _ => rest = &rest[1..],
        }
    }
    sketch.text(rest);
    sketch.finish()
}

/// The fingerprint of a text of this media type.
pub fn of(media_type: Option<&str>, text: &str) -> Option<u64> {
    match media_type {
        Some(name) if name.contains("html") || name.ends_with("xml") => of_html(text),
        _ => of_text(text),
    }
}

/// The fingerprint of plain text; `None` below [`MIN_WORDS`].
pub fn of_text(text: &str) -> Option<u64> {
    let mut sketch = Sketch::default();
    sketch.text(text.as_bytes());
    sketch.finish()
}

fn is_tag(rest: &[u8], name: &[u8]) -> bool {
    rest.len() > name.len()
        && rest[..name.len()].eq_ignore_ascii_case(name)
        && !rest[name.len()].is_ascii_alphanumeric()
        && rest[name.len()] != b'-'
}

fn after<'a>(rest: &'a [u8], end: &[u8], from: usize) -> &'a [u8] {
    let found = rest
        .get(from..)
        .and_then(|rest| memchr::memmem::find(rest, end));
    found.map_or(&[], |at| &rest[from + at + end.len()..])
}

/// What follows a tag; a `>` in quotes does not end it.
fn after_tag(mut rest: &[u8]) -> &[u8] {
    loop {
        let Some(at) = memchr::memchr3(b'>', b'"', b'\'', rest) else {
            return &[];
        };
        let sign = rest[at];
        rest = &rest[at + 1..];
        if sign == b'>' {
            return rest;
        }
        let Some(end) = memchr::memchr(sign, rest) else {
            return rest;
        };
        rest = &rest[end + 1..];
    }
}

/// What follows the end tag of an element whose start tag was just read.
fn after_element<'a>(mut rest: &'a [u8], name: &[u8]) -> &'a [u8] {
    while let Some(at) = memchr::memmem::find(rest, b"</") {
        rest = &rest[at + 2..];
        if is_tag(rest, name) {
            return after_tag(rest);
        }
    }
    &[]
}

/// What a text comes to, word by word.
#[derive(Default)]
struct Sketch {
    words: usize,
    /// Hashes of the last two words.
    last: [u64; 2],
    counts: Counts,
}

impl Sketch {
    /// Takes a piece of text; a word ends with it.
    fn text(&mut self, text: &[u8]) {
        let mut word = NO_WORD;
        let mut at = 0;
        while at < text.len() {
            let bytes = eight(&text[at..]);
            let length = alphanumerics(bytes);
            if length > 0 {
                let taken = bytes & (u64::MAX >> (64 - 8 * length));
                word = hashed(word, taken | LOWER & (u64::MAX >> (64 - 8 * length)));
                at += length;
                continue;
            }
            let (length, sort) = match text[at] {
                ..0x80 => (1, Sort::Gap),
                _ => sort_of(&text[at..]),
            };
            let end = (at + length).min(text.len());
            if sort != Sort::Letter && word != NO_WORD {
                self.word(std::mem::replace(&mut word, NO_WORD));
            }
            if sort != Sort::Gap {
                word = hashed(word, eight(&text[at..end]));
            }
            if sort == Sort::Word {
                self.word(std::mem::replace(&mut word, NO_WORD));
            }
            at = end;
        }
        if word != NO_WORD {
            self.word(word);
        }
    }

    fn word(&mut self, word: u64) {
        let [first, second] = self.last;
        self.last = [second, word];
        self.words += 1;
        if self.words >= 3 {
            let sum = first
                .wrapping_add(second.rotate_left(21))
                .wrapping_add(word.rotate_left(42));
            self.counts.add(mix(sum));
        }
    }

    fn finish(self) -> Option<u64> {
        (self.words >= MIN_WORDS).then(|| self.counts.majority(self.words - 2))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Part of a word.
    Letter,
    /// A word of its own.
    Word,
    /// Between words.
    Gap,
}

/// Length and sort of a character that is not ASCII, by its UTF-8.
fn sort_of(text: &[u8]) -> (usize, Sort) {
    match *text {
        [0xC2, 0xA0, ..] => (2, Sort::Gap),
        [..0xE0, ..] => (2, Sort::Letter),
        [0xE2, second, ..] => match second {
            ..0xBA => (3, Sort::Gap),
            _ => (3, Sort::Word),
        },
        [0xE0 | 0xE1, ..] => (3, Sort::Letter),
        [..0xF0, ..] => (3, Sort::Word),
        _ => (4, Sort::Word),
    }
}

/// The first eight bytes of a text, the first one lowest; zeros where it ends.
fn eight(text: &[u8]) -> u64 {
    if let Some(bytes) = text.first_chunk() {
        return u64::from_le_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes[..text.len()].copy_from_slice(text);
    u64::from_le_bytes(bytes)
}

/// How many of eight bytes, from the first on, are ASCII letters and digits; all eight are looked at at once.
fn alphanumerics(bytes: u64) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Sums of bytes below 0x80 do not reach the next byte.
    let low = bytes & !HIGH;
    let within = |bytes: u64, from: u8, to: u8| {
        let above = bytes + ONES * u64::from(0x80 - from);
        let beyond = bytes + ONES * u64::from(0x7f - to);
        above & !beyond
    };
    let found = (within(low | LOWER, b'a', b'z') | within(low, b'0', b'9')) & !bytes & HIGH;
    (found ^ HIGH).trailing_zeros() as usize / 8
}

fn hashed(hash: u64, bytes: u64) -> u64 {
    let product = u128::from(hash ^ bytes) * u128::from(FACTOR);
    (product >> 64) as u64 ^ product as u64
}

fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// How often each of 64 bits was set. Digit `d` of all 64 counters stands in word `d`; carries run through most digits at each addition, so eight
/// features at a time are added by full adders first (Harley and Seal), which is four times as fast.
#[derive(Default)]
struct Counts {
    digits: [u64; 32],
    waiting: [u64; 8],
    waits: usize,
}

impl Counts {
    fn add(&mut self, bits: u64) {
        self.waiting[self.waits] = bits;
        self.waits += 1;
        if self.waits == self.waiting.len() {
            self.waits = 0;
            self.add_waiting();
        }
    }

    fn add_waiting(&mut self) {
        let [a, b, c, d, e, f, g, h] = self.waiting;
        let [ones, twos, fours, ..] = self.digits;
        let (ones, twos_1) = sum(ones, a, b);
        let (ones, twos_2) = sum(ones, c, d);
        let (twos, fours_1) = sum(twos, twos_1, twos_2);
        let (ones, twos_1) = sum(ones, e, f);
        let (ones, twos_2) = sum(ones, g, h);
        let (twos, fours_2) = sum(twos, twos_1, twos_2);
        let (fours, eights) = sum(fours, fours_1, fours_2);
        self.digits[0] = ones;
        self.digits[1] = twos;
        self.digits[2] = fours;
        self.carry(eights, 3);
    }

    /// Adds one to the digit `from` of the counters of these bits.
    fn carry(&mut self, mut bits: u64, from: usize) {
        for digit in &mut self.digits[from..] {
            let next = *digit & bits;
            *digit ^= bits;
            bits = next;
            if bits == 0 {
                return;
            }
        }
    }

    /// Bits set in more than half of `all`.
    fn majority(mut self, all: usize) -> u64 {
        for place in 0..self.waits {
            self.carry(self.waiting[place], 0);
        }
        let count = |bit: usize| -> usize {
            let digits = self.digits.iter().enumerate();
            digits
                .map(|(place, digit)| (((digit >> bit) & 1) as usize) << place)
                .sum()
        };
        (0..64)
            .filter(|&bit| count(bit) * 2 > all)
            .fold(0, |bits, bit| bits | 1 << bit)
    }
}

/// Sum and carry of three digits.
fn sum(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, (a & b) | (half & c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(range: std::ops::Range<u32>) -> String {
        range.map(|n| format!("word{n} ")).collect()
    }

    fn distance(one: &str, other: &str) -> u32 {
        (of_html(one).unwrap() ^ of_html(other).unwrap()).count_ones()
    }

    /// A word as numbers, byte by byte.
    fn pieces(word: &str) -> Vec<u64> {
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        let mut goes_on = false;
        for c in word.chars() {
            let bytes = c.to_lowercase().collect::<String>().into_bytes();
            let bytes = if c.is_ascii() {
                bytes
            } else {
                c.to_string().into_bytes()
            };
            match pieces.last_mut() {
                Some(piece) if goes_on && c.is_ascii() && piece.len() < 8 => piece.extend(bytes),
                _ => pieces.push(bytes),
            }
            goes_on = c.is_ascii();
        }
        let number = |piece: Vec<u8>| {
            piece
                .iter()
                .rev()
                .fold(0, |n, byte| n << 8 | u64::from(*byte))
        };
        pieces.into_iter().map(number).collect()
    }

    /// The rules of the module, told in the plainest way.
    fn told_plainly(words: &[&str]) -> u64 {
        let hashes: Vec<u64> = words
            .iter()
            .map(|word| {
                let pieces = pieces(word).into_iter();
                pieces.fold(0x9e37_79b9_7f4a_7c15, |hash: u64, piece| {
                    let product = u128::from(hash ^ piece) * 0xbb67_ae85_84ca_a73b;
                    (product >> 64) as u64 ^ (product & u128::from(u64::MAX)) as u64
                })
            })
            .collect();
        let features: Vec<u64> = hashes
            .windows(3)
            .map(|w| {
                mix(w[0]
                    .wrapping_add(w[1].rotate_left(21))
                    .wrapping_add(w[2].rotate_left(42)))
            })
            .collect();
        (0..64)
            .filter(|bit| {
                features.iter().filter(|f| **f >> bit & 1 == 1).count() * 2 > features.len()
            })
            .fold(0, |bits, bit| bits | 1 << bit)
    }

    #[test]
    fn a_fingerprint_is_what_its_rules_say() {
        let text = words(0..500);
        let list: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(of_text(&text), Some(told_plainly(&list)));
        let mixed =
            "Ärger 東京 über‘x’ a\u{a0}b naïve—yes Donaudampfschiffahrt\u{c4}MTER-7 ".repeat(9);
        let list = [
            "\u{c4}rger",
            "東",
            "京",
            "über",
            "x",
            "a",
            "b",
            "naïve",
            "yes",
            "donaudampfschiffahrt\u{c4}mter",
            "7",
        ]
        .repeat(9);
        assert_eq!(of_text(&mixed), Some(told_plainly(&list)));
    }

    /// Stored fingerprints depend on it: these numbers may not change without a new version.
    #[test]
    fn fingerprints_are_those_of_version_2() {
        assert_eq!(VERSION, 2);
        let page = format!(
            "<html><title>t</title><body><h1>One</h1><p>{}</p>",
            words(0..60)
        );
        assert_eq!(of_html(&page), Some(7485334164416647196));
        assert_eq!(of_text(&words(0..32)), Some(7780128348496648412));
        assert_eq!(
            of_text(&"東京は夜の七時、".repeat(8)),
            Some(10201810990051729332)
        );
    }

    #[test]
    fn markup_scripts_and_comments_are_no_text() {
        let plain = format!("<p>{}</p>", words(0..40));
        let dressed = format!(
            "<!doctype html><title>none</title><script>var a = '<p>x</p>';</script><style>p {{}}</style>\
             <div title=\"a > b\"><!-- hidden <b>words</b> --><ul><li>{}</li></ul></div>\
             <noscript>turn it on</noscript><template><p>later</p></template>",
            words(0..40).to_uppercase()
        );
        assert_eq!(of_html(&plain), of_html(&dressed));
        assert_eq!(of_html(&plain), of_text(&words(0..40)));
    }

    #[test]
    fn texts_that_differ_a_little_are_near_and_others_far() {
        let one = format!("<p>{}</p>", words(0..2_000));
        let near = format!("<p>{} updated 3 minutes ago</p>", words(0..2_000));
        let other = format!("<p>{}</p>", words(5_000..7_000));
        assert!(distance(&one, &near) <= 3, "{}", distance(&one, &near));
        assert!(distance(&one, &other) > 16, "{}", distance(&one, &other));
    }

    #[test]
    fn letters_and_digits_are_told_from_all_other_bytes_wherever_they_stand() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let mut bytes = [b'a'; 8];
                bytes[place] = byte;
                let expected = if byte.is_ascii_alphanumeric() {
                    8
                } else {
                    place
                };
                let found = alphanumerics(u64::from_le_bytes(bytes));
                assert_eq!(found, expected, "{byte:#x} at {place}");
            }
        }
    }

    #[test]
    fn few_words_have_no_fingerprint() {
        assert_eq!(of_text(&words(0..31)), None);
        assert!(of_text(&words(0..32)).is_some());
        assert_eq!(of_html(""), None);
    }

    #[test]
    fn unfinished_markup_ends_the_text_and_nothing_else() {
        for tail in [
            "<",
            "<p",
            "<!--",
            "<a href=\"x",
            "<script>",
            "</",
            "<a '",
            "\u{e9}",
        ] {
            let page = format!("{}{tail}", words(0..40));
            assert!(of_html(&page).is_some(), "{tail}");
        }
        assert_eq!(of_html("a < b"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_the_same_one_twice(text in ".*") {
            proptest::prop_assert_eq!(of_html(&text), of_html(&text));
        }
    }
}
