//! A link as the rest of the program knows it: where it leads, what makes it, what is said of it.

use crate::canon::PageUrl;

/// Characters kept of a link's text.
pub const MAX_ANCHOR_CHARS: usize = 200;

/// Characters kept of the tokens of `rel`.
pub const MAX_REL_CHARS: usize = 200;

/// A link to a page, or to what a page is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub url: PageUrl,
    /// What their `rel` says.
    pub rel: Rel,
    /// What the first of them is.
    pub kind: LinkKind,
    /// The tokens of the first one's `rel` in lower case with a blank between, at most [`MAX_REL_CHARS`]; none where it
    /// has none, or [`Input::anchors`](super::Input::anchors) is off.
    pub rel_text: Option<Box<str>>,
    /// The text of the first that has any, white space collapsed, at most [`MAX_ANCHOR_CHARS`]: what stands in the
    /// element, the `alt` of images in it included, else its `alt` or `title`. None where
    /// [`Input::anchors`](super::Input::anchors) is off.
    pub anchor: Option<Box<str>>,
}

/// What `rel` says of a link, a set of tokens compared without case (HTML standard).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rel {
    /// `nofollow`, on each of the links to the URL: it is not followed.
    pub nofollow: bool,
    /// `ugc`, on one of them: what users wrote. Only recorded.
    pub ugc: bool,
    /// `sponsored`, on one of them: an advertisement. Only recorded.
    pub sponsored: bool,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $word:literal,)*) => {
        /// What makes a link.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum LinkKind {
            $($(#[$doc])* $kind,)*
        }

        impl LinkKind {
            /// Every kind.
            pub const ALL: &[LinkKind] = &[$(LinkKind::$kind),*];

            /// The word for it in tables.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(LinkKind::$kind => $word,)*
                }
            }
        }
    };
}

kinds! {
    /// `<a href>`, in a drawing too
    Anchor "a",
    /// `<area href>`
    Area "area",
    /// `<link href>` of another relation between pages
    Link "link",
    /// `<link rel=canonical>`
    Canonical "canonical",
    /// `<link rel=alternate>`: a translation, a feed
    Alternate "alternate",
    /// `<link rel=next>`
    Next "next",
    /// `<link rel=prev>`
    Prev "prev",
    /// `<iframe src>`
    Iframe "iframe",
    /// `<frame src>`
    Frame "frame",
    /// `<form action>` with what it would send
    Form "form",
    /// `<meta http-equiv=refresh>` and the header field `Refresh`
    Refresh "refresh",
    /// The header field `Link` (RFC 8288)
    Header "header",
    /// Where an answer redirects to
    Redirect "redirect",
    /// An entry of a feed, or the page that the feed is of
    Feed "feed",
    /// An entry of a sitemap
    Sitemap "sitemap",
    /// A URL in plain text
    Text "text",
    /// `<img src>`
    Image "img",
    /// `srcset` of `<img>` and `<source>`
    Srcset "srcset",
    /// `<source src>`
    Source "source",
    /// `<video src>` and its `poster`
    Video "video",
    /// `<audio src>`
    Audio "audio",
    /// `<track src>`
    Track "track",
    /// `<script src>`
    Script "script",
    /// `<link rel=stylesheet>`
    Stylesheet "stylesheet",
    /// `<link rel=icon>`
    Icon "icon",
    /// `<link rel=preload>` and `modulepreload`
    Preload "preload",
    /// `<link rel=manifest>`
    Manifest "manifest",
    /// `<object data>`
    Object "object",
    /// `<embed src>`
    Embed "embed",
    /// `<input type=image src>`
    Input "input",
    /// `background` of `<body>` and parts of tables
    Background "background",
    /// `url()` and `@import` of a style
    Css "css",
    /// `<image href>`, `<use href>` and `<feImage href>` of a drawing
    Svg "svg",
    /// What a feed encloses: sounds, films, pictures
    Enclosure "enclosure",
}

impl LinkKind {
    /// Whether it is part of the page that has it (a picture, a style), and no other page.
    pub fn is_asset(self) -> bool {
        use LinkKind::*;
        matches!(
            self,
            Image
                | Srcset
                | Source
                | Video
                | Audio
                | Track
                | Script
                | Stylesheet
                | Icon
                | Preload
                | Manifest
                | Object
                | Embed
                | Input
                | Background
                | Css
                | Svg
                | Enclosure
        )
    }
}
