//! What a page is made of: pictures, styles, scripts, media.

use std::borrow::Cow;

use super::super::entities::{self, Place};
use super::super::{LinkKind, css, srcset};
use super::RawLink;
use super::collect::{Collector, Ends, link_in_drawing};
use super::tokens::Tag;
use super::tokens::name::*;
use super::tree::{Placed, World};

impl<'t> Collector<'t> {
    /// Takes the assets that a tag names.
    pub(super) fn asset_of(&mut self, tag: &Tag<'_, 't>, placed: Placed, depth: usize) {
        let mut take = |name: &str, kind: LinkKind| self.asset(tag.attribute(name), kind);
        match (placed.world, tag.name) {
            (World::Svg, IMAGE | USE | FEIMAGE) => {
                self.asset(link_in_drawing(tag), LinkKind::Svg);
            }
            // Outside of a drawing it is a misspelt `img`, which browsers put right.
            (World::Html, IMAGE) => take("src", LinkKind::Image),
            (_, IMG) => {
                take("src", LinkKind::Image);
                self.candidates(tag.attribute("srcset"));
            }
            (_, SOURCE) => {
                take("src", LinkKind::Source);
                self.candidates(tag.attribute("srcset"));
            }
            (_, VIDEO) => {
                take("src", LinkKind::Video);
                take("poster", LinkKind::Video);
            }
            (_, AUDIO) => take("src", LinkKind::Audio),
            (_, TRACK) => take("src", LinkKind::Track),
            (_, SCRIPT) => take("src", LinkKind::Script),
            (_, OBJECT) => take("data", LinkKind::Object),
            (_, EMBED) => take("src", LinkKind::Embed),
            (_, INPUT)
                if tag
                    .attribute("type")
                    .is_some_and(|kind| kind.eq_ignore_ascii_case("image")) =>
            {
                take("src", LinkKind::Input);
            }
            (_, BODY | TABLE | TR | TD | TH) => take("background", LinkKind::Background),
            (World::Svg | World::MathMl, STYLE) if placed.has_content => {
                self.style = Some(String::new());
                self.mark(Ends::Style, depth);
            }
            _ => {}
        }
        if let Some(style) = tag.attribute("style") {
            self.styles(&style);
        }
    }

    /// Takes the text of a style.
    pub(super) fn style(&mut self, text: &str) {
        if self.wants.assets && self.is_read() {
            self.styles(text);
        }
    }

    /// Takes the text of a drawing's style, which is markup.
    pub(super) fn end_style(&mut self) {
        if let Some(style) = self.style.take() {
            self.style(&entities::decode(&style, Place::Text));
        }
    }

    /// An empty reference is none, and one that is a fragment alone is a part of the page.
    fn asset(&mut self, href: Option<Cow<'t, str>>, kind: LinkKind) {
        if let Some(href) = href.filter(|href| {
            let href = href.trim();
            !href.is_empty() && !href.starts_with('#')
        }) {
            self.push(RawLink::new(href, kind));
        }
    }

    fn candidates(&mut self, list: Option<Cow<'t, str>>) {
        for url in srcset::urls(list.as_deref().unwrap_or_default()) {
            self.asset(Some(Cow::Owned(url.to_owned())), LinkKind::Srcset);
        }
    }

    fn styles(&mut self, text: &str) {
        for url in css::urls(text) {
            self.push(RawLink::new(url, LinkKind::Css));
        }
    }
}
