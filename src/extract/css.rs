//! URLs in styles: `url()`, `src()`, `@import`, and the strings of `image-set()` and `image()`.

use cssparser::{ParseError, Parser, Token};

use super::LinkKind;
use super::html::{RawLink, RawPage};

/// The assets of a style sheet.
pub(super) fn read(text: &str) -> RawPage<'static> {
    let links = urls(text)
        .into_iter()
        .map(|url| RawLink::new(url, LinkKind::Css))
        .collect();
    RawPage {
        links,
        ..RawPage::default()
    }
}

/// What the strings at hand are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strings {
    /// Texts.
    Texts,
    /// URLs, as in `url("a")`.
    Urls,
}

/// Functions whose strings are URLs (CSS Images 4).
const OF_URLS: [&str; 5] = ["url", "src", "image", "image-set", "-webkit-image-set"];

/// The URLs of a style sheet, or of the declarations of a `style` attribute, in their order. Blocks that are nested
/// more than 75 deep are read as one.
pub(super) fn urls(css: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Most declarations have none, and tokens cost.
    let may_have = |word: &[u8]| memchr::memmem::find(css.as_bytes(), word).is_some();
    let is_plain = memchr::memchr2(b'(', b'@', css.as_bytes()).is_none();
    if !is_plain || may_have(b"\\") {
        walk(&mut Parser::new(css), Strings::Texts, &mut found);
    }
    found
}

fn walk(parser: &mut Parser<'_>, strings: Strings, found: &mut Vec<String>) {
    // The name of the rule at hand, until its first URL or its end.
    let mut rule = None;
    while let Ok(token) = parser.next() {
        let inner = match token {
            Token::AtKeyword(name) => {
                rule = Some(name.to_ascii_lowercase());
                continue;
            }
            Token::Semicolon => {
                rule = None;
                continue;
            }
            Token::UnquotedUrl(url) => {
                push(url, rule.as_deref(), found);
                rule = None;
                continue;
            }
            Token::QuotedString(text) => {
                if strings == Strings::Urls || rule.as_deref() == Some("import") {
                    push(text, rule.as_deref(), found);
                    rule = None;
                }
                continue;
            }
            Token::Function(name) => {
                // The name of a namespace is no address.
                let is_of_urls = OF_URLS.iter().any(|known| name.eq_ignore_ascii_case(known))
                    && rule.as_deref() != Some("namespace");
                match is_of_urls {
                    true => Strings::Urls,
                    false => Strings::Texts,
                }
            }
            Token::CurlyBracketBlock => {
                rule = None;
                Strings::Texts
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock => Strings::Texts,
            _ => continue,
        };
        let nested = parser.parse_nested_block(|parser| {
            walk(parser, inner, found);
            Ok::<(), ParseError<()>>(())
        });
        // Of what is nested too deep, the tokens follow here.
        drop(nested);
    }
}

fn push(url: &str, rule: Option<&str>, found: &mut Vec<String>) {
    // `url(#id)` is a part of the page itself.
    let url = url.trim();
    if !url.is_empty() && !url.starts_with('#') && rule != Some("namespace") {
        found.push(url.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_spellings_are_found_and_other_texts_are_none() {
        for (css, expected) in [
            ("a{background:url(a.png)}", &["a.png"][..]),
            (
                "a{background : URL( 'b c.png' ) no-repeat, url(\"d.png\")}",
                &["b c.png", "d.png"],
            ),
            (
                "@import 'i.css';@import url(j.css) screen;@IMPORT \"k.css\" layer(x);",
                &["i.css", "j.css", "k.css"],
            ),
            (
                "@media print{@font-face{src:local('No'),url(f.woff2) format('woff2')}}",
                &["f.woff2"],
            ),
            ("/* url(no) */ a:after{content:'url(no) @import no'}", &[]),
            ("@charset 'utf-8';@namespace svg url(http://no.test/);", &[]),
            ("@namespace 'http://no.test/'; a{b:url(yes)}", &["yes"]),
            ("a{mask:url(#m)} b{c:url()} d{e:url('')}", &[]),
            (
                "a{b:image-set('x.png' 1x, url(y.png) 2x, 'z.png' type('image/png'))}",
                &["x.png", "y.png", "z.png"],
            ),
            ("a{b:u\\72l(\\2f c.png)}", &["/c.png"]),
            ("a{b:url(bad url)} c{d:url(good)}", &["good"]),
            ("background:url(in-attribute.png)", &["in-attribute.png"]),
            ("a{b:url(open", &["open"]),
            ("a{b:url(é.png)}", &["é.png"]),
            ("", &[]),
        ] {
            assert_eq!(urls(css), expected, "{css}");
        }
    }

    #[test]
    fn in_deep_nesting_are_found_without_deep_recursion() {
        let deep = format!(
            "{}url(deep){} a{{b:url(after)}}",
            "(".repeat(100_000),
            ")".repeat(100_000)
        );
        assert_eq!(urls(&deep), ["deep", "after"]);
        assert!(urls(&"{[(url(".repeat(50_000)).len() <= 1);
    }
}
