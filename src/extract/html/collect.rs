//! What is taken from a page, tag by tag.

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::super::capture::{Capture, tidy};
use super::super::directives::is_addressed;
use super::super::links::refresh_target;
use super::super::relation::{self, has_token, rel_text};
use super::super::signals::MAX_SIGNAL_CHARS;
use super::super::{Input, LinkKind, MAX_ANCHOR_CHARS, Rel, Wants};
use super::forms::Forms;
use super::tokens::name::*;
use super::tokens::{Content, Name, Tag};
use super::tree::{Placed, World};
use super::{
    MAX_DESCRIPTION_CHARS, MAX_LANG_CHARS, MAX_ROBOTS_CHARS, MAX_TITLE_CHARS, RawLink, RawPage,
};

/// What is done when an element ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    Template,
    Anchor,
    Title,
    Heading,
    /// A style within a drawing; elsewhere it is one text.
    Style,
    /// A group of controls that is disabled.
    Disabled,
    Select,
    /// An option or a text field.
    FieldText,
}

/// An open element at whose end something is to be done.
#[derive(Debug)]
struct Mark {
    depth: usize,
    ends: Ends,
}

/// Takes what is of use.
pub(super) struct Collector<'t> {
    robots_token: &'t str,
    anchors: bool,
    pub(super) wants: Wants,
    page: RawPage<'t>,
    /// The text of the link at hand.
    anchor: Capture,
    /// Its place among the links.
    anchor_of: usize,
    title: Capture,
    heading: Capture,
    marks: Vec<Mark>,
    /// The element that began last, which a text that is no markup belongs to.
    last: Name,
    /// How many templates are open: what is in one is no part of the page.
    templates: usize,
    /// Texts of `<noscript>` and `<noframes>`, and pages within the page.
    unscripted: String,
    in_unscripted: bool,
    pub(super) forms: Forms,
    /// The text of the drawing's style at hand.
    pub(super) style: Option<String>,
}

impl<'t> Collector<'t> {
    pub(super) fn new(input: &Input<'t>) -> Collector<'t> {
        Collector {
            robots_token: input.robots_token,
            anchors: input.anchors,
            wants: input.wants,
            page: RawPage::default(),
            anchor: Capture::new(MAX_ANCHOR_CHARS),
            anchor_of: 0,
            title: Capture::new(MAX_TITLE_CHARS),
            heading: Capture::new(MAX_TITLE_CHARS),
            marks: Vec::new(),
            last: Name::NONE,
            templates: 0,
            unscripted: String::new(),
            in_unscripted: false,
            forms: Forms::default(),
            style: None,
        }
    }

    /// Gives away what is to be read in a second pass, which begins now.
    pub(super) fn begin_unscripted(&mut self) -> String {
        self.close_anchor();
        self.title.close();
        self.heading.close();
        self.in_unscripted = true;
        std::mem::take(&mut self.unscripted)
    }

    pub(super) fn finish(mut self, url: &str, encoding: &'static Encoding) -> RawPage<'t> {
        self.close_anchor();
        let mut page = self.page;
        page.title = self.title.take();
        page.h1 = self.heading.take();
        page.links.extend(self.forms.links(url, encoding));
        page
    }

    /// Whether texts between tags are of use at the moment.
    #[inline]
    pub(super) fn listens(&self) -> bool {
        self.anchor.open
            || self.heading.open
            || self.title.open
            || self.style.is_some()
            || self.forms.listens()
    }

    pub(super) fn text(&mut self, text: &str, content: Content) {
        // A script within a heading is no text of it.
        if matches!(content, Content::Data | Content::Rcdata) {
            for capture in [&mut self.title, &mut self.heading, &mut self.anchor] {
                capture.push(text);
            }
            self.forms.text(text);
        }
        match (content, self.last) {
            (Content::Rawtext, NOSCRIPT | NOFRAMES) if self.wants.noscript => {
                self.push_unscripted(text);
            }
            (Content::Rawtext, STYLE) => self.style(text),
            (Content::Data | Content::Cdata, _) => {
                if let Some(style) = &mut self.style {
                    style.push_str(text);
                }
            }
            _ => {}
        }
    }

    /// Takes a start tag whose element stands at this depth.
    #[inline]
    pub(super) fn start(&mut self, tag: &Tag<'_, 't>, placed: Placed, depth: usize) {
        self.last = tag.name;
        // A tag that is no part of a drawing ends it.
        self.end_below(depth - usize::from(placed.has_content));
        if !tag.name.is_asked() && !self.wants.assets {
            return;
        }
        self.start_asked(tag, placed, depth);
    }

    fn start_asked(&mut self, tag: &Tag<'_, 't>, placed: Placed, depth: usize) {
        if tag.name == TEMPLATE && placed.has_content {
            self.templates += 1;
            self.mark(Ends::Template, depth);
        }
        if self.is_read() {
            self.element(tag, placed, depth);
            if self.wants.assets {
                self.asset_of(tag, placed, depth);
            }
            if self.wants.forms && placed.world == World::Html {
                self.control(tag, depth);
            }
        }
        if tag.name == IMG
            && self.anchor.open
            && let Some(alt) = tag.attribute("alt")
        {
            self.anchor.push_decoded(&alt);
        }
    }

    /// Has something done at the element's end.
    pub(super) fn mark(&mut self, ends: Ends, depth: usize) {
        self.marks.push(Mark { depth, ends });
    }

    /// Takes an end tag, after which so many elements are open.
    #[inline]
    pub(super) fn end(&mut self, name: Name, depth: usize) {
        self.end_below(depth);
        match name {
            // These end by their tags wherever they stand.
            A => self.close_anchor(),
            FORM => self.forms.close(),
            _ => {}
        }
    }

    /// Does what is to be done at the end of all elements but the outermost so many.
    #[inline]
    pub(super) fn end_below(&mut self, depth: usize) {
        while let Some(mark) = self.marks.pop_if(|mark| mark.depth > depth) {
            match mark.ends {
                Ends::Template => self.templates = self.templates.saturating_sub(1),
                Ends::Anchor => self.close_anchor(),
                Ends::Title => self.title.close(),
                Ends::Heading => self.heading.close(),
                Ends::Style => self.end_style(),
                Ends::Disabled => self.forms.end_disabled(),
                Ends::Select => self.forms.end_select(),
                Ends::FieldText => self.forms.end_text(),
            }
        }
    }

    /// Whether links are read where the parser is.
    pub(super) fn is_read(&self) -> bool {
        self.templates == 0 || self.wants.templates
    }

    /// Whether what the parser is in is no part of the page itself, whose links alone are read.
    fn is_aside(&self) -> bool {
        self.in_unscripted || self.templates > 0
    }

    fn push_unscripted(&mut self, text: &str) {
        if !self.in_unscripted && self.is_read() {
            self.unscripted.push_str(text);
            self.unscripted.push('\n');
        }
    }

    fn element(&mut self, tag: &Tag<'_, 't>, placed: Placed, depth: usize) {
        let is_html = placed.world == World::Html;
        match tag.name {
            A => {
                let href = match placed.world {
                    World::Svg => link_in_drawing(tag),
                    _ => tag.attribute("href"),
                };
                let Some(href) = href else {
                    return;
                };
                self.link(tag, Some(href), LinkKind::Anchor);
                if self.anchors && placed.has_content {
                    self.anchor.open = true;
                    self.anchor_of = self.page.links.len() - 1;
                    self.mark(Ends::Anchor, depth);
                }
            }
            AREA => self.link(tag, tag.attribute("href"), LinkKind::Area),
            LINK => self.link(tag, tag.attribute("href"), LinkKind::Link),
            IFRAME => match tag.attribute("srcdoc") {
                // It is what is shown, whatever `src` says.
                Some(page) => self.push_unscripted(&page),
                None => self.link(tag, tag.attribute("src"), LinkKind::Iframe),
            },
            FRAME => self.link(tag, tag.attribute("src"), LinkKind::Frame),
            META => self.meta(tag),
            // What follows is about the page as a whole, of which this is an alternative only.
            _ if self.is_aside() => {}
            BASE if self.page.base.is_none() => {
                self.page.base = tag.attribute("href").map(Cow::into_owned);
            }
            HTML if is_html && self.page.lang.is_none() => {
                self.page.lang = tag
                    .attribute("lang")
                    .and_then(|lang| tidy(&lang, MAX_LANG_CHARS));
            }
            TITLE if is_html && placed.has_content && self.title.is_empty() => {
                self.title.open = true;
                self.mark(Ends::Title, depth);
            }
            H1 if placed.has_content && self.heading.is_empty() => {
                self.heading.open = true;
                self.mark(Ends::Heading, depth);
            }
            BR => self.heading.push(" "),
            _ => {}
        }
    }

    fn link(&mut self, tag: &Tag<'_, 't>, href: Option<Cow<'t, str>>, kind: LinkKind) {
        let Some(href) = href else {
            return;
        };
        let rel = tag.attribute("rel").unwrap_or_default();
        let mut kind = kind;
        if kind == LinkKind::Link {
            if has_token(&rel, "canonical") && self.page.canonical.is_none() && self.templates == 0
            {
                self.page.canonical = Some(href.clone().into_owned());
            }
            let media_type = tag.attribute("type");
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
            self.describe(tag, &rel);
        }
    }

    pub(super) fn push(&mut self, link: RawLink<'t>) {
        self.page.links.push(link);
    }

    /// Notes what is said of the link that was found last; its text goes on until it ends.
    fn describe(&mut self, tag: &Tag<'_, 't>, rel: &str) {
        let Some(link) = self.page.links.last_mut() else {
            return;
        };
        link.rel_text = rel_text(rel);
        let said = |name: &str| {
            tag.attribute(name)
                .and_then(|text| tidy(&text, MAX_ANCHOR_CHARS))
        };
        link.anchor = said("alt")
            .or_else(|| said("title"))
            .map(String::into_boxed_str);
        if link.kind == LinkKind::Anchor {
            // A link within a link ends it, as in the tree that a browser builds.
            self.close_anchor();
        }
    }

    fn close_anchor(&mut self) {
        if let Some(text) = self.anchor.take()
            && let Some(link) = self.page.links.get_mut(self.anchor_of)
        {
            link.anchor = Some(text.into_boxed_str());
        }
    }

    fn meta(&mut self, tag: &Tag<'_, 't>) {
        let Some(content) = tag.attribute("content") else {
            return;
        };
        if tag
            .attribute("http-equiv")
            .is_some_and(|name| name.trim().eq_ignore_ascii_case("refresh"))
        {
            if let Some(target) = refresh_target(&content) {
                self.push(RawLink::new(target.to_owned(), LinkKind::Refresh));
            }
        } else if let Some(name) = tag.attribute("name").filter(|_| !self.is_aside()) {
            if name.trim().eq_ignore_ascii_case("description") {
                self.page.description = self
                    .page
                    .description
                    .take()
                    .or_else(|| tidy(&content, MAX_DESCRIPTION_CHARS));
            } else if is_addressed(&name, self.robots_token) {
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

/// Where an element of a drawing leads (SVG 2 §16.1: the older attribute gives way).
pub(super) fn link_in_drawing<'t>(tag: &Tag<'_, 't>) -> Option<Cow<'t, str>> {
    tag.attribute("href")
        .or_else(|| tag.attribute("xlink:href"))
}
