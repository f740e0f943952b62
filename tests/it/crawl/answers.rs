//! Answers as the field gives them, and what a crawl makes of them: the field cases that show from its rows and its requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use async_compression::tokio::bufread::GzipEncoder;
use axum::http::{HeaderMap, HeaderValue};
use tokio::io::AsyncReadExt as _;

use crate::support::{
    crawl::{Setup, broken_invariants, column},
    db::TestDb,
    site::{RawListener, Site, Then},
};

/// C03 to C11: page by page its charset, what told it, and the title.
#[tokio::test]
async fn a_page_in_any_encoding_has_its_charset_its_title_and_its_links_in_its_row() {
    let late = format!(
        "<!--{}--><meta charset=utf-8><title>\u{141}\u{f3}d\u{17a}</title><a href=/x/late>",
        "-".repeat(3000)
    );
    let wide: Vec<u8> = "\u{feff}<title>\u{17a}</title><a href=/x/wide>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let (russian, ..) = encoding_rs::WINDOWS_1251.encode("<meta http-equiv=\"Content-Type\" content=\"text/html; charset=windows-1251\"><title>\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}</title><a href=/x/meta>");
    let pages: [(&str, &'static str, Vec<u8>); 8] = [
        ("/meta", "text/html", russian.into_owned()),
        ("/late", "text/html", late.into_bytes()),
        ("/script", "text/html", b"<script charset=utf-8 src=t.js></script><meta http-equiv=Content-Type content='text/html; charset=ISO-8859-15'><title>\xa4</title><a href=/x/script>".to_vec()),
        ("/typeless", "text/html", b"<meta http-equiv=Content-Type content='charset=gbk'><title>\xcb\xae\xb9\xfb</title><a href=/x/typeless>".to_vec()),
        ("/slip", "text/html; charset=ISO-88509-1", "<meta charset=utf-8><title>na\u{ef}ve</title><a href=/x/slip>".into()),
        ("/sloppy", "Text/HTML;;charset=\"windows-1250\";x=y", b"<title>\x8alapka</title><a href=/x/sloppy>".to_vec()),
        ("/broken", "text/html; charset=utf-8", b"<title>A\xe2\x82B</title><p>x\xf0<a href=/x/broken>y</a>".to_vec()),
        ("/wide", "text/html; charset=latin1", wide),
    ];
    let links: String = pages
        .iter()
        .map(|(path, ..)| format!("<a href={path}>x</a>"))
        .collect();
    let mut site = Site::builder().page("/", links);
    for (path, content_type, body) in pages {
        site = site.typed(path, content_type, body);
        site = site.page(&format!("/x{path}"), "");
    }
    let site = site.start().await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    let rows = "select substring(t.url from '[^/]*$') as page, charset, charset_from, title from pages p join tasks t on t.id = p.task_id where title is not null order by 1";
    assert_eq!(
        column(&db.pool, rows).await,
        [
            "broken,UTF-8,header,A\u{fffd}B",
            "late,UTF-8,meta,\u{141}\u{f3}d\u{17a}",
            "meta,windows-1251,meta,\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}",
            "script,ISO-8859-15,meta,\u{20ac}",
            "slip,UTF-8,meta,na\u{ef}ve",
            "sloppy,windows-1250,header,\u{160}lapka",
            "typeless,GBK,meta,\u{6c34}\u{679c}",
            "wide,UTF-16LE,bom,\u{17a}",
        ]
    );
    let followed = site
        .targets()
        .into_iter()
        .filter(|path| path.starts_with("/x/"));
    assert_eq!(followed.count(), 8);
}

/// H07, H08, H19: what is coded or untyped is read, and text/plain is no HTML.
#[tokio::test]
async fn links_are_found_behind_codings_and_without_a_type_and_not_in_plain_text() {
    async fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        GzipEncoder::new(plain).read_to_end(&mut out).await.unwrap();
        out
    }
    let once = gzip(b"<a href=/after-once>x</a>").await;
    let twice = gzip(&gzip(b"<a href=/after-twice>x</a>").await).await;
    let raw = RawListener::start(move |request| {
        let (fields, body): (&str, &[u8]) = match request.target() {
            "/" => (
                "",
                b"\n <!-- c --><html><a href=/once>1</a><a href=/twice>2</a><a href=/bin>3</a><a href=/t>4</a>",
            ),
            "/once" => ("content-type: text/html\r\ncontent-encoding: X-GZip\r\n", &once),
            "/twice" => ("content-type: text/html\r\ncontent-encoding: gzip, gzip\r\n", &twice),
            "/bin" => ("", b"\x89PNG\r\n\x1a\n\0\0<a href=/no>x</a>"),
            "/t" => ("content-type: text/plain\r\n", b"<html><a href=/no>x</a>"),
            _ => ("", b""),
        };
        let head = format!("HTTP/1.1 200 OK\r\n{fields}content-length: {}\r\n\r\n", body.len());
        ([head.as_bytes(), body].concat(), Then::KeepOpen)
    })
    .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[raw.url("/")]).await;
    let mut asked: Vec<String> = raw
        .requests()
        .iter()
        .map(|request| request.target().to_owned())
        .collect();
    asked.sort_unstable();
    assert_eq!(
        asked,
        [
            "/",
            "/after-once",
            "/after-twice",
            "/bin",
            "/once",
            "/robots.txt",
            "/t",
            "/twice"
        ]
    );
}

/// H10: a cut between chunks, then the whole; and a chunk longer than memory.
#[tokio::test]
async fn an_answer_cut_between_its_chunks_is_had_again_before_it_counts() {
    const CUT: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n9\r\n<a href=/\r\n6\r\npart>x\r\n";
    const REST: &[u8] = b"C\r\n</a><a href=\r\nB\r\n/end>x</a> \r\n0\r\n\r\n";
    let first = AtomicBool::new(true);
    let raw = RawListener::start(move |request| match request.target() {
        "/" if first.swap(false, Ordering::SeqCst) => (CUT.to_vec(), Then::Close),
        "/" => ([CUT, REST].concat(), Then::Close),
        "/huge" => (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx".to_vec(),
            Then::Close,
        ),
        _ => (
            b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n".to_vec(),
            Then::Close,
        ),
    })
    .await;
    let db = TestDb::new().await;
    let mut setup = Setup::quick();
    setup.crawl.per_host = 1;
    setup.crawl(&db, &[raw.url("/"), raw.url("/huge")]).await;
    let rows = "select substring(url from '[^/]*$') as page, status, attempts, reason from tasks order by 1";
    assert_eq!(
        column(&db.pool, rows).await,
        [
            "\"\",done,2,",
            "end,done,1,",
            "huge,failed,1,malformed",
            "part,done,1,"
        ]
    );
}

/// H15: a date in a 503, and nothing is asked before it.
#[tokio::test]
async fn a_503_that_names_a_moment_is_asked_again_after_it_and_so_is_its_host() {
    let moment = SystemTime::now() + Duration::from_secs(3);
    let until = Instant::now() + Duration::from_secs(2);
    let date = chrono::DateTime::<chrono::Utc>::from(moment)
        .format("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_str(&date).unwrap());
    let mut html = HeaderMap::new();
    html.insert("content-type", HeaderValue::from_static("text/html"));
    let site = Site::builder()
        .sequence(
            "/",
            vec![
                (503, headers, String::new()),
                (200, html, "<a href=/b>b</a>".to_owned()),
            ],
        )
        .page("/b", "")
        .start()
        .await;
    let db = TestDb::new().await;
    Setup::quick().crawl(&db, &[site.url("/")]).await;
    assert_eq!(site.targets(), ["/robots.txt", "/", "/", "/b"]);
    // The date has whole seconds: it may be a second earlier than what it was made of.
    assert!(site.requests()[2].started >= until);
    let row = "select attempts, deferrals from tasks where url like '%/'";
    assert_eq!(column(&db.pool, row).await, ["1,1"]);
    assert_eq!(broken_invariants(&db.pool).await, Vec::<String>::new());
}
