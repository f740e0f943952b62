//! Searches for a sign that is near as a rule: eight bytes are looked at as one number before a longer search is begun.

use memchr::memchr;

const ONES: u64 = u64::from_le_bytes([0x01; 8]);
pub(super) const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);

/// What the standard calls white space in a tag; the carriage return is one before line breaks are normalised.
#[inline]
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

/// Eight bytes from here, the first one lowest; `None` if there are less.
#[inline(always)]
pub(super) fn eight(bytes: &[u8], from: usize) -> Option<u64> {
    let bytes = bytes.get(from..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The highest bit of each byte that is this one. Where one is, those above it may be marked falsely: only the lowest counts.
#[inline]
pub(super) const fn marked(eight: u64, byte: u8) -> u64 {
    let differing = eight ^ (ONES * byte as u64);
    differing.wrapping_sub(ONES) & !differing & HIGHS
}

/// The same, of each byte up to the blank, which is all white space and some controls.
#[inline]
pub(super) const fn marked_blank(eight: u64) -> u64 {
    eight.wrapping_sub(ONES * 0x21) & !eight & HIGHS
}

/// Which of the eight the lowest mark is at.
#[inline]
pub(super) const fn place(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

/// Eight ASCII characters in lower case.
#[inline]
pub(super) const fn lower(eight: u64) -> u64 {
    let from_a = eight.wrapping_add(ONES * (0x80 - b'A' as u64));
    let above_z = eight.wrapping_add(ONES * (0x7f - b'Z' as u64));
    eight | ((from_a & !above_z & HIGHS) >> 2)
}

/// Where this byte is next.
#[inline(always)]
pub(super) fn next(byte: u8, bytes: &[u8], from: usize) -> Option<usize> {
    let mut from = from;
    if let Some(eight) = eight(bytes, from) {
        let marks = marked(eight, byte);
        if marks != 0 {
            return Some(from + place(marks));
        }
        from += 8;
    }
    memchr(byte, bytes.get(from..)?).map(|found| from + found)
}

/// Where white space or one of these signs is next, else the end.
#[inline(always)]
pub(super) fn end<const N: usize>(bytes: &[u8], from: usize, signs: [u8; N]) -> usize {
    let mut from = from;
    while let Some(eight) = eight(bytes, from) {
        let marks = signs.iter().fold(marked_blank(eight), |marks, sign| {
            marks | marked(eight, *sign)
        });
        if marks == 0 {
            from += 8;
            continue;
        }
        from += place(marks);
        if bytes[from] > b' ' || is_blank(bytes[from]) {
            return from;
        }
        from += 1;
    }
    let rest = bytes.get(from..).unwrap_or_default();
    let found = rest
        .iter()
        .position(|byte| is_blank(*byte) || signs.contains(byte));
    found.map_or(bytes.len(), |found| from + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sign_is_found_wherever_it_stands() {
        for length in 0..40 {
            for at in 0..length {
                for around in [b'x', 0x01, 0x1f, 0x80, 0xff, b'=' - 1, b'?', b'A', b'z'] {
                    for sign in *b"\t\n\x0c\r />=" {
                        let mut bytes = vec![around; length];
                        bytes[at] = sign;
                        for from in 0..=at {
                            assert_eq!(next(sign, &bytes, from), Some(at));
                            assert_eq!(end(&bytes, from, [b'/', b'>', b'=']), at);
                        }
                        assert_eq!(next(sign, &bytes, at + 1), None);
                        assert_eq!(end(&bytes, at + 1, [b'/', b'>', b'=']), length);
                    }
                }
            }
        }
    }

    #[test]
    fn letters_alone_are_put_in_lower_case() {
        for byte in 0..0x80_u8 {
            let expected = u64::from_le_bytes([byte.to_ascii_lowercase(); 8]);
            assert_eq!(lower(u64::from_le_bytes([byte; 8])), expected, "{byte}");
        }
    }
}
