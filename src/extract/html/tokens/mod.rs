//! A page's text as tags and texts, by the states of the HTML standard (§13.2.5), with a search for the next sign of interest in place of
//! a step for each character.
//!
//! It holds the whole text, so a token is a piece of it and nothing is copied; references stay as they are, and comments and
//! doctypes are passed over. What the tree construction stage tells a tokenizer in the standard is told by the caller after a tag: how the
//! content is read ([`Tokens::read_as`]), and whether there are CDATA sections ([`Tokens::allow_cdata`]). Each byte is looked at a
//! bounded number of times, whatever the text.

mod attributes;
pub(super) mod name;
mod raw;
mod scan;
#[cfg(test)]
mod tests;

use memchr::memmem;

use attributes::Attribute;
pub(super) use name::Name;

/// How a text is read, and was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// As markup: text between tags.
    Data,
    /// Up to the end tag, with references: titles and text fields.
    Rcdata,
    /// Up to the end tag, as it stands.
    Rawtext,
    /// As a script, which may hide its end tag in a comment.
    Script,
    /// All the rest.
    Plaintext,
    /// A CDATA section of a drawing or a formula.
    Cdata,
}

/// A start tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag<'a, 't> {
    pub(super) name: Name,
    text: &'t str,
    attributes: &'a [Attribute],
    pub(super) is_self_closing: bool,
}

/// A piece of the page.
#[derive(Debug)]
pub(super) enum Token<'a, 't> {
    Start(Tag<'a, 't>),
    End(Name),
    /// A text between tags may come in several pieces, any other is whole.
    Text(&'t str, Content),
}

/// Reads a text, token by token.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
    /// Of the start tag that was read last; kept to save its allocation.
    attributes: Vec<Attribute>,
    content: Content,
    /// The element whose content this is.
    within: Name,
    has_cdata: bool,
    all_attributes: bool,
}

impl<'t> Tokens<'t> {
    /// Reads this text; attributes of tags that are asked for by their names ([`Name::is_asked`]), or those of all.
    pub(super) fn new(text: &'t str, all_attributes: bool) -> Tokens<'t> {
        Tokens {
            text,
            at: 0,
            attributes: Vec::with_capacity(16),
            content: Content::Data,
            within: Name::NONE,
            has_cdata: false,
            all_attributes,
        }
    }

    /// Has what follows read as the content of an element of this name.
    #[inline]
    pub(super) fn read_as(&mut self, content: Content, within: Name) {
        self.content = content;
        self.within = within;
    }

    /// Says whether the element at hand is of a drawing or a formula (the "adjusted current node" of §13.2.5.42).
    #[inline]
    pub(super) fn allow_cdata(&mut self, is_foreign: bool) {
        self.has_cdata = is_foreign;
    }

    /// The next token; none at the end, where a tag that does not end is dropped. Texts between tags are passed over where nobody listens.
    #[inline]
    pub(super) fn next(&mut self, listens: bool) -> Option<Token<'_, 't>> {
        if self.content != Content::Data {
            let content = self.content;
            let text = self.rest_of_content();
            if !text.is_empty() {
                return Some(Token::Text(text, content));
            }
        }
        let bytes = self.text.as_bytes();
        // Where the text at hand began.
        let mut start = self.at;
        let mut from = start;
        loop {
            let Some(open) = scan::next(b'<', bytes, from) else {
                self.at = bytes.len();
                return self.text_from(start, self.at, listens);
            };
            // Tag open state (§13.2.5.6): anything else is a text with this sign in it.
            let next = bytes.get(open + 1).copied().unwrap_or_default();
            if !(next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?'))
                || (next == b'/' && open + 2 == bytes.len())
            {
                from = open + 1;
                continue;
            }
            if listens && start < open {
                self.at = open;
                return self.text_from(start, open, listens);
            }
            match next {
                b'/' if bytes[open + 2].is_ascii_alphabetic() => return self.end_tag(open),
                b'/' | b'?' => self.at = raw::after_bogus_comment(bytes, open + 2),
                b'!' if self.has_cdata && bytes[open..].starts_with(b"<![CDATA[") => {
                    let from = open + b"<![CDATA[".len();
                    let end = memmem::find(&bytes[from..], b"]]>");
                    let end = end.map_or(bytes.len(), |found| from + found);
                    self.at = bytes.len().min(end + b"]]>".len());
                    if listens && from < end {
                        return Some(Token::Text(&self.text[from..end], Content::Cdata));
                    }
                }
                b'!' => self.at = raw::after_declaration(bytes, open),
                _ => return self.start_tag(open),
            }
            start = self.at;
            from = start;
        }
    }

    fn text_from(&self, start: usize, end: usize, listens: bool) -> Option<Token<'_, 't>> {
        (listens && start < end).then(|| Token::Text(&self.text[start..end], Content::Data))
    }

    /// What is left of a content that is no markup; its end tag, if any, comes next.
    #[cold]
    fn rest_of_content(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at = match self.content {
            Content::Data | Content::Cdata => start,
            Content::Plaintext => bytes.len(),
            Content::Script => raw::end_of_script(bytes, start),
            Content::Rcdata | Content::Rawtext => raw::end_of(bytes, start, self.within),
        };
        self.content = Content::Data;
        &self.text[start..self.at]
    }

    #[inline]
    fn start_tag(&mut self, open: usize) -> Option<Token<'_, 't>> {
        let (name, at) = Name::at(self.text.as_bytes(), open + 1);
        self.attributes.clear();
        let kept = (self.all_attributes || name.is_asked()).then_some(&mut self.attributes);
        let Some(end) = attributes::read(self.text.as_bytes(), at, kept) else {
            self.at = self.text.len();
            return None;
        };
        self.at = end.at;
        Some(Token::Start(Tag {
            name,
            text: self.text,
            attributes: &self.attributes,
            is_self_closing: end.is_self_closing,
        }))
    }

    #[inline]
    fn end_tag(&mut self, open: usize) -> Option<Token<'_, 't>> {
        let (name, at) = Name::at(self.text.as_bytes(), open + 2);
        let end = attributes::read(self.text.as_bytes(), at, None);
        self.at = end.as_ref().map_or(self.text.len(), |end| end.at);
        end.map(|_| Token::End(name))
    }
}
