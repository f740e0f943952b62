//! One pass over the text of an HTML page, which collects what is of use, still unresolved.
//!
//! `tokens` takes the text apart, `tree` and `reach` know what the tags are in, `collect` takes what it is asked for; attributes and texts are raw
//! until then, and character references are decoded where they are wanted. `<noscript>` is read as a browser with scripts does, as plain text;
//! what stands in it is for readers like us, so it gets a pass of its own, and so does a page within the page (`srcdoc`).

mod assets;
mod collect;
mod forms;
mod reach;
mod tokens;
mod tree;

use std::borrow::Cow;
use std::cell::OnceCell;

use encoding_rs::Encoding;

use super::signals::TdmMeta;
use super::{Input, LinkKind, Rel};
use collect::Collector;
use tokens::{Token, Tokens};
use tree::Tree;

pub(super) const MAX_TITLE_CHARS: usize = 1_000;
pub(super) const MAX_DESCRIPTION_CHARS: usize = 2_000;
pub(super) const MAX_LANG_CHARS: usize = 64;
pub(super) const MAX_ROBOTS_CHARS: usize = 1_000;

/// What a page says, references decoded, URLs unresolved.
#[derive(Debug, Default)]
pub(super) struct RawPage<'t> {
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
    pub(super) links: Vec<RawLink<'t>>,
}

/// A link as it stands in the page.
#[derive(Debug)]
pub(super) struct RawLink<'t> {
    pub(super) href: Cow<'t, str>,
    pub(super) rel: Rel,
    pub(super) kind: LinkKind,
    pub(super) rel_text: Option<Box<str>>,
    pub(super) anchor: Option<Box<str>>,
}

impl<'t> RawLink<'t> {
    pub(super) fn new(href: impl Into<Cow<'t, str>>, kind: LinkKind) -> RawLink<'t> {
        RawLink {
            href: href.into(),
            rel: Rel::default(),
            kind,
            rel_text: None,
            anchor: None,
        }
    }
}

/// Reads a page. What stands in `<noscript>` and the like is kept in `aside`, since links may be pieces of it.
pub(super) fn read<'t>(
    text: &'t str,
    aside: &'t OnceCell<String>,
    input: &Input<'t>,
    encoding: &'static Encoding,
) -> RawPage<'t> {
    let mut collector = Collector::new(input);
    pass(text, &mut collector);
    let unscripted = collector.begin_unscripted();
    if !unscripted.is_empty() {
        pass(aside.get_or_init(|| unscripted), &mut collector);
    }
    collector.finish(input.url.as_str(), encoding)
}

fn pass<'t>(text: &'t str, to: &mut Collector<'t>) {
    // A style may be an attribute of any element.
    let mut tokens = Tokens::new(text, to.wants.assets);
    let mut tree = Tree::default();
    while let Some(token) = tokens.next(to.listens()) {
        match token {
            Token::Start(tag) => {
                let placed = tree.start(&tag);
                to.start(&tag, placed, tree.depth());
                let name = tag.name;
                tokens.read_as(placed.content, name);
            }
            Token::End(name) => {
                tree.end(name);
                to.end(name, tree.depth());
            }
            Token::Text(text, content) => to.text(text, content),
        }
        tokens.allow_cdata(tree.is_foreign());
    }
    to.end_below(0);
}
