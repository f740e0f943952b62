//! `srcset`: URLs, each with a width or a density (HTML standard §4.8.4.3.10, "parsing a srcset attribute").

/// The URLs of a `srcset`. A comma within one is part of it, one at its end is not.
pub(super) fn urls(srcset: &str) -> impl Iterator<Item = &str> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        if url.ends_with(',') {
            rest = after;
            return Some(url.trim_end_matches(','));
        }
        rest = &after[end_of_descriptors(after)..];
        Some(url)
    })
}

/// Where the next comma is that does not stand in parentheses.
fn end_of_descriptors(text: &str) -> usize {
    let mut is_open = false;
    text.bytes()
        .position(|byte| {
            match byte {
                b'(' => is_open = true,
                b')' => is_open = false,
                _ => {}
            }
            byte == b',' && !is_open
        })
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_end_at_blanks_and_keep_their_commas() {
        for (srcset, expected) in [
            ("a 1x, b 2x", &["a", "b"][..]),
            ("a,b", &["a,b"]),
            ("a, b,", &["a", "b"]),
            (",, a 100w ,b", &["a", "b"]),
            (
                "data:image/png;base64,AA== 1x, /b?x=1,2 2x",
                &["data:image/png;base64,AA==", "/b?x=1,2"],
            ),
            ("a (1,2) 3x, b", &["a", "b"]),
            ("a (1, b", &["a"]),
            (" \n", &[]),
            ("é 1x", &["é"]),
        ] {
            assert_eq!(urls(srcset).collect::<Vec<_>>(), expected, "{srcset}");
        }
    }
}
