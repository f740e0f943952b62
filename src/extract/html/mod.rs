//! One streaming pass over the text of an HTML page (`lol_html`), which collects what is of use, still unresolved.
//!
//! The parser's attributes and texts are raw: character references are decoded here. It reads `<noscript>` as a browser
//! with scripts does, as plain text; what stands in it is for readers like us, so it gets a pass of its own, and so does
//! a page within the page (`srcdoc`). A known fault of it: after a tag that ends with `attribute=>` it reads on as if in no raw text, so what a
//! script with such a tag holds may be taken for markup.

mod assets;
mod forms;

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;

use encoding_rs::Encoding;
use lol_html::html_content::{Element, EndTag, TextChunk};
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Selector, Settings};

use super::capture::{Capture, tidy};
use super::directives::is_addressed;
use super::entities::{self, Place};
use super::links::refresh_target;
use super::relation::{self, has_token, rel_text};
use super::signals::{MAX_SIGNAL_CHARS, TdmMeta};
use super::{Input, LinkKind, MAX_ANCHOR_CHARS, Rel, Wants};
use forms::Forms;

pub(super) const MAX_TITLE_CHARS: usize = 1_000;
pub(super) const MAX_DESCRIPTION_CHARS: usize = 2_000;
pub(super) const MAX_LANG_CHARS: usize = 64;
pub(super) const MAX_ROBOTS_CHARS: usize = 1_000;

/// What the parser may hold, open elements above all. A page nested deeper than some hundred thousand elements is cut
/// there, and what was found before is kept.
const MAX_PARSER_BYTES: usize = 32 * 1024 * 1024;

static ELEMENTS: LazyLock<Selector> = LazyLock::new(|| {
    selector(
        "a[href], a[xlink\\:href], area[href], link[href], iframe[src], iframe[srcdoc], frame[src], base[href], meta[content], \
         html[lang], template, svg, title, h1, br",
    )
});
static PICTURES: LazyLock<Selector> = LazyLock::new(|| selector("a img[alt]"));
static ANCHORS: LazyLock<Selector> = LazyLock::new(|| selector("a"));
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
    pub(super) tdm: TdmMeta,
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
    pub(super) rel: Rel,
    pub(super) kind: LinkKind,
    pub(super) rel_text: Option<Box<str>>,
    pub(super) anchor: Option<Box<str>>,
}

impl RawLink {
    pub(super) fn new(href: String, kind: LinkKind) -> RawLink {
        RawLink {
            href,
            rel: Rel::default(),
            kind,
            rel_text: None,
            anchor: None,
        }
    }
}

/// Reads a page. An error of the parser ends the pass, not the page.
pub(super) fn read(text: &str, input: &Input<'_>, encoding: &'static Encoding) -> RawPage {
    let collector = Rc::new(RefCell::new(Collector::new(input)));
    pass(text, &collector);
    let unscripted = std::mem::take(&mut collector.borrow_mut().unscripted);
    if !unscripted.is_empty() {
        collector.borrow_mut().begin_unscripted();
        pass(&unscripted, &collector);
    }
    let mut collector = collector.borrow_mut();
    collector.close_anchor();
    let mut page = std::mem::take(&mut collector.page);
    page.title = collector.title.take();
    page.h1 = collector.heading.take();
    let forms = std::mem::take(&mut collector.forms);
    page.links.extend(forms.links(input.url.as_str(), encoding));
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
    let mut settings = Settings::new()
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
        ));
    let wants = collector.borrow().wants;
    if wants.noscript {
        settings = settings.append_element_content_handler((
            Cow::Borrowed(&*UNSCRIPTED),
            texts(Collector::push_unscripted),
        ));
    }
    if wants.assets {
        settings = assets::with_handlers(settings, collector);
    }
    if wants.forms {
        settings = forms::with_handlers(settings, collector);
    }
    if collector.borrow().anchors {
        let pictures = ElementContentHandlers::default().element({
            let collector = Rc::clone(collector);
            move |element: &mut Element<'_, '_>| {
                if let Some(alt) = attribute(element, "alt") {
                    collector.borrow_mut().anchor.push_decoded(&alt);
                }
                Ok(())
            }
        });
        settings = settings
            .append_element_content_handler((
                Cow::Borrowed(&*ANCHORS),
                texts(|to, chunk| to.anchor.push(chunk)),
            ))
            .append_element_content_handler((Cow::Borrowed(&*PICTURES), pictures));
    }
    let mut parser = HtmlRewriter::new(settings, |_: &[u8]| {});
    if parser.write(text.as_bytes()).is_ok() {
        let _ = parser.end();
    }
}

struct Collector {
    token: String,
    anchors: bool,
    wants: Wants,
    page: RawPage,
    /// The text of the link at hand.
    anchor: Capture,
    /// Its place among the links.
    anchor_of: usize,
    title: Capture,
    heading: Capture,
    /// How many templates are open: what is in one is no part of the page.
    templates: usize,
    /// How many drawings are open: they have titles, too.
    drawings: usize,
    /// Texts of `<noscript>` and `<noframes>`, and pages within the page.
    unscripted: String,
    in_unscripted: bool,
    forms: Forms,
    /// The text of the style at hand.
    style: String,
}

impl Collector {
    fn new(input: &Input<'_>) -> Collector {
        Collector {
            token: input.robots_token.to_owned(),
            anchors: input.anchors,
            wants: input.wants,
            page: RawPage::default(),
            anchor: Capture::new(MAX_ANCHOR_CHARS),
            anchor_of: 0,
            title: Capture::new(MAX_TITLE_CHARS),
            heading: Capture::new(MAX_TITLE_CHARS),
            templates: 0,
            drawings: 0,
            unscripted: String::new(),
            in_unscripted: false,
            forms: Forms::default(),
            style: String::new(),
        }
    }

    fn begin_unscripted(&mut self) {
        self.close_anchor();
        self.title.close();
        self.heading.close();
        self.templates = 0;
        self.drawings = 0;
        self.style.clear();
        self.in_unscripted = true;
    }

    fn leave_template(&mut self) {
        self.templates = self.templates.saturating_sub(1);
    }

    fn leave_drawing(&mut self) {
        self.drawings = self.drawings.saturating_sub(1);
    }

    /// Whether links are read where the parser is.
    fn is_read(&self) -> bool {
        self.templates == 0 || self.wants.templates
    }

    /// Whether what the parser is in is no part of the page itself, whose links alone are read.
    fn is_aside(&self) -> bool {
        self.in_unscripted || self.templates > 0
    }

    fn push_unscripted(&mut self, chunk: &TextChunk<'_>) {
        if !self.in_unscripted && self.is_read() {
            self.unscripted.push_str(chunk.as_str());
            if chunk.last_in_text_node() {
                self.unscripted.push('\n');
            }
        }
    }

    fn link(&mut self, element: &Element<'_, '_>, href: Option<String>, kind: LinkKind) {
        let Some(href) = href else {
            return;
        };
        let rel = attribute(element, "rel").unwrap_or_default();
        let mut kind = kind;
        if kind == LinkKind::Link {
            if has_token(&rel, "canonical") && self.page.canonical.is_none() && self.templates == 0
            {
                self.page.canonical = Some(href.clone());
            }
            let media_type = attribute(element, "type");
            match relation::kind(&rel, media_type.as_deref(), &self.wants) {
                Some(found) => kind = found,
                None => return,
            }
        }
        // An empty reference is the page itself only where a reader could click on it.
        if !matches!(kind, LinkKind::Anchor | LinkKind::Area) && href.trim().is_empty() {
            return;
        }
        self.push(RawLink {
            rel: Rel::of(&rel),
            ..RawLink::new(href, kind)
        });
        if self.anchors {
            self.describe(element, &rel);
        }
    }

    fn push(&mut self, link: RawLink) {
        self.page.links.push(link);
    }

    /// Notes what is said of the link that was found last; its text goes on until it ends.
    fn describe(&mut self, element: &Element<'_, '_>, rel: &str) {
        let Some(link) = self.page.links.last_mut() else {
            return;
        };
        link.rel_text = rel_text(rel);
        let said =
            |name: &str| attribute(element, name).and_then(|text| tidy(&text, MAX_ANCHOR_CHARS));
        link.anchor = said("alt")
            .or_else(|| said("title"))
            .map(String::into_boxed_str);
        if link.kind == LinkKind::Anchor {
            // A link within a link ends it, as in the tree that a browser builds.
            self.close_anchor();
            self.anchor.open = true;
            self.anchor_of = self.page.links.len() - 1;
        }
    }

    fn close_anchor(&mut self) {
        if let Some(text) = self.anchor.take()
            && let Some(link) = self.page.links.get_mut(self.anchor_of)
        {
            link.anchor = Some(text.into_boxed_str());
        }
    }

    fn meta(&mut self, element: &Element<'_, '_>) {
        let Some(content) = attribute(element, "content") else {
            return;
        };
        if attribute(element, "http-equiv")
            .is_some_and(|name| name.trim().eq_ignore_ascii_case("refresh"))
        {
            if let Some(target) = refresh_target(&content) {
                self.push(RawLink::new(target.to_owned(), LinkKind::Refresh));
            }
        } else if let Some(name) = attribute(element, "name").filter(|_| !self.is_aside()) {
            if name.trim().eq_ignore_ascii_case("description") {
                self.page.description = self
                    .page
                    .description
                    .take()
                    .or_else(|| tidy(&content, MAX_DESCRIPTION_CHARS));
            } else if is_addressed(&name, &self.token) {
                self.page.robots.extend(tidy(&content, MAX_ROBOTS_CHARS));
            } else {
                let tdm = &mut self.page.tdm;
                let place = match name.trim().to_ascii_lowercase().as_str() {
                    "tdm-reservation" => &mut tdm.reservation,
                    "tdm-policy" => &mut tdm.policy,
                    _ => return,
                };
                *place = place.take().or_else(|| tidy(&content, MAX_SIGNAL_CHARS));
            }
        }
    }
}

fn on_element(collector: &Shared, element: &mut Element<'_, '_>) {
    let name = element.tag_name();
    let mut to = collector.borrow_mut();
    if name == "template" && on_end(collector, element, Collector::leave_template) {
        to.templates += 1;
    }
    if !to.is_read() {
        return;
    }
    match name.as_str() {
        "a" => {
            let href = match to.drawings {
                0 => attribute(element, "href"),
                _ => link_in_drawing(element),
            };
            to.link(element, href, LinkKind::Anchor);
            if to.anchors {
                on_end(collector, element, Collector::close_anchor);
            }
        }
        "area" => to.link(element, attribute(element, "href"), LinkKind::Area),
        "link" => to.link(element, attribute(element, "href"), LinkKind::Link),
        "iframe" => match attribute(element, "srcdoc") {
            // It is what is shown, whatever `src` says.
            Some(page) => {
                if !to.in_unscripted {
                    to.unscripted.push_str(&page);
                    to.unscripted.push('\n');
                }
            }
            None => to.link(element, attribute(element, "src"), LinkKind::Iframe),
        },
        "frame" => to.link(element, attribute(element, "src"), LinkKind::Frame),
        "meta" => to.meta(element),
        // What follows is about the page as a whole, of which this is an alternative only.
        _ if to.is_aside() => {}
        "base" if to.page.base.is_none() => to.page.base = attribute(element, "href"),
        "html" if to.page.lang.is_none() => {
            to.page.lang = attribute(element, "lang").and_then(|lang| tidy(&lang, MAX_LANG_CHARS));
        }
        "svg" if on_end(collector, element, Collector::leave_drawing) => to.drawings += 1,
        "title" if to.title.is_empty() && to.drawings == 0 => {
            to.title.open = on_end(collector, element, |to| to.title.close());
        }
        "h1" if to.heading.is_empty() => {
            to.heading.open = on_end(collector, element, |to| to.heading.close());
        }
        "br" if to.heading.open => to.heading.push_str(" "),
        _ => {}
    }
}

/// Has something done at the element's end tag; `false` if it cannot have one, as `<svg/>`.
fn on_end(collector: &Shared, element: &mut Element<'_, '_>, deed: fn(&mut Collector)) -> bool {
    let collector = Rc::clone(collector);
    let handler = move |_: &mut EndTag<'_>| {
        deed(&mut collector.borrow_mut());
        Ok(())
    };
    element.on_end_tag(Box::new(handler)).is_ok()
}

/// Where an element of a drawing leads (SVG 2 §16.1: the older attribute gives way).
fn link_in_drawing(element: &Element<'_, '_>) -> Option<String> {
    attribute(element, "href").or_else(|| attribute(element, "xlink:href"))
}

/// An attribute's value, references decoded.
fn attribute(element: &Element<'_, '_>, name: &str) -> Option<String> {
    let raw = element.get_attribute(name)?;
    match entities::decode(&raw, Place::Attribute) {
        Cow::Owned(decoded) => Some(decoded),
        Cow::Borrowed(_) => Some(raw),
    }
}
