//! One streaming pass over the text of an HTML page (`lol_html`), which collects what is of use, still unresolved.
//!
//! The parser's attributes and texts are raw: character references are decoded here. It reads `<noscript>` as a browser
//! with scripts does, as plain text; what stands in it is for readers like us, so it gets a pass of its own.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;

use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Selector, Settings};

use super::LinkKind;
use super::directives::is_addressed;
use super::entities::{self, Place};
use super::links::{follows_relation, has_token, refresh_target};

const MAX_TITLE_CHARS: usize = 1_000;
const MAX_DESCRIPTION_CHARS: usize = 2_000;
const MAX_LANG_CHARS: usize = 64;
pub(super) const MAX_ROBOTS_CHARS: usize = 1_000;

/// What is buffered of a title or heading before its white space is collapsed, in bytes.
const MAX_CAPTURED_BYTES: usize = 16 * 1024;

/// What the parser may hold, open elements above all. A page nested deeper than some hundred thousand elements is cut
/// there, and what was found before is kept.
const MAX_PARSER_BYTES: usize = 32 * 1024 * 1024;

static ELEMENTS: LazyLock<Selector> = LazyLock::new(|| {
    selector(
        "a[href], area[href], link[href], iframe[src], frame[src], base[href], meta[content], html[lang], template, \
         title, h1, br",
    )
});
static TITLE: LazyLock<Selector> = LazyLock::new(|| selector("title"));
static HEADING: LazyLock<Selector> = LazyLock::new(|| selector("h1"));
static UNSCRIPTED: LazyLock<Selector> = LazyLock::new(|| selector("noscript, noframes"));

fn selector(text: &str) -> Selector {
    text.parse()
        .expect("the selectors of this file are constants that each test parses")
}

/// What a page says, references decoded, URLs unresolved.
#[derive(Debug, Default)]
pub(super) struct RawPage {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) h1: Option<String>,
    pub(super) lang: Option<String>,
    pub(super) robots: Vec<String>,
    /// The `href` of the first `<base>` that has one.
    pub(super) base: Option<String>,
    /// The `href` of the first `<link rel=canonical>`.
    pub(super) canonical: Option<String>,
    pub(super) links: Vec<RawLink>,
}

/// A link as it stands in the page.
#[derive(Debug)]
pub(super) struct RawLink {
    pub(super) href: String,
    pub(super) nofollow: bool,
    pub(super) kind: LinkKind,
}

/// Reads a page. An error of the parser ends the pass, not the page.
pub(super) fn read(text: &str, token: &str) -> RawPage {
    let collector = Rc::new(RefCell::new(Collector::new(token)));
    pass(text, &collector);
    let unscripted = std::mem::take(&mut collector.borrow_mut().unscripted);
    if !unscripted.is_empty() {
        collector.borrow_mut().begin_unscripted();
        pass(&unscripted, &collector);
    }
    let mut collector = collector.borrow_mut();
    let mut page = std::mem::take(&mut collector.page);
    page.title = collector.title.finish();
    page.h1 = collector.heading.finish();
    page
}

type Shared = Rc<RefCell<Collector>>;

fn pass(text: &str, collector: &Shared) {
    let elements = ElementContentHandlers::default().element({
        let collector = Rc::clone(collector);
        move |element: &mut Element<'_, '_>| {
            on_element(&collector, element);
            Ok(())
        }
    });
    let texts = |push: fn(&mut Collector, &TextChunk<'_>)| {
        let collector = Rc::clone(collector);
        ElementContentHandlers::default().text(move |chunk: &mut TextChunk<'_>| {
            push(&mut collector.borrow_mut(), chunk);
            Ok(())
        })
    };
    let settings = Settings::new()
        .with_strict(false)
        .with_adjust_charset_on_meta_tag(false)
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(MAX_PARSER_BYTES))
        .append_element_content_handler((Cow::Borrowed(&*ELEMENTS), elements))
        .append_element_content_handler((
            Cow::Borrowed(&*TITLE),
            texts(|to, chunk| to.title.push(chunk)),
        ))
        .append_element_content_handler((
            Cow::Borrowed(&*HEADING),
            texts(|to, chunk| to.heading.push(chunk)),
        ))
        .append_element_content_handler((
            Cow::Borrowed(&*UNSCRIPTED),
            texts(Collector::push_unscripted),
        ));
    let mut parser = HtmlRewriter::new(settings, |_: &[u8]| {});
    if parser.write(text.as_bytes()).is_ok() {
        let _ = parser.end();
    }
}

/// Where text is collected until its element ends; the first that has any counts.
struct Capture {
    limit: usize,
    open: bool,
    raw: String,
    value: Option<String>,
}

impl Capture {
    fn new(limit: usize) -> Capture {
        Capture {
            limit,
            open: false,
            raw: String::new(),
            value: None,
        }
    }

    fn push(&mut self, chunk: &TextChunk<'_>) {
        // A script within a heading is no text of it.
        if self.open && matches!(chunk.text_type(), TextType::Data | TextType::RCData) {
            self.push_str(chunk.as_str());
        }
    }

    fn push_str(&mut self, text: &str) {
        if self.raw.len() < MAX_CAPTURED_BYTES {
            self.raw
                .push_str(&text[..text.floor_char_boundary(MAX_CAPTURED_BYTES)]);
        }
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.value = tidy(&entities::decode(&self.raw, Place::Text), self.limit);
            self.raw.clear();
        }
    }

    /// The text, also of an element that never ended.
    fn finish(&mut self) -> Option<String> {
        self.close();
        self.value.take()
    }
}

struct Collector {
    token: String,
    page: RawPage,
    title: Capture,
    heading: Capture,
    /// How many templates are open: what is in one is no part of the page.
    templates: usize,
    /// Texts of `<noscript>` and `<noframes>`.
    unscripted: String,
    in_unscripted: bool,
}

impl Collector {
    fn new(token: &str) -> Collector {
        Collector {
            token: token.to_owned(),
            page: RawPage::default(),
            title: Capture::new(MAX_TITLE_CHARS),
            heading: Capture::new(MAX_TITLE_CHARS),
            templates: 0,
            unscripted: String::new(),
            in_unscripted: false,
        }
    }

    fn begin_unscripted(&mut self) {
        self.title.close();
        self.heading.close();
        self.templates = 0;
        self.in_unscripted = true;
    }

    fn push_unscripted(&mut self, chunk: &TextChunk<'_>) {
        if !self.in_unscripted && self.templates == 0 {
            self.unscripted.push_str(chunk.as_str());
            if chunk.last_in_text_node() {
                self.unscripted.push('\n');
            }
        }
    }

    fn link(&mut self, element: &Element<'_, '_>, attribute_name: &str, kind: LinkKind) {
        let Some(href) = attribute(element, attribute_name) else {
            return;
        };
        let rel = attribute(element, "rel").unwrap_or_default();
        if kind == LinkKind::Link {
            if has_token(&rel, "canonical") && self.page.canonical.is_none() {
                self.page.canonical = Some(href.clone());
            }
            if !follows_relation(&rel, attribute(element, "type").as_deref()) {
                return;
            }
        }
        // An empty reference is the page itself only where a reader could click on it.
        if matches!(kind, LinkKind::Link | LinkKind::Frame) && href.trim().is_empty() {
            return;
        }
        self.page.links.push(RawLink {
            href,
            nofollow: has_token(&rel, "nofollow"),
            kind,
        });
    }

    fn meta(&mut self, element: &Element<'_, '_>) {
        let Some(content) = attribute(element, "content") else {
            return;
        };
        if attribute(element, "http-equiv")
            .is_some_and(|name| name.trim().eq_ignore_ascii_case("refresh"))
        {
            if let Some(target) = refresh_target(&content) {
                let link = RawLink {
                    href: target.to_owned(),
                    nofollow: false,
                    kind: LinkKind::Refresh,
                };
                self.page.links.push(link);
            }
        } else if let Some(name) = attribute(element, "name").filter(|_| !self.in_unscripted) {
            if name.trim().eq_ignore_ascii_case("description") {
                self.page.description = self
                    .page
                    .description
                    .take()
                    .or_else(|| tidy(&content, MAX_DESCRIPTION_CHARS));
            } else if is_addressed(&name, &self.token) {
                self.page.robots.extend(tidy(&content, MAX_ROBOTS_CHARS));
            }
        }
    }
}

fn on_element(collector: &Shared, element: &mut Element<'_, '_>) {
    let name = element.tag_name();
    let mut to = collector.borrow_mut();
    if name == "template" {
        to.templates += 1;
        on_end(collector, element, |to| {
            to.templates = to.templates.saturating_sub(1)
        });
    }
    if to.templates > 0 {
        return;
    }
    match name.as_str() {
        "a" => to.link(element, "href", LinkKind::Anchor),
        "area" => to.link(element, "href", LinkKind::Area),
        "link" => to.link(element, "href", LinkKind::Link),
        "iframe" | "frame" => to.link(element, "src", LinkKind::Frame),
        "meta" => to.meta(element),
        // What follows is about the page as a whole, of which this is an alternative only.
        _ if to.in_unscripted => {}
        "base" if to.page.base.is_none() => to.page.base = attribute(element, "href"),
        "html" if to.page.lang.is_none() => {
            to.page.lang = attribute(element, "lang").and_then(|lang| tidy(&lang, MAX_LANG_CHARS));
        }
        "title" if to.title.value.is_none() && is_html(element) => {
            to.title.open = true;
            on_end(collector, element, |to| to.title.close());
        }
        "h1" if to.heading.value.is_none() => {
            to.heading.open = true;
            on_end(collector, element, |to| to.heading.close());
        }
        "br" if to.heading.open => to.heading.push_str(" "),
        _ => {}
    }
}

/// Does something at the element's end tag; never, if it has none.
fn on_end(collector: &Shared, element: &mut Element<'_, '_>, deed: fn(&mut Collector)) {
    let collector = Rc::clone(collector);
    // Elements without content have no end: there is nothing to be done then.
    let _ = element.on_end_tag(Box::new(move |_| {
        deed(&mut collector.borrow_mut());
        Ok(())
    }));
}

/// An SVG has titles, too.
fn is_html(element: &Element<'_, '_>) -> bool {
    element.namespace_uri() == "http://www.w3.org/1999/xhtml"
}

/// An attribute's value, references decoded.
fn attribute(element: &Element<'_, '_>, name: &str) -> Option<String> {
    let raw = element.get_attribute(name)?;
    match entities::decode(&raw, Place::Attribute) {
        Cow::Owned(decoded) => Some(decoded),
        Cow::Borrowed(_) => Some(raw),
    }
}

/// The text with its white space collapsed, without NUL, cut after so many characters; `None` if nothing is left.
pub(super) fn tidy(text: &str, max_chars: usize) -> Option<String> {
    let mut out = String::new();
    let (mut count, mut gap) = (0, false);
    for c in text.chars().filter(|c| *c != '\0') {
        if c.is_whitespace() {
            gap = count > 0;
            continue;
        }
        let needed = 1 + usize::from(gap);
        if count + needed > max_chars {
            break;
        }
        if std::mem::take(&mut gap) {
            out.push(' ');
        }
        out.push(c);
        count += needed;
    }
    (count > 0).then_some(out)
}
