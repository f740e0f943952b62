//! What a page is made of: pictures, styles, scripts, media.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::LazyLock;

use lol_html::html_content::{Element, TextChunk};
use lol_html::{ElementContentHandlers, Selector, Settings};

use super::super::{LinkKind, css, srcset};
use super::{Collector, RawLink, Shared, attribute, selector};

static ASSETS: LazyLock<Selector> = LazyLock::new(|| {
    selector(
        "img, image, source, video, audio, track[src], script[src], object[data], embed[src], input[src], use, feimage, \
         body[background], table[background], tr[background], td[background], th[background]",
    )
});
static STYLED: LazyLock<Selector> = LazyLock::new(|| selector("[style]"));
static STYLE: LazyLock<Selector> = LazyLock::new(|| selector("style"));

/// Has assets collected, too.
pub(super) fn with_handlers<'h>(
    settings: Settings<'h, 'static>,
    collector: &Shared,
) -> Settings<'h, 'static> {
    let on = |deed: fn(&mut Collector, &Element<'_, '_>)| {
        let collector = Rc::clone(collector);
        ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
            let mut to = collector.borrow_mut();
            if to.is_read() {
                deed(&mut to, element);
            }
            Ok(())
        })
    };
    let to = Rc::clone(collector);
    let style = ElementContentHandlers::default().text(move |chunk: &mut TextChunk<'_>| {
        let mut to = to.borrow_mut();
        if to.is_read() {
            push_style(&mut to, chunk);
        }
        Ok(())
    });
    settings
        .append_element_content_handler((Cow::Borrowed(&*ASSETS), on(element)))
        .append_element_content_handler((Cow::Borrowed(&*STYLED), on(styled)))
        .append_element_content_handler((Cow::Borrowed(&*STYLE), style))
}

fn element(to: &mut Collector, element: &Element<'_, '_>) {
    let is_drawing = to.drawings > 0;
    let mut take = |name: &str, kind: LinkKind| to.asset(attribute(element, name), kind);
    match element.tag_name().as_str() {
        "img" => {
            take("src", LinkKind::Image);
            to.candidates(attribute(element, "srcset"));
        }
        // Within a drawing; elsewhere it is a misspelt `img`, which browsers put right.
        "image" if !is_drawing => take("src", LinkKind::Image),
        "image" | "use" | "feimage" => to.asset(super::link_in_drawing(element), LinkKind::Svg),
        "source" => {
            take("src", LinkKind::Source);
            to.candidates(attribute(element, "srcset"));
        }
        "video" => {
            take("src", LinkKind::Video);
            take("poster", LinkKind::Video);
        }
        "audio" => take("src", LinkKind::Audio),
        "track" => take("src", LinkKind::Track),
        "script" => take("src", LinkKind::Script),
        "object" => take("data", LinkKind::Object),
        "embed" => take("src", LinkKind::Embed),
        "input" => {
            if attribute(element, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) {
                take("src", LinkKind::Input);
            }
        }
        _ => take("background", LinkKind::Background),
    }
}

fn styled(to: &mut Collector, element: &Element<'_, '_>) {
    if let Some(style) = attribute(element, "style") {
        to.styles(&style);
    }
}

fn push_style(to: &mut Collector, chunk: &TextChunk<'_>) {
    to.style.push_str(chunk.as_str());
    if chunk.last_in_text_node() {
        let style = std::mem::take(&mut to.style);
        to.styles(&style);
    }
}

impl Collector {
    /// An empty reference is none, and one that is a fragment alone is a part of the page.
    fn asset(&mut self, href: Option<String>, kind: LinkKind) {
        if let Some(href) = href.filter(|href| {
            let href = href.trim();
            !href.is_empty() && !href.starts_with('#')
        }) {
            self.push(RawLink::new(href, kind));
        }
    }

    fn candidates(&mut self, list: Option<String>) {
        for url in srcset::urls(list.as_deref().unwrap_or_default()) {
            self.asset(Some(url.to_owned()), LinkKind::Srcset);
        }
    }

    fn styles(&mut self, text: &str) {
        for url in css::urls(text) {
            self.push(RawLink::new(url, LinkKind::Css));
        }
    }
}
