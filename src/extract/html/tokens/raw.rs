//! Where contents end that are no markup: texts, scripts, comments, declarations.

use memchr::{memchr, memchr_iter, memchr2};

use super::name::{Name, SCRIPT};

/// Where the end tag of this element begins, else the end of all (§13.2.5.9 to §13.2.5.14).
pub(super) fn end_of(bytes: &[u8], from: usize, name: Name) -> usize {
    memchr_iter(b'<', &bytes[from..])
        .map(|found| from + found)
        .find(|&open| is_end_tag(bytes, open, name))
        .unwrap_or(bytes.len())
}

/// How a script is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Data,
    /// Within what looks like a comment.
    Escaped,
    /// Within what looks like a script within a comment.
    DoubleEscaped,
}

/// Where the end tag of a script begins (§13.2.5.15 to §13.2.5.31). In a comment, a script tag has to be ended first.
pub(super) fn end_of_script(bytes: &[u8], mut at: usize) -> usize {
    let mut state = Script::Data;
    loop {
        let rest = &bytes[at..];
        let found = match state {
            Script::Data => memchr(b'<', rest),
            Script::Escaped | Script::DoubleEscaped => memchr2(b'<', b'>', rest),
        };
        let Some(sign) = found.map(|found| at + found) else {
            return bytes.len();
        };
        at = sign + 1;
        if bytes[sign] == b'>' {
            // The dashes may be those of `<!--`.
            if bytes[..sign].ends_with(b"--") {
                state = Script::Data;
            }
            continue;
        }
        let ends = is_end_tag(bytes, sign, SCRIPT);
        match state {
            Script::Data if bytes[sign..].starts_with(b"<!--") => {
                state = Script::Escaped;
                at = sign + b"<!--".len();
            }
            Script::Data | Script::Escaped if ends => return sign,
            Script::Escaped if is_named(bytes, sign + 1, SCRIPT) => {
                state = Script::DoubleEscaped;
                at = sign + b"<script>".len();
            }
            Script::DoubleEscaped if ends => {
                state = Script::Escaped;
                at = sign + b"</script>".len();
            }
            _ => {}
        }
    }
}

/// Whether an "appropriate end tag" of this name begins here.
fn is_end_tag(bytes: &[u8], open: usize, name: Name) -> bool {
    bytes.get(open + 1) == Some(&b'/') && is_named(bytes, open + 2, name)
}

fn is_named(bytes: &[u8], from: usize, name: Name) -> bool {
    let (found, end) = Name::at(bytes, from);
    found == name && end < bytes.len()
}

/// What follows `<!` and what it begins: a comment, a doctype, or what is taken for a comment (§13.2.5.42).
pub(super) fn after_declaration(bytes: &[u8], open: usize) -> usize {
    if bytes[open..].starts_with(b"<!--") {
        return after_comment(bytes, open);
    }
    // A doctype, too, ends at the first `>`, in quotes or not (§13.2.5.53 to §13.2.5.68).
    after_bogus_comment(bytes, open + 2)
}

/// What follows a comment (§13.2.5.43 to §13.2.5.52), which may end with its own beginning, as `<!-->` and `<!--->`.
fn after_comment(bytes: &[u8], open: usize) -> usize {
    let content = open + b"<!--".len();
    memchr_iter(b'>', &bytes[content..])
        .map(|found| content + found)
        .find(|&sign| bytes[..sign].ends_with(b"--") || bytes[content..sign].ends_with(b"--!"))
        .map_or(bytes.len(), |sign| sign + 1)
}

/// What follows a bogus comment (§13.2.5.41).
pub(super) fn after_bogus_comment(bytes: &[u8], from: usize) -> usize {
    memchr(b'>', &bytes[from..]).map_or(bytes.len(), |found| from + found + 1)
}
