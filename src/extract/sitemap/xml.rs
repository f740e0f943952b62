//! XML sitemaps: entries out of a stream of tags, whatever is wrong between them.
//!
//! quick-xml splits the text; what a tag means is decided here, by its place: a field counts only right below its entry, so the
//! `loc` of a picture is none of the page. The text is given to it up to the last `>`, and what it finds unfinished there waits for more.

use std::borrow::Cow;

use quick_xml::{
    Error, Reader, XmlVersion,
    errors::SyntaxError,
    events::{BytesRef, BytesStart, Event},
    name::QName,
};

use super::{
    ChangeFreq, End, Entry, EntryKind, Format, Progress, Summary,
    entry::{self, LONGEST, tidy},
};

/// Bytes of one tag, comment or CDATA section; a longer one is left out.
const LONGEST_TOKEN: usize = 256 << 10;

/// Places at which the markup may be broken, each of which may cost a look at all that is at hand.
const MOST_BREAKS: u32 = 1_000;

/// `<xhtml:link>`s of one entry: no site speaks more languages.
const MOST_ALTERNATES: u32 = 500;

/// Pictures and films of one entry (sitemaps.org's extension: 1,000 pictures).
const MOST_ASSETS: u32 = 1_000;

/// Prefixes of the customary extensions: whatever is wrong around them, a `loc` of theirs is no page.
const EXTENSIONS: [&str; 5] = ["image", "video", "news", "xhtml", "pagemap"];

#[derive(Debug, Default)]
pub(super) struct Xml {
    root: Root,
    /// Of the root's name; what bears another one is somebody's extension.
    prefix: Option<String>,
    entry: Option<Draft>,
    field: Option<Field>,
    text: String,
    /// The field's text cannot be used: too long, or an entity of the file's own in it.
    spoilt: bool,
    /// The element below the entry that is none of its fields, while it is open.
    foreign: Option<String>,
    declares: bool,
    ended: bool,
    urls: u32,
    invalid: u32,
    breaks: u32,
    full: bool,
    cut: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Root {
    #[default]
    Unknown,
    Is(Format),
    Other,
}

#[derive(Debug)]
struct Draft {
    entry: Entry,
    /// Its `loc` is complete and good.
    located: bool,
    alternates: u32,
    assets: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Loc,
    Lastmod,
    Priority,
    ChangeFreq,
    Image,
    Video,
}

impl Xml {
    pub(super) fn format(&self) -> Option<Format> {
        match self.root {
            Root::Is(format) => Some(format),
            _ => None,
        }
    }

    pub(super) fn is_other(&self) -> bool {
        self.root == Root::Other
    }

    pub(super) fn read(
        &mut self,
        text: &mut String,
        found: &mut Vec<Entry>,
        most: u32,
        at_end: bool,
    ) -> Progress {
        let end = match at_end {
            true => text.len(),
            false => text.rfind('>').map_or(0, |at| at + 1),
        };
        if !self.is_over() {
            let read = self.tokens(&text[..end], found, most, at_end);
            text.drain(..read);
        }
        // Unfinished: it waits, unless it is longer than anything that is meant.
        if text.len() > LONGEST_TOKEN {
            self.breaks += 1;
            self.spoilt = true;
            text.clear();
        }
        match self.is_over() {
            true => Progress::Enough,
            false => Progress::More,
        }
    }

    fn is_over(&self) -> bool {
        self.full || self.root == Root::Other || self.breaks > MOST_BREAKS
    }

    /// Reads tokens as far as they are complete. Answers how many bytes.
    fn tokens(&mut self, text: &str, found: &mut Vec<Entry>, most: u32, at_end: bool) -> usize {
        let mut from = 0;
        'anew: loop {
            let mut reader = Reader::from_str(&text[from..]);
            let config = reader.config_mut();
            config.check_end_names = false;
            config.allow_unmatched_ends = true;
            config.allow_dangling_amp = true;
            let mut at = from;
            loop {
                let event = reader.read_event();
                let next =
                    from + usize::try_from(reader.buffer_position()).unwrap_or(text.len() - from);
                match event {
                    Ok(Event::Eof) => return text.len(),
                    Ok(event) => self.event(&event, found, most),
                    Err(Error::Syntax(error)) => {
                        let rest = &text[at..];
                        // What has no end yet may have one in the next piece; a quote that runs over the next tag has none.
                        let is_wrong = match error {
                            SyntaxError::InvalidBangMarkup => true,
                            SyntaxError::UnclosedSingleQuotedAttributeValue
                            | SyntaxError::UnclosedDoubleQuotedAttributeValue
                            | SyntaxError::UnclosedTag => next_tag(rest).is_some(),
                            _ => false,
                        };
                        if !is_wrong {
                            self.cut |= at_end;
                            return at;
                        }
                        self.breaks += 1;
                        if self.breaks > MOST_BREAKS {
                            return at;
                        }
                        from = at + next_tag(rest).unwrap_or(rest.len());
                        continue 'anew;
                    }
                    // Not well-formed, and passed over.
                    Err(_) if next > at => self.breaks += 1,
                    Err(_) => {
                        self.breaks += 1;
                        from = at + next_tag(&text[at..]).unwrap_or(text.len() - at);
                        continue 'anew;
                    }
                }
                if self.is_over() {
                    return text.len();
                }
                at = next;
            }
        }
    }

    fn event(&mut self, event: &Event<'_>, found: &mut Vec<Entry>, most: u32) {
        match event {
            Event::Start(tag) => self.opened(tag, found, most),
            Event::Empty(tag) => {
                // A field without text; other elements hold nothing either.
                let was = self.foreign.clone();
                self.opened(tag, found, most);
                (self.field, self.foreign) = (None, was);
            }
            Event::End(tag) => {
                let (prefix, name) = (prefix(tag.name()), local(tag.local_name().as_ref()));
                self.closed(prefix.as_deref(), &name, found, most);
            }
            Event::Text(text) => self.push(text),
            Event::CData(text) => self.push(text),
            Event::GeneralRef(reference) => self.refer(reference),
            Event::DocType(doctype) => {
                self.declares |= doctype.contains("<!ENTITY") || doctype.contains("<!entity");
            }
            _ => {}
        }
    }

    fn opened(&mut self, tag: &BytesStart<'_>, found: &mut Vec<Entry>, most: u32) {
        let (prefix, name) = (prefix(tag.name()), local(tag.local_name().as_ref()));
        if self.root == Root::Unknown {
            self.prefix.clone_from(&prefix);
        }
        match name.as_str() {
            "urlset" if self.root == Root::Unknown => self.root = Root::Is(Format::UrlSet),
            "sitemapindex" if self.root == Root::Unknown => self.root = Root::Is(Format::Index),
            "url" | "sitemap" if prefix == self.prefix || self.entry.is_none() => {
                let (kind, format) = match name.as_str() {
                    "url" => (EntryKind::Page, Format::UrlSet),
                    _ => (EntryKind::Sitemap, Format::Index),
                };
                if self.root == Root::Unknown {
                    self.root = Root::Is(format);
                }
                // One that was not ended ends here; nothing of it goes over to the next.
                self.close_entry(found, most);
                self.entry = Some(Draft {
                    entry: Entry::bare(kind, String::new()),
                    located: false,
                    alternates: 0,
                    assets: 0,
                });
            }
            _ if self.root == Root::Unknown => self.root = Root::Other,
            _ => {
                let is_known = prefix
                    .as_deref()
                    .is_some_and(|prefix| EXTENSIONS.contains(&prefix));
                self.inside(&name, is_known && prefix != self.prefix, tag, found);
            }
        }
    }

    fn inside(
        &mut self,
        name: &str,
        is_extension: bool,
        tag: &BytesStart<'_>,
        found: &mut Vec<Entry>,
    ) {
        let Some(draft) = &mut self.entry else {
            return;
        };
        let field = match (&self.foreign, name) {
            (None, "loc" | "lastmod" | "priority" | "changefreq") if is_extension => None,
            (None, "loc") if !draft.located => Some(Field::Loc),
            (None, "lastmod") => Some(Field::Lastmod),
            (None, "priority") => Some(Field::Priority),
            (None, "changefreq") => Some(Field::ChangeFreq),
            (None, "link") => {
                if draft.alternates < MOST_ALTERNATES
                    && let Some(href) = alternate(tag)
                {
                    draft.alternates += 1;
                    found.push(Entry::bare(EntryKind::Alternate, href));
                }
                return;
            }
            (Some(container), "loc") if container == "image" => Some(Field::Image),
            (Some(container), "content_loc" | "player_loc" | "thumbnail_loc")
                if container == "video" =>
            {
                Some(Field::Video)
            }
            _ => None,
        };
        if field.is_none() && self.foreign.is_none() {
            self.foreign = Some(name.to_owned());
        }
        self.field = field;
        self.text.clear();
        self.spoilt = false;
    }

    fn closed(&mut self, prefix: Option<&str>, name: &str, found: &mut Vec<Entry>, most: u32) {
        match name {
            "url" | "sitemap" if prefix == self.prefix.as_deref() || self.foreign.is_none() => {
                self.close_entry(found, most);
            }
            "urlset" | "sitemapindex" => {
                self.close_entry(found, most);
                self.ended = true;
            }
            _ => {
                if let Some(field) = self.field.take() {
                    self.fill(field, found);
                }
                if self.foreign.as_deref() == Some(name) {
                    self.foreign = None;
                }
            }
        }
    }

    fn fill(&mut self, field: Field, found: &mut Vec<Entry>) {
        let (text, spoilt) = (std::mem::take(&mut self.text), self.spoilt);
        let Some(draft) = self.entry.as_mut().filter(|_| !spoilt) else {
            return;
        };
        let entry = &mut draft.entry;
        match field {
            Field::Loc => {
                let loc = tidy(&text);
                if !loc.is_empty() {
                    loc.clone_into(&mut entry.loc);
                    draft.located = true;
                }
            }
            Field::Lastmod => entry.lastmod = entry::lastmod(&text),
            Field::Priority => entry.priority = entry::priority(&text),
            Field::ChangeFreq => entry.changefreq = ChangeFreq::read(&text),
            Field::Image | Field::Video => {
                draft.assets += 1;
                let loc = tidy(&text);
                if draft.assets <= MOST_ASSETS && !loc.is_empty() {
                    let kind = match field {
                        Field::Image => EntryKind::Image,
                        _ => EntryKind::Video,
                    };
                    found.push(Entry::bare(kind, loc.to_owned()));
                }
            }
        }
    }

    fn close_entry(&mut self, found: &mut Vec<Entry>, most: u32) {
        (self.field, self.foreign) = (None, None);
        let Some(draft) = self.entry.take() else {
            return;
        };
        if !draft.located {
            self.invalid += 1;
        } else if self.urls >= most {
            self.full = true;
        } else {
            self.urls += 1;
            found.push(draft.entry);
        }
    }

    fn push(&mut self, text: &str) {
        if self.field.is_none() || self.spoilt {
            return;
        }
        if self.text.len() + text.len() > LONGEST {
            self.spoilt = true;
            return;
        }
        self.text.push_str(text);
    }

    /// XML 1.0 §4.6 has five entities, and characters by their number. Those of a file's own are not replaced; where it has none, `&x;`
    /// is an `&` that should have been escaped.
    fn refer(&mut self, reference: &BytesRef<'_>) {
        let name: &str = reference;
        let character = match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "apos" => Some('\''),
            "quot" => Some('"'),
            _ => reference.resolve_char_ref().ok().flatten(),
        };
        match character {
            Some(c) => self.push(c.encode_utf8(&mut [0; 4])),
            None if self.declares => self.spoilt = true,
            None => self.push(&format!("&{name};")),
        }
    }

    pub(super) fn finish(mut self, found: &mut Vec<Entry>, most: u32) -> Summary {
        let format = self.format();
        // Its URL is whole, if it has one.
        self.close_entry(found, most);
        let end = match () {
            () if format.is_none() => End::NoSitemap,
            () if self.full => End::Full,
            () if self.breaks > MOST_BREAKS => End::Broken,
            () if self.cut || !self.ended => End::Cut,
            () => End::Whole,
        };
        Summary {
            format,
            urls: self.urls,
            invalid: self.invalid,
            end,
        }
    }
}

/// Where the next tag may begin, behind the first character.
fn next_tag(text: &str) -> Option<usize> {
    text.get(1..)?.find('<').map(|at| at + 1)
}

fn local(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn prefix(name: QName<'_>) -> Option<String> {
    name.prefix().map(|prefix| local(prefix.as_ref()))
}

/// The target of `<xhtml:link rel="alternate" href="…">`.
fn alternate(tag: &BytesStart<'_>) -> Option<String> {
    let (mut href, mut is_alternate) = (None, false);
    for attribute in tag.html_attributes().with_checks(false).flatten() {
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .unwrap_or_else(|_| Cow::Owned(attribute.value.replace("&amp;", "&")));
        match local(attribute.key.local_name().as_ref()).as_str() {
            "href" => href = Some(tidy(&value).to_owned()),
            "rel" => {
                is_alternate = value
                    .split_ascii_whitespace()
                    .any(|word| word.eq_ignore_ascii_case("alternate"));
            }
            _ => {}
        }
    }
    href.filter(|href| is_alternate && !href.is_empty() && href.len() <= LONGEST)
}
