//! Feeds: RSS of all versions, Atom and JSON Feed.
//!
//! One lenient pass: a feed that breaks off, or has an ampersand too many, keeps what stands before and after. So the
//! pieces are read here, and not by a reader that builds the whole feed or none of it.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;
use url::Url;

use super::capture::tidy;
use super::entities::{self, Place};
use super::html::{MAX_DESCRIPTION_CHARS, MAX_LANG_CHARS, MAX_TITLE_CHARS, RawLink, RawPage};
use super::media::is_wanted;
use super::relation::{has_token, rel_text};
use super::{Input, LinkKind, MAX_ANCHOR_CHARS};

/// Relations of links in a feed that lead to pages or to its older parts (RFC 4287 §4.2.7.2, RFC 5005). Not `self`, which is
/// the feed, nor `hub`, `edit` and the like, which are for programs.
const RELATIONS: [&str; 10] = [
    "alternate",
    "related",
    "via",
    "next",
    "prev",
    "previous",
    "first",
    "last",
    "prev-archive",
    "next-archive",
];

/// The longest text that may be a URL or a title, in bytes; longer ones are cut, and no URL comes of them.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Elements that may hold a URL or what is known of a feed, as text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// A page.
    Page,
    /// A `guid`: a page if it is a whole URL.
    Guid,
    /// A picture.
    Picture,
    Title,
    Description,
    Language,
}

/// Reads an XML feed.
pub(super) fn read(text: &str, input: &Input<'_>) -> RawPage<'static> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    config.expand_empty_elements = true;
    let mut feed = Feed::new(input);
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => feed.start(&start),
            Ok(Event::End(_)) => feed.end(),
            Ok(Event::Text(text)) => feed.text(&entities::decode(&text, Place::Text)),
            Ok(Event::CData(text)) => feed.text(&text),
            Ok(Event::GeneralRef(name)) => {
                feed.text(&entities::decode(&format!("&{};", &*name), Place::Text));
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    feed.page
}

/// An open element.
struct Open {
    /// Its name without prefix.
    name: String,
    /// Its base, where it declares one.
    base: Option<Url>,
    held: Option<Held>,
}

struct Feed<'a> {
    input: &'a Input<'a>,
    page: RawPage<'static>,
    open: Vec<Open>,
    /// How many elements are open beyond those that are kept in `open`.
    deeper: usize,
    /// The text of the element at hand.
    text: String,
    /// The links before the entry at hand, and its title.
    entry: Option<(usize, Option<Box<str>>)>,
}

/// Elements that are kept while they are open. Feeds nest six deep.
const MAX_DEPTH: usize = 64;

impl<'a> Feed<'a> {
    fn new(input: &'a Input<'a>) -> Feed<'a> {
        Feed {
            input,
            page: RawPage::default(),
            open: Vec::new(),
            deeper: 0,
            text: String::new(),
            entry: None,
        }
    }

    fn base(&self) -> &Url {
        let declared = self.open.iter().rev().find_map(|open| open.base.as_ref());
        declared.unwrap_or(self.input.url.as_url())
    }

    fn start(&mut self, start: &BytesStart<'_>) {
        if self.open.len() >= MAX_DEPTH {
            self.deeper += 1;
            return;
        }
        let full = start.name().as_ref().to_owned();
        let (prefix, name) = full.split_once(':').unwrap_or(("", &full));
        let said = |wanted: &str| attribute(start, wanted);
        let base = said("xml:base").and_then(|base| self.base().join(base.trim()).ok());
        let parent = self.open.last().map(|open| open.name.clone());
        let is_in = |names: &[&str]| parent.as_deref().is_some_and(|name| names.contains(&name));
        let held = match (prefix, name) {
            (_, "link") => match said("href") {
                Some(_) => None,
                None => Some(Held::Page),
            },
            ("", "guid") if said("isPermaLink").is_none_or(|said| said.trim() != "false") => {
                Some(Held::Guid)
            }
            ("", "comments") => Some(Held::Page),
            ("", "url") if is_in(&["image"]) => Some(Held::Picture),
            (_, "logo" | "icon") => Some(Held::Picture),
            ("" | "atom", "title") if is_in(&["channel", "feed", "item", "entry"]) => {
                Some(Held::Title)
            }
            ("" | "atom", "description" | "subtitle") if is_in(&["channel", "feed"]) => {
                Some(Held::Description)
            }
            ("" | "dc", "language") if is_in(&["channel"]) => Some(Held::Language),
            _ => None,
        };
        if name == "feed" {
            self.page.lang = said("xml:lang").and_then(|lang| tidy(&lang, MAX_LANG_CHARS));
        }
        self.open.push(Open {
            name: name.to_owned(),
            base,
            held,
        });
        match (prefix, name) {
            (_, "link") => self.link(start),
            (_, "item" | "entry") => self.entry = Some((self.page.links.len(), None)),
            (_, "enclosure") => self.asset(said("url")),
            ("media", "content" | "thumbnail") => self.asset(said("url")),
            ("itunes", "image") => self.asset(said("href")),
            (_, "content") => {
                if let Some(source) = said("src") {
                    self.push(&source, LinkKind::Feed);
                }
            }
            _ => {}
        }
        if held.is_some() {
            self.text.clear();
        }
    }

    /// An Atom link.
    fn link(&mut self, start: &BytesStart<'_>) {
        let Some(href) = attribute(start, "href") else {
            return;
        };
        let rel = attribute(start, "rel").unwrap_or_else(|| "alternate".to_owned());
        if has_token(&rel, "enclosure") {
            return self.asset(Some(href));
        }
        let media_type = attribute(start, "type").map(|name| name.trim().to_ascii_lowercase());
        let leads = RELATIONS.iter().any(|known| has_token(&rel, known));
        if !leads || !is_wanted(media_type.as_deref().filter(|name| !name.is_empty())) {
            return;
        }
        let kind = match () {
            () if has_token(&rel, "next") => LinkKind::Next,
            () if has_token(&rel, "prev") || has_token(&rel, "previous") => LinkKind::Prev,
            () => LinkKind::Feed,
        };
        self.push(&href, kind);
        if self.input.anchors
            && let Some(link) = self.page.links.last_mut()
        {
            link.rel_text = rel_text(&rel);
            link.anchor = attribute(start, "title")
                .and_then(|title| tidy(&title, MAX_ANCHOR_CHARS))
                .map(String::into_boxed_str);
        }
    }

    fn asset(&mut self, url: Option<String>) {
        if let Some(url) = url.filter(|_| self.input.wants.assets) {
            self.push(&url, LinkKind::Enclosure);
        }
    }

    fn push(&mut self, reference: &str, kind: LinkKind) {
        let reference = reference.trim();
        if reference.is_empty() {
            return;
        }
        if let Ok(url) = self.base().join(reference) {
            self.page.links.push(RawLink::new(String::from(url), kind));
        }
    }

    fn text(&mut self, text: &str) {
        let is_held = self.deeper == 0 && self.open.last().is_some_and(|open| open.held.is_some());
        if is_held && self.text.len() <= MAX_TEXT_BYTES {
            self.text.push_str(text);
        }
    }

    fn end(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        // Its base holds for its text.
        if let Some(held) = self.open.last().and_then(|open| open.held) {
            let text = std::mem::take(&mut self.text);
            if text.len() <= MAX_TEXT_BYTES {
                self.take(held, &text);
            }
        }
        let Some(closed) = self.open.pop() else {
            return;
        };
        if matches!(closed.name.as_str(), "item" | "entry")
            && let Some((first, Some(title))) = self.entry.take()
        {
            for link in self.page.links.iter_mut().skip(first) {
                link.anchor.get_or_insert_with(|| title.clone());
            }
        }
    }

    fn take(&mut self, held: Held, text: &str) {
        let put = |place: &mut Option<String>, limit| {
            *place = place.take().or_else(|| tidy(text, limit));
        };
        match held {
            Held::Page => self.push(text, LinkKind::Feed),
            Held::Guid => {
                if Url::parse(text.trim()).is_ok() {
                    self.push(text, LinkKind::Feed);
                }
            }
            Held::Picture => self.asset(Some(text.to_owned())),
            Held::Title => match &mut self.entry {
                Some((_, title)) if self.input.anchors => {
                    *title = tidy(text, MAX_ANCHOR_CHARS).map(String::into_boxed_str);
                }
                Some(_) => {}
                None => put(&mut self.page.title, MAX_TITLE_CHARS),
            },
            Held::Description => put(&mut self.page.description, MAX_DESCRIPTION_CHARS),
            Held::Language => put(&mut self.page.lang, MAX_LANG_CHARS),
        }
    }
}

fn attribute(start: &BytesStart<'_>, wanted: &str) -> Option<String> {
    let mut attributes = start.attributes();
    let found = attributes
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == wanted)?;
    Some(entities::decode(&found.value, Place::Attribute).into_owned())
}

/// Reads a JSON Feed (version 1.1).
pub(super) fn read_json(text: &str, input: &Input<'_>) -> RawPage<'static> {
    let Ok(feed) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) else {
        return RawPage::default();
    };
    let said = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let short = |name: &str, limit| said(&feed, name).and_then(|text| tidy(&text, limit));
    let mut page = RawPage {
        title: short("title", MAX_TITLE_CHARS),
        description: short("description", MAX_DESCRIPTION_CHARS),
        lang: short("language", MAX_LANG_CHARS),
        ..RawPage::default()
    };
    let mut push = |of: &Value, names: &[&str], kind: LinkKind, anchor: &Option<Box<str>>| {
        for url in names.iter().filter_map(|name| said(of, name)) {
            if (!kind.is_asset() || input.wants.assets) && !url.trim().is_empty() {
                let mut link = RawLink::new(url, kind);
                link.anchor.clone_from(anchor);
                page.links.push(link);
            }
        }
    };
    push(&feed, &["home_page_url"], LinkKind::Feed, &None);
    push(&feed, &["next_url"], LinkKind::Next, &None);
    push(&feed, &["icon", "favicon"], LinkKind::Enclosure, &None);
    let list = |of: &Value, name: &str| of.get(name).and_then(Value::as_array).cloned();
    for item in list(&feed, "items").unwrap_or_default() {
        let title = said(&item, "title").filter(|_| input.anchors);
        let anchor = title
            .and_then(|title| tidy(&title, MAX_ANCHOR_CHARS))
            .map(String::into_boxed_str);
        push(&item, &["url", "external_url"], LinkKind::Feed, &anchor);
        push(
            &item,
            &["image", "banner_image"],
            LinkKind::Enclosure,
            &None,
        );
        for attachment in list(&item, "attachments").unwrap_or_default() {
            push(&attachment, &["url"], LinkKind::Enclosure, &None);
        }
    }
    page
}
