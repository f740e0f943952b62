//! Names of elements, as numbers that are compared at once.

use super::scan;

/// Bytes that fit into the number as they are.
const PACKED: usize = 8;

/// The prime of FNV-1a (64 bits), by which longer names are hashed.
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// An element's name in lower case: up to eight bytes as they are, longer ones as a hash. Two long names that share a hash are taken for
/// one, which concerns nobody but the page that went to the length of making them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::extract::html) struct Name(u64);

impl Name {
    /// A name that no tag has.
    pub(in crate::extract::html) const NONE: Name = Name(0);

    /// The name that is written so, in any case.
    pub(in crate::extract::html) const fn of(name: &str) -> Name {
        let bytes = name.as_bytes();
        let mut made = Made::NOTHING;
        while made.length < bytes.len() {
            made = made.and(bytes[made.length]);
        }
        made.name()
    }

    /// The name that begins here, and where it ends (tag name state): at a blank, `/`, `>` or the end of all.
    #[inline]
    pub(super) fn at(bytes: &[u8], from: usize) -> (Name, usize) {
        if let Some(eight) = scan::eight(bytes, from) {
            let ends =
                scan::marked_blank(eight) | scan::marked(eight, b'/') | scan::marked(eight, b'>');
            if ends != 0 {
                let length = scan::place(ends);
                let name = eight & !(u64::MAX << (8 * length));
                let end = bytes[from + length];
                if name & scan::HIGHS == 0 && (end > b' ' || scan::is_blank(end)) {
                    return (Name(scan::lower(name)), from + length);
                }
            }
        }
        Name::at_length(bytes, from)
    }

    /// The same, byte by byte.
    fn at_length(bytes: &[u8], from: usize) -> (Name, usize) {
        let mut made = Made::NOTHING;
        for &byte in bytes.get(from..).unwrap_or_default() {
            if scan::is_blank(byte) || matches!(byte, b'/' | b'>') {
                break;
            }
            made = made.and(byte);
        }
        (made.name(), from + made.length)
    }

    /// Whether the name may be one that anything depends on; surely not where this is false, which most tags of a page are.
    #[inline]
    pub(in crate::extract::html) const fn is_asked(self) -> bool {
        ASKED[self.slot()]
    }

    const fn slot(self) -> usize {
        // The multiplier is that of Fibonacci hashing.
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOT_BITS)) as usize
    }
}

#[cfg(test)]
impl Name {
    /// The name as text, as far as that is known.
    pub(super) fn written(self) -> String {
        let long = [FOREIGNOBJECT, ANNOTATION_XML, PLAINTEXT];
        match ["foreignobject", "annotation-xml", "plaintext"]
            .iter()
            .zip(long)
            .find(|(_, name)| *name == self)
        {
            Some((name, _)) => (*name).to_owned(),
            None => String::from_utf8_lossy(&self.0.to_le_bytes())
                .trim_end_matches('\0')
                .to_owned(),
        }
    }
}

/// A name in the making.
#[derive(Clone, Copy)]
struct Made {
    number: u64,
    length: usize,
}

impl Made {
    const NOTHING: Made = Made {
        number: 0,
        length: 0,
    };

    #[inline]
    const fn and(self, byte: u8) -> Made {
        // A NUL is no part of any name that is known, and must not vanish.
        let byte = match byte {
            0 => u8::MAX,
            _ => byte.to_ascii_lowercase(),
        } as u64;
        let number = if self.length < PACKED {
            self.number | byte << (8 * self.length)
        } else {
            (self.number ^ byte).wrapping_mul(PRIME)
        };
        Made {
            number,
            length: self.length + 1,
        }
    }

    /// Short names of ASCII have no highest bit.
    #[inline]
    const fn name(self) -> Name {
        if self.length > PACKED {
            Name(self.number | 1 << 63)
        } else {
            Name(self.number)
        }
    }
}

const SLOT_BITS: u32 = 10;

/// Where names stand whose start tags are more than an open element, each in its slot.
#[rustfmt::skip]
static ASKED: [bool; 1 << SLOT_BITS] = {
    let names = [
        A, ANNOTATION_XML, AREA, AUDIO, BASE, BASEFONT, BGSOUND, BODY, BR, BUTTON, COL, EMBED, FEIMAGE, FIELDSET, FONT, FORM, FRAME, H1,
        HR, HTML, IFRAME, IMAGE, IMG, INPUT, KEYGEN, LINK, MATH, META, NOEMBED, NOFRAMES, NOSCRIPT, OBJECT, OPTION, PARAM, PLAINTEXT,
        SCRIPT, SELECT, SOURCE, STYLE, SVG, TABLE, TD, TEMPLATE, TEXTAREA, TH, TITLE, TR, TRACK, USE, VIDEO, WBR, XMP,
    ];
    let mut slots = [false; 1 << SLOT_BITS];
    let mut at = 0;
    while at < names.len() {
        slots[names[at].slot()] = true;
        at += 1;
    }
    slots
};

/// Names that are asked for, each under itself in capitals.
macro_rules! names {
    ($($constant:ident $name:literal)*) => {
        $(pub(in crate::extract::html) const $constant: Name = Name::of($name);)*
    };
}

#[rustfmt::skip]
names! {
    A "a" ADDRESS "address" ANNOTATION_XML "annotation-xml" APPLET "applet" AREA "area" ARTICLE "article" ASIDE "aside" AUDIO "audio"
    B "b" BASE "base" BASEFONT "basefont" BGSOUND "bgsound" BIG "big" BLOCKQUOTE "blockquote" BODY "body" BR "br" BUTTON "button"
    CAPTION "caption" CENTER "center" CODE "code" COL "col" COLGROUP "colgroup"
    DD "dd" DESC "desc" DETAILS "details" DIALOG "dialog" DIR "dir" DIV "div" DL "dl" DT "dt"
    EM "em" EMBED "embed" FEIMAGE "feimage" FIELDSET "fieldset" FIGCAPTION "figcaption" FIGURE "figure" FONT "font" FOOTER "footer"
    FOREIGNOBJECT "foreignobject" FORM "form" FRAME "frame" FRAMESET "frameset"
    H1 "h1" H2 "h2" H3 "h3" H4 "h4" H5 "h5" H6 "h6" HEAD "head" HEADER "header" HGROUP "hgroup" HR "hr" HTML "html"
    I "i" IFRAME "iframe" IMAGE "image" IMG "img" INPUT "input" KEYGEN "keygen" LI "li" LINK "link" LISTING "listing"
    MAIN "main" MALIGNMARK "malignmark" MARQUEE "marquee" MATH "math" MENU "menu" META "meta" MGLYPH "mglyph" MI "mi" MN "mn" MO "mo"
    MS "ms" MTEXT "mtext" NAV "nav" NOBR "nobr" NOEMBED "noembed" NOFRAMES "noframes" NOSCRIPT "noscript"
    OBJECT "object" OL "ol" OPTION "option" P "p" PARAM "param" PLAINTEXT "plaintext" PRE "pre" RUBY "ruby"
    S "s" SCRIPT "script" SEARCH "search" SECTION "section" SELECT "select" SMALL "small" SOURCE "source" SPAN "span" STRIKE "strike"
    STRONG "strong" STYLE "style" SUB "sub" SUMMARY "summary" SUP "sup" SVG "svg"
    TABLE "table" TBODY "tbody" TD "td" TEMPLATE "template" TEXTAREA "textarea" TFOOT "tfoot" TH "th" THEAD "thead" TITLE "title" TR "tr"
    TRACK "track" TT "tt" U "u" UL "ul" USE "use" VAR "var" VIDEO "video" WBR "wbr" XMP "xmp"
}
