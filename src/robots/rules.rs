//! The rules of one group, in the order in which they win.
//!
//! `robotxt` reads no more than 500 KiB at once, less than a file of 512 KiB can come to in normal form, where one octet
//! may become three. So it is given the rules in pieces; of what the pieces say the longest rule wins.

use super::file::{Key, Record};

/// How much `robotxt` is given at once, in bytes: less than it reads, since a piece may go above it by a rule of its own
/// length. A single rule that is longer than it reads is lost; it could match no URL below 80 KiB.
const PIECE_BYTES: usize = 400 * 1024;

/// A group's rules.
#[derive(Debug)]
pub(super) struct Rules {
    pieces: Vec<robotxt::Robots>,
    size: Size,
}

/// How large rules are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// How many.
    pub(super) count: usize,
    /// Of which with a star: these alone may look at all of a URL.
    pub(super) starred: usize,
    /// The bytes of their patterns.
    pub(super) bytes: usize,
}

impl Rules {
    /// Has the rules brought into their order, as one group for all.
    pub(super) fn of(records: &[Record<'_>]) -> Rules {
        const HEAD: &[u8] = b"user-agent:*\n";
        let (mut pieces, mut text, mut line) = (Vec::new(), HEAD.to_vec(), Vec::new());
        for record in records {
            line.clear();
            line.extend_from_slice(match record.key {
                Key::Allow => b"allow:",
                _ => b"disallow:",
            });
            pattern(record.value, &mut line);
            line.push(b'\n');
            if text.len() > HEAD.len() && text.len() + line.len() > PIECE_BYTES {
                pieces.push(robotxt::Robots::parse(&text, "*"));
                text.truncate(HEAD.len());
            }
            text.extend_from_slice(&line);
        }
        pieces.push(robotxt::Robots::parse(&text, "*"));
        let mut size = Size::default();
        for rule in pieces.iter().flat_map(robotxt::Robots::rules) {
            size.count += 1;
            size.starred += usize::from(rule.pattern().contains('*'));
            size.bytes += rule.pattern().len();
        }
        Rules { pieces, size }
    }

    /// Whether a path (from [`super::path`]) is allowed; `/robots.txt` always is.
    pub(super) fn allow(&self, path: &str) -> bool {
        self.pieces.iter().all(|piece| piece.is_allowed(path))
            || self.deciding(path).is_none_or(robotxt::Rule::is_allow)
    }

    /// The rule that decides about a path: of all that match the longest, of those an Allow.
    pub(super) fn deciding(&self, path: &str) -> Option<&robotxt::Rule> {
        self.pieces
            .iter()
            .filter_map(|piece| piece.matching_rule(path))
            .max_by_key(|rule| (rule.pattern().len(), rule.is_allow()))
    }

    /// The first rule in their order.
    pub(super) fn first(&self) -> Option<&robotxt::Rule> {
        self.pieces.first()?.rules().first()
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// About how much memory they take, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        self.size.bytes + self.size.count * super::ENTRY_BYTES
    }
}

/// Writes a pattern with each `$` escaped that is no end mark (RFC 9309 §2.2.3), and what [`super::path`] escapes. Of
/// several stars in a row one is left: they mean the same, and each would be looked for.
fn pattern(value: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in value.iter().enumerate() {
        match byte {
            b'$' if at + 1 < value.len() => out.extend_from_slice(b"%24"),
            b'\'' => out.extend_from_slice(b"%27"),
            b'*' if at > 0 && value[at - 1] == b'*' => {}
            _ => out.push(*byte),
        }
    }
}
