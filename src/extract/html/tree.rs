//! What of the tree construction stage (HTML standard §13.2.6) a reader of tags has to know: which elements are open, whether they are
//! HTML or belong to a drawing or a formula, and how their content is read.
//!
//! Elements are put on a stack and taken from it by the standard's rules for end tags (their scopes included) and for foreign content
//! (§13.2.6.5). Left out is what a start tag ends by itself (a `<p>` before a `<div>`), where tables throw what does not belong into them,
//! and what `<select>` and `<frameset>` refuse: those move elements about and hide none that matters here.

use super::reach::{Reach, breaks_out, is_heading, is_special};
use super::tokens::name::*;
use super::tokens::{Content, Name, Tag};

/// Open elements that are kept. Browsers have no more than 512 within each other; yet here an element that need not be closed, as `<p>`,
/// stays open up to the end of what it is in.
const MAX_OPEN: usize = 65_536;

/// How many of the innermost elements an end tag is compared with, so that end tags of elements far out take no time that grows.
const MAX_COMPARED: usize = 1_024;

/// What an element belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum World {
    Html,
    Svg,
    MathMl,
}

/// Which start tags within a foreign element are HTML again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Closed,
    /// All: an HTML integration point.
    Html,
    /// All but two: a MathML text integration point.
    Text,
    /// `<svg>` within an `<annotation-xml>`.
    Drawing,
    /// All, within an `<annotation-xml>` that says that it holds HTML. Unlike the others it stops nothing.
    Annotation,
}

/// An open element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) name: Name,
    pub(super) world: World,
    pub(super) door: Door,
}

/// What became of a start tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) world: World,
    /// Whether there is something between it and an end tag; not for `<br>` and `<path/>`.
    pub(super) has_content: bool,
    pub(super) content: Content,
}

/// The open elements.
#[derive(Debug)]
pub(super) struct Tree {
    open: Vec<Open>,
    is_foreign: bool,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree {
            // Deeper than most pages are.
            open: Vec::with_capacity(64),
            is_foreign: false,
        }
    }
}

impl Tree {
    /// How many elements are open. What was opened at a depth is closed when there are fewer.
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Whether the innermost element is of a drawing or a formula.
    #[inline]
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    #[inline]
    pub(super) fn start(&mut self, tag: &Tag<'_, '_>) -> Placed {
        if self.is_foreign
            && let Some(placed) = self.start_foreign(tag)
        {
            return placed;
        }
        if !tag.name.is_asked() {
            return self.place(tag.name, Content::Data);
        }
        let content = match tag.name {
            AREA | BASE | BASEFONT | BGSOUND | BR | COL | EMBED | FRAME | HR | IMAGE | IMG
            | INPUT | KEYGEN | LINK | META | PARAM | SOURCE | TRACK | WBR
            // Their end tags end nothing either.
            | BODY | HTML => {
                return Placed {
                    world: World::Html,
                    has_content: false,
                    content: Content::Data,
                };
            }
            SVG | MATH => return self.start_world(tag),
            TITLE | TEXTAREA => Content::Rcdata,
            // As a browser with scripts does.
            STYLE | XMP | IFRAME | NOEMBED | NOFRAMES | NOSCRIPT => Content::Rawtext,
            SCRIPT => Content::Script,
            PLAINTEXT => Content::Plaintext,
            _ => Content::Data,
        };
        self.place(tag.name, content)
    }

    #[inline]
    fn place(&mut self, name: Name, content: Content) -> Placed {
        Placed {
            world: World::Html,
            has_content: self.push(name, World::Html, Door::Closed),
            content,
        }
    }

    fn start_world(&mut self, tag: &Tag<'_, '_>) -> Placed {
        let world = if tag.name == SVG {
            World::Svg
        } else {
            World::MathMl
        };
        self.place_foreign(tag, world, Door::Closed)
    }

    fn place_foreign(&mut self, tag: &Tag<'_, '_>, world: World, door: Door) -> Placed {
        Placed {
            world,
            has_content: !tag.is_self_closing && self.push(tag.name, world, door),
            content: Content::Data,
        }
    }

    /// Whether there is room for it; what is not kept is read, and has no end.
    #[inline]
    fn push(&mut self, name: Name, world: World, door: Door) -> bool {
        let has_room = self.open.len() < MAX_OPEN;
        if has_room {
            self.open.push(Open { name, world, door });
            self.is_foreign = world != World::Html;
        }
        has_room
    }

    /// Places a tag in foreign content; `None` if it is placed as HTML.
    #[cold]
    fn start_foreign(&mut self, tag: &Tag<'_, '_>) -> Option<Placed> {
        let within = *self.open.last()?;
        let is_html = match within.door {
            Door::Closed => false,
            Door::Html | Door::Annotation => true,
            Door::Text => !matches!(tag.name, MGLYPH | MALIGNMARK),
            Door::Drawing => tag.name == SVG,
        };
        if is_html {
            return None;
        }
        if breaks_out(tag) {
            self.leave_foreign();
            return None;
        }
        let door = match (within.world, tag.name) {
            (World::Svg, FOREIGNOBJECT | DESC | TITLE) => Door::Html,
            (World::MathMl, MI | MO | MN | MS | MTEXT) => Door::Text,
            (World::MathMl, ANNOTATION_XML) => {
                let holds_html = tag.attribute("encoding").is_some_and(|kind| {
                    kind.eq_ignore_ascii_case("text/html")
                        || kind.eq_ignore_ascii_case("application/xhtml+xml")
                });
                if holds_html {
                    Door::Annotation
                } else {
                    Door::Drawing
                }
            }
            _ => Door::Closed,
        };
        Some(self.place_foreign(tag, within.world, door))
    }

    /// Ends foreign elements up to one in which HTML may stand.
    fn leave_foreign(&mut self) {
        let stops =
            |open: &Open| open.world == World::Html || matches!(open.door, Door::Html | Door::Text);
        let length = self.open.iter().rposition(stops).map_or(0, |at| at + 1);
        self.cut(length);
    }

    fn cut(&mut self, length: usize) {
        self.open.truncate(length);
        self.is_foreign = self
            .open
            .last()
            .is_some_and(|open| open.world != World::Html);
    }

    #[inline]
    pub(super) fn end(&mut self, name: Name) {
        let Some(within) = self.open.last() else {
            return;
        };
        if within.name == name {
            self.cut(self.open.len() - 1);
        } else if self.is_foreign {
            self.end_foreign(name);
        } else {
            self.end_html(name);
        }
    }

    #[cold]
    fn end_foreign(&mut self, name: Name) {
        if matches!(name, P | BR) {
            self.leave_foreign();
            return self.end_html(name);
        }
        for at in self.innermost() {
            let open = self.open[at];
            if open.world == World::Html {
                break;
            }
            if open.name == name {
                return self.cut(at);
            }
        }
        self.end_html(name);
    }

    fn end_html(&mut self, name: Name) {
        let reach = Reach::of(name);
        let is_meant = |open: &Open| {
            open.world == World::Html
                && (open.name == name || (reach == Reach::Heading && is_heading(open.name)))
        };
        let mut is_within_special = false;
        for at in self.innermost() {
            let open = self.open[at];
            if is_meant(&open) {
                match reach {
                    // What is in it goes on (§13.2.6.4.7, "adoption agency algorithm"); nothing ends what is left of it.
                    Reach::Formatting if is_within_special => self.open[at].name = Name::NONE,
                    _ => self.cut(at),
                }
                return;
            }
            if reach.stops_at(&open) {
                return;
            }
            is_within_special |= open.world == World::Html && is_special(open.name);
        }
    }

    /// Where the innermost elements stand that an end tag is compared with, from within outwards.
    fn innermost(&self) -> impl Iterator<Item = usize> + use<> {
        let length = self.open.len();
        (length.saturating_sub(MAX_COMPARED)..length).rev()
    }
}
