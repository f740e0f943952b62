//! Each state of the standard by example, and all of them against html5ever's tokenizer.

use std::cell::RefCell;

use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    self, TagKind, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts, states::RawKind,
};
use proptest::prelude::*;

use super::super::super::entities::{self, Place};
use super::super::tree::Tree;
use super::*;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Start(Name, Vec<(String, String)>, bool),
    End(Name),
    Text(String),
}

/// What a whole reader makes of a page: attributes and texts decoded, texts without a tag between them joined.
fn events(page: &str) -> Vec<Event> {
    let mut tokens = Tokens::new(page, true);
    let mut tree = Tree::default();
    let mut found = Vec::new();
    while let Some(token) = tokens.next(true) {
        match token {
            Token::Start(tag) => {
                let attributes = tag.attributes.iter().map(|found| {
                    let name = page[found.name.clone()].to_ascii_lowercase();
                    let value = attributes::decoded(&page[found.value.clone()]);
                    (name.replace('\0', "\u{fffd}"), plain(&value))
                });
                let mut each: Vec<(String, String)> = Vec::new();
                for (name, value) in attributes {
                    if each.iter().all(|(known, _)| *known != name) {
                        each.push((name, value));
                    }
                }
                found.push(Event::Start(tag.name, each, tag.is_self_closing));
                let (name, placed) = (tag.name, tree.start(&tag));
                tokens.read_as(placed.content, name);
            }
            Token::End(name) => {
                tree.end(name);
                found.push(Event::End(name));
            }
            Token::Text(text, Content::Data | Content::Rcdata) => {
                push(&mut found, &entities::decode(text, Place::Text));
            }
            Token::Text(text, _) => push(&mut found, text),
        }
        tokens.allow_cdata(tree.is_foreign());
    }
    found
}

/// Line breaks are normalised and NULs replaced where they are read: here neither counts.
fn plain(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace('\0', "\u{fffd}")
}

fn push(found: &mut Vec<Event>, text: &str) {
    let text = plain(text).replace('\u{fffd}', "");
    match found.last_mut() {
        _ if text.is_empty() => {}
        Some(Event::Text(before)) => before.push_str(&text),
        _ => found.push(Event::Text(text)),
    }
}

/// html5ever's tokenizer, told by the same tree what it has to be told.
#[derive(Default)]
struct Judge {
    tree: RefCell<Tree>,
    found: RefCell<Vec<Event>>,
}

impl TokenSink for Judge {
    type Handle = ();

    fn process_token(&self, token: tokenizer::Token, _line: u64) -> TokenSinkResult<()> {
        let mut found = self.found.borrow_mut();
        match token {
            tokenizer::Token::CharacterTokens(text) => push(&mut found, &text),
            tokenizer::Token::TagToken(tag) => {
                // No page here has the sign by itself.
                let name = Name::of(&tag.name.replace('\u{fffd}', "\0"));
                if tag.kind == TagKind::EndTag {
                    self.tree.borrow_mut().end(name);
                    found.push(Event::End(name));
                    return TokenSinkResult::Continue;
                }
                let attributes: Vec<_> = tag
                    .attrs
                    .iter()
                    .map(|found| (found.name.local.to_string(), found.value.to_string()))
                    .collect();
                let mut text = String::new();
                let mut add = |piece: &str| {
                    text.push_str(piece);
                    text.len() - piece.len()..text.len()
                };
                let places: Vec<_> = attributes
                    .iter()
                    .map(|(name, value)| Attribute {
                        name: add(name),
                        value: add(value),
                    })
                    .collect();
                let placed = self.tree.borrow_mut().start(&Tag {
                    name,
                    text: &text,
                    attributes: &places,
                    is_self_closing: tag.self_closing,
                });
                found.push(Event::Start(name, attributes, tag.self_closing));
                return match placed.content {
                    Content::Data | Content::Cdata => TokenSinkResult::Continue,
                    Content::Rcdata => TokenSinkResult::RawData(RawKind::Rcdata),
                    Content::Rawtext => TokenSinkResult::RawData(RawKind::Rawtext),
                    Content::Script => TokenSinkResult::RawData(RawKind::ScriptData),
                    Content::Plaintext => TokenSinkResult::Plaintext,
                };
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.tree.borrow().is_foreign()
    }
}

fn judged(page: &str) -> Vec<Event> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(page));
    let tokenizer = Tokenizer::new(Judge::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.found.take()
}

/// Tags and texts in one line, as `<a href="x">|text|</a>`.
fn told(page: &str) -> String {
    let told = events(page).into_iter().map(|event| match event {
        Event::Start(name, attributes, is_self_closing) => {
            let attributes: String = attributes
                .iter()
                .map(|(name, value)| format!(" {name}={value:?}"))
                .collect();
            let slash = if is_self_closing { "/" } else { "" };
            format!("<{}{attributes}{slash}>", name.written())
        }
        Event::End(name) => format!("</{}>", name.written()),
        Event::Text(text) => text,
    });
    told.collect::<Vec<_>>().join("|")
}

/// Says each, and checks that html5ever says the same.
fn are(cases: &[(&str, &str)]) {
    for (page, expected) in cases {
        assert_eq!(told(page), *expected, "{page:?}");
        assert_eq!(events(page), judged(page), "{page:?}");
    }
}

#[test]
fn data_and_tag_open_states() {
    are(&[
        ("", ""),
        ("a < b <3 <\u{e9} << <", "a < b <3 <\u{e9} << <"),
        ("a<b>c", "a|<b>|c"),
        ("<B>c</B>", "<b>|c|</b>"),
        ("a<", "a<"),
        ("a</", "a</"),
        ("a</>b", "ab"),
        ("a</ b>c", "ac"),
        ("a</3>c", "ac"),
        ("a<?php b ?>c", "ac"),
        ("<<a>", "<|<a>"),
        ("&lt;a&gt;", "<a>"),
    ]);
}

#[test]
fn tag_name_state() {
    are(&[
        ("<a\tb>", "<a b=\"\">"),
        ("<a\x0cb>", "<a b=\"\">"),
        ("<a\rb>", "<a b=\"\">"),
        ("<a<b>", "<a<b>"),
        ("<a=b>", "<a=b>"),
        ("<a\"b>", "<a\"b>"),
        ("<br/>", "<br/>"),
        ("<br / >", "<br>"),
        ("<a", ""),
        ("x<a ", "x"),
        ("</a", ""),
        ("</a b=c/>d", "</a>|d"),
        ("</a b='>'>d", "</a>|d"),
    ]);
}

#[test]
fn attribute_states() {
    are(&[
        ("<a b c>", r#"<a b="" c="">"#),
        ("<a b=c>", r#"<a b="c">"#),
        ("<a b = c>", r#"<a b="c">"#),
        ("<a b\n=\n'c'>", r#"<a b="c">"#),
        (r#"<a b="c'">"#, r#"<a b="c'">"#),
        (r#"<a b='c"'>"#, r#"<a b="c\"">"#),
        ("<a b=c d=e>", r#"<a b="c" d="e">"#),
        ("<a b='c'd='e'>", r#"<a b="c" d="e">"#),
        ("<a b='c'/d>", r#"<a b="c" d="">"#),
        ("<a/b/c=d>", r#"<a b="" c="d">"#),
        ("<a b=c/>", r#"<a b="c/">"#),
        ("<a b=c />", r#"<a b="c"/>"#),
        ("<a b=/>", r#"<a b="/">"#),
        ("<a b/>", r#"<a b=""/>"#),
        ("<a b=>c", r#"<a b="">|c"#),
        ("<a b= >c", r#"<a b="">|c"#),
        ("<a b=''>c", r#"<a b="">|c"#),
        ("<a =b>", r#"<a =b="">"#),
        ("<a =b=c>", r#"<a =b="c">"#),
        ("<a ==>", r#"<a =="">"#),
        ("<a b==c>", r#"<a b="=c">"#),
        ("<a b=c=d>", r#"<a b="c=d">"#),
        ("<a b=c\"d'e`<f>", r#"<a b="c\"d'e`<f">"#),
        ("<a 'b' \"c>", r#"<a 'b'="" "c="">"#),
        ("<a B=1 b=2>", r#"<a b="1">"#),
        ("<a b=\0 c\0=d>", "<a b=\"\u{fffd}\" c\u{fffd}=\"d\">"),
        ("<a b='&amp;&ampc'>", r#"<a b="&&ampc">"#),
        ("<a b='>'>c", r#"<a b=">">|c"#),
        ("<a b='c", ""),
        ("<a b=\"c>d</a>", ""),
        ("<a b=", ""),
        ("<a b=c", ""),
        ("<a b=c /", ""),
    ]);
}

#[test]
fn comments_and_declarations() {
    are(&[
        ("a<!-- <b> -->c", "ac"),
        ("a<!-->b-->c", "ab-->c"),
        ("a<!--->b-->c", "ab-->c"),
        ("a<!---->b", "ab"),
        ("a<!--b--!>c", "ac"),
        ("a<!--!>b-->c", "ac"),
        ("a<!---!>b-->c", "ac"),
        ("a<!----!>b", "ab"),
        ("a<!--b--->c", "ac"),
        ("a<!--b--!-->c", "ac"),
        ("a<!--b- ->c--x>d-->e", "ae"),
        ("a<!--<!--b-->c-->d", "ac-->d"),
        ("a<!--<!>b--><!--<!-->c", "ac"),
        ("a<!--b", "a"),
        ("a<!--b--", "a"),
        ("a<!-b>c", "ac"),
        ("a<!b>c", "ac"),
        ("a<!>c", "ac"),
        ("a<!", "a"),
        ("<!doctype html>a", "a"),
        ("<!DOCTYPE html PUBLIC \"-//W3C>//\" 'x'>a", "//\" 'x'>a"),
        ("<!doctype", ""),
        ("<![CDATA[a>b]]>", "b]]>"),
    ]);
}

#[test]
fn cdata_sections_are_of_drawings_and_formulas() {
    are(&[
        ("<svg><![CDATA[a<b>&amp;]]>c", "<svg>|a<b>&amp;c"),
        ("<math><![CDATA[a]]]>b", "<math>|a]b"),
        ("<svg><![cdata[a>b]]>", "<svg>|b]]>"),
        ("<svg><![CDATA[a<b>", "<svg>|a<b>"),
        ("<svg></svg><![CDATA[a>b", "<svg>|</svg>|b"),
        ("<svg/><![CDATA[a>b", "<svg/>|b"),
        ("<svg><desc><![CDATA[<a>]]>", "<svg>|<desc>|<a>"),
        ("<svg><desc><p><![CDATA[<a>b", "<svg>|<desc>|<p>|b"),
    ]);
}

#[test]
fn titles_and_text_fields_have_references_and_no_tags() {
    are(&[
        ("<title>a<b>&amp;</title>c", "<title>|a<b>&|</title>|c"),
        ("<title></titles></title/>c", "<title>|</titles>|</title>|c"),
        ("<title></TITLE\n>c", "<title>|</title>|c"),
        ("<title><!--</title>-->", "<title>|<!--|</title>|-->"),
        ("<title>a</title", "<title>|a</title"),
        ("<title>a</title b", "<title>|a"),
        ("<title>a</", "<title>|a</"),
        (
            "<textarea><a></textarea><b>",
            "<textarea>|<a>|</textarea>|<b>",
        ),
        ("<title/>a</title>", "<title/>|a|</title>"),
    ]);
}

#[test]
fn raw_texts_have_neither() {
    are(&[
        ("<style>a<b>&amp;</style>c", "<style>|a<b>&amp;|</style>|c"),
        ("<xmp></style></xmp>", "<xmp>|</style>|</xmp>"),
        ("<iframe><a></iframe>", "<iframe>|<a>|</iframe>"),
        ("<noembed><a></noembed>", "<noembed>|<a>|</noembed>"),
        ("<noframes><a></noframes>", "<noframes>|<a>|</noframes>"),
        ("<noscript><a></noscript>", "<noscript>|<a>|</noscript>"),
        ("<plaintext></plaintext><a>", "<plaintext>|</plaintext><a>"),
        ("<style a=>b<c></style>", "<style a=\"\">|b<c>|</style>"),
    ]);
}

#[test]
fn scripts_may_hide_their_end() {
    are(&[
        (
            "<script>a<b>&amp;</script>c",
            "<script>|a<b>&amp;|</script>|c",
        ),
        (
            "<script></scripts></script >",
            "<script>|</scripts>|</script>",
        ),
        ("<script><!--a</script>b", "<script>|<!--a|</script>|b"),
        (
            "<script><!--<script></script>--></script>a",
            "<script>|<!--<script></script>-->|</script>|a",
        ),
        (
            "<script><!--<script></script></script>a",
            "<script>|<!--<script></script>|</script>|a",
        ),
        (
            "<script><!--<script>--></script>a",
            "<script>|<!--<script>-->|</script>|a",
        ),
        (
            "<script><!--><script></script>a",
            "<script>|<!--><script>|</script>|a",
        ),
        (
            "<script><!---><script></script>a",
            "<script>|<!---><script>|</script>|a",
        ),
        (
            "<script><!-<script></script>a",
            "<script>|<!-<script>|</script>|a",
        ),
        (
            "<script><!--<scripts></script>a",
            "<script>|<!--<scripts>|</script>|a",
        ),
        (
            "<script><!--<SCRIPT/</SCRIPT/</script>a",
            "<script>|<!--<SCRIPT/</SCRIPT/|</script>|a",
        ),
        (
            "<script><!--<script </script -- ></script>a",
            "<script>|<!--<script </script -- >|</script>|a",
        ),
        (
            "<script><!--<script></script>",
            "<script>|<!--<script></script>",
        ),
    ]);
}

#[test]
fn elements_of_a_drawing_are_markup_and_those_in_its_doors_html() {
    are(&[
        (
            "<svg><title><b></title><style><c></style><script><d></script>",
            "<svg>|<title>|<b>|</title>|<style>|<c>|</style>|<script>|<d>|</script>",
        ),
        (
            "<svg><foreignObject><style><c></style></foreignObject><style><c>",
            "<svg>|<foreignobject>|<style>|<c>|</style>|</foreignobject>|<style>|<c>",
        ),
        ("<svg><p><style><a>", "<svg>|<p>|<style>|<a>"),
        ("<svg></p><style><a>", "<svg>|</p>|<style>|<a>"),
        ("<svg><font><style><a>", "<svg>|<font>|<style>|<a>"),
        (
            "<svg><font color=x><style><a>",
            "<svg>|<font color=\"x\">|<style>|<a>",
        ),
        ("<math><mi><style><a>", "<math>|<mi>|<style>|<a>"),
        (
            "<math><mi><mglyph><style><a>",
            "<math>|<mi>|<mglyph>|<style>|<a>",
        ),
        (
            "<math><annotation-xml><style><a>",
            "<math>|<annotation-xml>|<style>|<a>",
        ),
        (
            "<math><annotation-xml encoding=TEXT/html><style><a>",
            "<math>|<annotation-xml encoding=\"TEXT/html\">|<style>|<a>",
        ),
    ]);
}

#[test]
fn attributes_beyond_a_thousand_are_passed_over() {
    let page = format!("<a {}href=/x>b", "y ".repeat(5_000));
    let mut tokens = Tokens::new(&page, true);
    assert!(
        matches!(tokens.next(true), Some(Token::Start(tag)) if tag.has("y") && !tag.has("href"))
    );
    assert!(matches!(
        tokens.next(true),
        Some(Token::Text("b", Content::Data))
    ));
}

/// What would take minutes where each sign had the rest of the page looked through.
#[test]
fn hostile_pages_are_looked_through_once() {
    for (piece, expected) in [
        ("<", 1),
        ("</", 0),
        ("<!", 0),
        ("<a ", 0),
        ("<a b='", 0),
        ("<a \"", 0),
        ("<!--", 0),
        ("<!-- --", 0),
        ("<![CDATA[", 0),
        ("<svg><![CDATA[", 2),
        ("</a", 0),
        ("</a>", 100_000),
        ("<title>", 2),
        ("<title></titl", 2),
        ("<style></", 2),
        ("<script><!--<script>", 2),
        ("<script><!--", 2),
        ("<script></script>", 200_000),
        ("<script><!--<script></script>", 2),
        ("&", 1),
        ("<p>&amp", 200_000),
        ("<svg>", 100_000),
        ("<svg><p>", 200_000),
        ("<math><mi>", 200_000),
        ("<x></y>", 200_000),
        ("<div></x>", 200_000),
    ] {
        let page = piece.repeat(100_000);
        let mut tokens = Tokens::new(&page, true);
        let mut tree = Tree::default();
        let mut count = 0_usize;
        while let Some(token) = tokens.next(true) {
            count += 1;
            match token {
                Token::Start(tag) => {
                    let (name, placed) = (tag.name, tree.start(&tag));
                    tokens.read_as(placed.content, name);
                }
                Token::End(name) => tree.end(name),
                Token::Text(..) => {}
            }
            tokens.allow_cdata(tree.is_foreign());
        }
        assert_eq!(count, expected, "{piece}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn all_pages_are_taken_apart_as_by_html5ever(pieces in prop::collection::vec(prop_oneof![
        4 => prop::sample::select(vec![
            "<", "</", "<!", "<?", ">", "/>", "/", "=", "\"", "'", "`", " ", "\t", "\n", "\r", "\r\n", "\x0c", "-", "--", "!", "-->", "--!>",
            "<!--", "<!-->", "<![CDATA[", "]]>", "]", "<!doctype html>", "&amp;", "&lt", "&", "&#60;", "\0", "\u{e9}", "x", "a", "A", "b=", "c='d'",
        ]),
        4 => prop::sample::select(vec![
            "<a href=", "<a ", "</a>", "<p>", "</p>", "<b title=\"", "<title>", "</title>", "<textarea>", "</textarea", "<style>", "</style>",
            "<script>", "</script>", "<script", "</script", "script", "<xmp>", "</xmp>", "<iframe>", "</iframe>", "<noscript>", "</noscript>",
            "<noembed>", "</noembed>", "<svg>", "</svg>", "<svg ", "<math>", "</math>", "<mi>", "<foreignObject>", "</foreignObject>", "<desc>",
            "<annotation-xml encoding=text/html>", "<font color=x>", "<br>", "<template>", "</template>", "<table>", "<td>", "</td>",
        ]),
        1 => "[a-zA-Z <>/='\"!-]{1,6}".prop_map(|text| &*Box::leak(text.into_boxed_str())),
    ], 0..24)) {
        let page = pieces.concat();
        prop_assert_eq!(events(&page), judged(&page), "{:?}", page);
    }
}
