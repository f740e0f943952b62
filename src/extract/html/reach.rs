//! How far tags reach: which open element an end tag may end (HTML standard §13.2.4.2, "in scope"), and which start tags end foreign
//! content (§13.2.6.5).

use super::tokens::name::*;
use super::tokens::{Name, Tag};
use super::tree::{Door, Open, World};

/// How far out an end tag looks for the element that it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nowhere.
    Never,
    /// All out.
    Template,
    /// "In table scope."
    Table,
    /// "In scope."
    Scope,
    /// The same, for a paragraph.
    Button,
    /// The same, for an item of a list.
    List,
    /// The same, of any heading.
    Heading,
    /// The same; what stands between goes on.
    Formatting,
    /// To the next special element.
    Near,
}

impl Reach {
    pub(super) fn of(name: Name) -> Reach {
        match name {
            BODY | HTML | BR => Reach::Never,
            TEMPLATE => Reach::Template,
            TABLE | TBODY | TD | TFOOT | TH | THEAD | TR | CAPTION | COLGROUP => Reach::Table,
            P => Reach::Button,
            LI => Reach::List,
            H1 | H2 | H3 | H4 | H5 | H6 => Reach::Heading,
            A | B | BIG | CODE | EM | FONT | I | NOBR | S | SMALL | STRIKE | STRONG | TT | U => {
                Reach::Formatting
            }
            ADDRESS | APPLET | ARTICLE | ASIDE | BLOCKQUOTE | BUTTON | CENTER | DD | DETAILS
            | DIALOG | DIR | DIV | DL | DT | FIELDSET | FIGCAPTION | FIGURE | FOOTER | FORM
            | HEADER | HGROUP | LISTING | MAIN | MARQUEE | MENU | NAV | OBJECT | OL | PRE
            | SEARCH | SECTION | SELECT | SUMMARY | UL => Reach::Scope,
            _ => Reach::Near,
        }
    }

    pub(super) fn stops_at(self, open: &Open) -> bool {
        if open.world != World::Html {
            return !matches!(self, Reach::Template | Reach::Table | Reach::Near)
                && matches!(open.door, Door::Html | Door::Text);
        }
        match self {
            Reach::Never => true,
            Reach::Template => false,
            Reach::Table => matches!(open.name, TABLE | TEMPLATE),
            Reach::Near => is_special(open.name),
            Reach::Button if open.name == BUTTON => true,
            Reach::List if matches!(open.name, OL | UL) => true,
            _ => matches!(
                open.name,
                APPLET | CAPTION | TABLE | TD | TH | MARQUEE | OBJECT | SELECT | TEMPLATE
            ),
        }
    }
}

pub(super) fn is_heading(name: Name) -> bool {
    matches!(name, H1 | H2 | H3 | H4 | H5 | H6)
}

/// The elements that the standard calls special (§13.2.4.2), as far as they have content.
pub(super) fn is_special(name: Name) -> bool {
    is_heading(name)
        || matches!(
            name,
            ADDRESS
                | APPLET
                | ARTICLE
                | ASIDE
                | BLOCKQUOTE
                | BUTTON
                | CAPTION
                | CENTER
                | COLGROUP
                | DD
                | DETAILS
                | DIR
                | DIV
                | DL
                | DT
                | FIELDSET
                | FIGCAPTION
                | FIGURE
                | FOOTER
                | FORM
                | FRAMESET
                | HEAD
                | HEADER
                | HGROUP
                | IFRAME
                | LI
                | LISTING
                | MAIN
                | MARQUEE
                | MENU
                | NAV
                | NOEMBED
                | NOFRAMES
                | NOSCRIPT
                | OBJECT
                | OL
                | P
                | PLAINTEXT
                | PRE
                | SCRIPT
                | SECTION
                | SELECT
                | STYLE
                | SUMMARY
                | TABLE
                | TBODY
                | TD
                | TEMPLATE
                | TEXTAREA
                | TFOOT
                | TH
                | THEAD
                | TITLE
                | TR
                | UL
                | XMP
        )
}

/// Whether a tag ends the foreign content that it stands in.
pub(super) fn breaks_out(tag: &Tag<'_, '_>) -> bool {
    is_heading(tag.name)
        || matches!(
            tag.name,
            B | BIG
                | BLOCKQUOTE
                | BODY
                | BR
                | CENTER
                | CODE
                | DD
                | DIV
                | DL
                | DT
                | EM
                | EMBED
                | HEAD
                | HR
                | I
                | IMG
                | LI
                | LISTING
                | MENU
                | META
                | NOBR
                | OL
                | P
                | PRE
                | RUBY
                | S
                | SMALL
                | SPAN
                | STRONG
                | STRIKE
                | SUB
                | SUP
                | TABLE
                | TT
                | U
                | UL
                | VAR
        )
        || (tag.name == FONT && ["color", "face", "size"].iter().any(|name| tag.has(name)))
}
