//! The pieces of work that are counted: the same bytes in, at each run.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use pgcrawl::canon::{BASE, HrefCache, PageUrl};
use pgcrawl::clock::Boottime;
use pgcrawl::extract::{Extraction, Input, Wants, extract};
use pgcrawl::frontier::{self, Edge, Finish, HostId, NewLink, Outcome, Target, TaskId, TaskKind};
use pgcrawl::pages::PageRow;

/// Of the functions `counted_…` below.
pub(super) const NAMES: [&str; 3] = ["extract", "canon", "commit"];

/// What the pieces work on.
struct Given {
    url: PageUrl,
    pages: [String; 5],
    hrefs: Vec<String>,
    batch: Vec<Finish>,
}

/// Runs each piece once. What stands between two is counted with the second: so it is nothing.
pub(super) fn all() {
    let given = counted_preparation();
    let found = counted_extract(&given);
    let digests = counted_canon(&given);
    counted_commit(&given);
    // Else something else was counted.
    let links: Vec<usize> = found.iter().map(|page| page.links.len()).collect();
    assert_eq!(links, [37, 12, 200, 41, 2]);
    assert_eq!(digests, given.hrefs.len());
}

/// Ends what is not to be counted.
#[inline(never)]
fn counted_preparation() -> Given {
    Given {
        url: PageUrl::parse("http://docs.test/api/java.base/index.html").unwrap(),
        pages: [reference(), article(), table(), soup(), script()],
        hrefs: (0..400).map(href).collect(),
        batch: (0..100).map(finish).collect(),
    }
}

#[inline(never)]
fn counted_extract(given: &Given) -> Vec<Extraction> {
    read(&given.url, &given.pages)
}

#[inline(never)]
fn counted_canon(given: &Given) -> usize {
    digests(&given.url, &given.hrefs)
}

#[inline(never)]
fn counted_commit(given: &Given) {
    frontier::encode(&given.batch);
}

fn read(url: &PageUrl, pages: &[String]) -> Vec<Extraction> {
    let mut cache = HrefCache::new(1_024);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    let input = |page| Input {
        canon: &BASE,
        url,
        headers: &headers,
        body: str::as_bytes(page),
        robots_token: "ourbot",
        anchors: false,
        wants: Wants::default(),
    };
    pages
        .iter()
        .map(|page| extract(&input(page), &mut cache))
        .collect()
}

fn digests(base: &PageUrl, hrefs: &[String]) -> usize {
    let pages = hrefs.iter().filter_map(|href| base.join(href).ok());
    pages
        .inspect(|page| {
            black_box(page.digest(&BASE));
        })
        .count()
}

/// Of a generated reference: navigation that repeats itself, and links by the dozen.
fn reference() -> String {
    let mut page = head("java.util (Java SE &amp; JDK)");
    for n in 0..108 {
        let to = n % 36;
        writeln!(page, "<li><div class=\"col\"><a href=\"../util/Class{to}.html#m{n}\" title=\"class\">Class{n}</a></div> <code>int&nbsp;size()</code></li>").unwrap();
    }
    page + "<a href='/'>home</a></body></html>"
}

/// Mostly prose.
fn article() -> String {
    let mut page = head("On frontiers");
    for n in 0..60 {
        page.push_str("<p>The frontier holds what is still to be visited; a host gives its tasks <em>one by one</em> &mdash; and no sooner.\n");
        if n % 5 == 0 {
            write!(
                page,
                "See <a rel=nofollow href=\"/articles/{n}?utm=a&amp;page={n}\">more</a>."
            )
            .unwrap();
        }
    }
    page
}

/// Many short elements.
fn table() -> String {
    let mut page = head("Figures") + "<table>";
    for n in 0..200 {
        write!(page, "<tr class=r{n}><td>{n}<td align=right>{}<td><a href=row/{n}>row</a><td><img src=\"i.png\" alt=\"\">", n * n).unwrap();
    }
    page + "</table>"
}

/// Written by hand, long ago.
fn soup() -> String {
    let mut page =
        "<TITLE>Soup</TITLE><BASE HREF='http://docs.test/soup/'><FONT SIZE=+1>".to_owned();
    for n in 0..40 {
        write!(page, "<A HREF = p{n}.htm ><B>Page <I>{n}</B></I></A><BR><!-- <a href=not{n}> --><P<b <A NAME=a{n}>").unwrap();
    }
    page + "<a href=\"last.htm\">unclosed"
}

/// More script and style than text.
fn script() -> String {
    let mut page = head("App");
    for n in 0..40 {
        write!(page, "<script>var a{n} = '<a href=\"/no/{n}\">' + \"</b>\"; if (a{n} < {n}) {{ go() }}</script><style>.c{n} > a {{ color: #123 }}</style>").unwrap();
    }
    page + "<a href=/app/1>one</a><a href=/app/2>two</a>"
}

fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<meta name=\"description\" content=\"A page\"><meta name=robots content=\"index\"></head>\n<body><h1>{title}</h1>\n"
    )
}

/// One of the ways in which links are written.
fn href(n: usize) -> String {
    match n % 8 {
        0 => format!("page{n}.html"),
        1 => format!("../up/./{n}/"),
        2 => format!("/a/b/c/{n}?x={n}&y=2&x=1"),
        3 => format!("HTTP://Docs.Test:80/p/%7e{n}/%C3%BC"),
        4 => format!("//other{n}.test/"),
        5 => format!("https://h{n}.example.org/a%2fb;v=1?q=caf\u{e9}&utm_source=x#frag"),
        6 => format!("?page={n}"),
        _ => format!("http://b\u{fc}cher.test/{n}"),
    }
}

/// A visit of a page with ten new links and as many edges.
fn finish(n: i64) -> Finish {
    let url = |k| format!("http://docs.test/{n}/{k}");
    let digest = |k| PageUrl::parse(&url(k)).unwrap().digest(&BASE);
    let link = |k| NewLink {
        host: HostId(7),
        digest: digest(k),
        url: url(k),
        depth: 3,
        hops: 0,
        kind: TaskKind::Page,
        priority: 0,
        label: None,
        excluded: (k == 9).then(|| ("robots", "Disallow: /".to_owned())),
    };
    let edge = |k| Edge {
        target: Target::Url {
            host: HostId(7),
            digest: digest(k),
            url: Some(url(k)),
        },
        kind: "a",
        nofollow: false,
        rel: None,
        anchor: Some("a text".into()),
    };
    Finish {
        task: TaskId(n),
        claim_version: 1,
        outcome: Outcome::Done { reason: None },
        page: Some(PageRow {
            http_status: Some(200),
            fetch: Some(Duration::from_millis(5)),
            title: Some("a title".to_owned()),
            headers: Some("{\"content-type\": \"text/html\"}".to_owned()),
            digest: Some([7; 32]),
            body: Some(vec![b'x'; 20_000]),
            // The clock cannot be read under valgrind: rustix looks for the kernel's page of it, which valgrind hides.
            ..PageRow::empty(Boottime::BEGINNING)
        }),
        links: (0..10).map(link).collect(),
        edges: (0..10).map(edge).collect(),
    }
}
