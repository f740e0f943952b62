//! XHTML made readable as HTML.

use std::borrow::Cow;

/// Elements whose content an HTML parser reads as plain text, and so, where XML closed them at once (`<script src=x/>`),
/// all that follows.
const SWALLOWING: [&str; 8] = [
    "iframe", "noframes", "noscript", "script", "style", "textarea", "title", "xmp",
];

/// What looks like a tag in one of these is none.
const NO_MARKUP: [(&str, &str); 2] = [("<!--", "-->"), ("<![CDATA[", "]]>")];

/// The text with an end tag for each of these elements that has none: `<title/>` becomes `<title></title>`.
pub(super) fn with_end_tags(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(start) = memchr::memchr(b'<', &text.as_bytes()[at..]).map(|found| at + found) {
        let tag = &text[start..];
        at = start + 1;
        if let Some((_, end)) = NO_MARKUP.iter().find(|(begin, _)| tag.starts_with(begin)) {
            at = tag
                .find(end)
                .map_or(text.len(), |found| start + found + end.len());
        } else if let Some(name) = SWALLOWING.iter().find(|name| is_named(tag, name)) {
            let Some(end) = end_of_tag(text, at + name.len()) else {
                break;
            };
            at = end;
            if let Some(tag) = text[copied..end].strip_suffix("/>") {
                out.extend([tag, "></", name, ">"]);
                copied = end;
            }
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

fn is_named(tag: &str, name: &str) -> bool {
    let after = tag.get(1..).and_then(|tag| tag.strip_prefix(name));
    after.is_some_and(|after| {
        after.starts_with(|c: char| c == '/' || c == '>' || c.is_ascii_whitespace())
    })
}

/// The place behind the `>` of the tag, if it ends.
fn end_of_tag(text: &str, from: usize) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_closed_at_once_get_the_end_tag_that_html_needs() {
        for (xhtml, html) in [
            ("<script src='x'/><a/>", "<script src='x'></script><a/>"),
            (
                "<title /><iframe src=\"a/>b\"/>é",
                "<title ></title><iframe src=\"a/>b\"></iframe>é",
            ),
            ("<script>a</script>", "<script>a</script>"),
            (
                "<!-- <title/> --><![CDATA[<title/>]]><br/>",
                "<!-- <title/> --><![CDATA[<title/>]]><br/>",
            ),
            ("<title/><!-- <title/>", "<title></title><!-- <title/>"),
            (
                "<titles/><!-- -->title/><p/>",
                "<titles/><!-- -->title/><p/>",
            ),
            ("<script '/>", "<script '/>"),
            ("<", "<"),
        ] {
            assert_eq!(with_end_tags(xhtml), html);
        }
    }
}
