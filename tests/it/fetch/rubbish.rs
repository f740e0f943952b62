//! No bytes served can panic or hang a visit: answers at random, and good ones with damage.

use std::sync::Arc;

use pgcrawl::canon::HrefCache;
use pgcrawl::extract;
use pgcrawl::pages::PageRow;
use pgcrawl::robots::Robots;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

/// Far above the limits of [`impatient`]: a visit that takes so long hangs.
const HANGS: Duration = Duration::from_secs(20);

fn impatient() -> FetchSettings {
    FetchSettings {
        connect_timeout: Duration::from_millis(400),
        idle_timeout: Duration::from_millis(100),
        total_timeout: Duration::from_secs(3),
        max_body_bytes: 64 * 1024,
        ..settings()
    }
}

fn deflated(page: &str, format: &str) -> Vec<u8> {
    use async_compression::tokio::bufread::{BrotliEncoder, ZlibEncoder, ZstdEncoder};
    let mut out = Vec::new();
    // These encoders read from memory and never wait.
    futures_util::FutureExt::now_or_never(async {
        let page = page.as_bytes();
        match format {
            "gzip" => GzipEncoder::new(page).read_to_end(&mut out).await,
            "br" => BrotliEncoder::new(page).read_to_end(&mut out).await,
            "zstd" => ZstdEncoder::new(page).read_to_end(&mut out).await,
            _ => ZlibEncoder::new(page).read_to_end(&mut out).await,
        }
    })
    .unwrap()
    .unwrap();
    out
}

/// Good answers, of all kinds that a visit tells apart.
fn good() -> Vec<Vec<u8>> {
    let page = "<!doctype html><meta charset=utf-8><base href=/d/><title>T\u{e4}</title><a href=x>x</a><h1>h</h1>".repeat(3);
    let whole = |head: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let html = "200 OK\r\ncontent-type: text/html; charset=windows-1251";
    let mut answers = vec![
        whole(html, page.as_bytes()),
        whole("200 OK\r\ncontent-type: text/plain", b"User-agent: *\nDisallow: /p\nCrawl-delay: 1\nSitemap: /s.xml\n"),
        whole("200 OK\r\ncontent-type: application/xml", b"<?xml version='1.0' encoding='utf-16'?><a/>"),
        whole("302 Found\r\nlocation: /caf\u{e9} x?a=%zz#f", b""),
        whole("302 Found\r\nlocation: /?\r\nset-cookie: a=1; Max-Age=9\r\nset-cookie: b", b""),
        whole("301 Moved\r\nlocation: //[::1]:1/", b""),
        whole("503 Busy\r\nretry-after: Sun, 06 Nov 1994 08:49:37 GMT", b"busy"),
        whole("429 Calm\r\nretry-after: 120", b""),
        whole("206 Part\r\ncontent-range: bytes 0-3/9", b"page"),
        whole("304 Same\r\netag: W/\"1\"", b""),
        whole("401 Who\r\nwww-authenticate: Basic realm=\"x\"", b"who"),
        whole("200 OK\r\nlink: </n>; rel=next, <x>; rel=\"canonical\"\r\nrefresh: 0; url=/r\r\nx-robots-tag: bot: none, nofollow", page.as_bytes()),
        b"HTTP/1.1 103 Early\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec(),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\npage\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n".to_vec(),
        b"HTTP/1.0 200 OK\r\n\r\n<html>to the end".to_vec(),
        b"HTTP/1.1 204 None\r\n\r\n".to_vec(),
    ];
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let body = deflated(&page, coding);
        answers.push(whole(
            &format!("{html}\r\ncontent-encoding: {coding}"),
            &body,
        ));
    }
    let twice = deflated(&String::from_utf8_lossy(&deflated(&page, "gzip")), "gzip");
    answers.push(whole(
        &format!("{html}\r\ncontent-encoding: gzip, gzip"),
        &twice,
    ));
    answers
}

/// What is done to a good answer.
#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Cut(Index),
    Drop(Index, Index),
    Repeat(Index, Index, usize),
    Insert(Index, Vec<u8>),
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let range = |a: &Index, b: &Index, bytes: &[u8]| {
            let (a, b) = (a.index(bytes.len()), b.index(bytes.len()));
            a.min(b)..a.max(b)
        };
        match self {
            Damage::Flip(at, by) => {
                let at = at.index(bytes.len());
                bytes[at] ^= by;
            }
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Drop(a, b) => drop(bytes.drain(range(a, b, bytes))),
            Damage::Repeat(a, b, times) => {
                let range = range(a, b, bytes);
                let part = bytes[range.clone()].repeat(*times);
                bytes.splice(range, part);
            }
            Damage::Insert(at, what) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, what.iter().copied());
            }
        }
    }
}

/// An answer, and what the server does after it.
pub(crate) fn answer() -> impl Strategy<Value = (Vec<u8>, Then)> {
    let words: Vec<Vec<u8>> = [
        "\r\n",
        "\n",
        "\0",
        ": ",
        "content-length: 5\r\n",
        "content-length: -1\r\n",
        "transfer-encoding: chunked\r\n",
        "content-encoding: gzip, br, zstd\r\n",
        "location: \r\n",
        "HTTP/1.1 200 OK\r\n",
        "0\r\n\r\n",
        "FFFFFFFFFFFFFFFF\r\n",
        "\u{feff}",
        "<",
        "charset=",
    ]
    .iter()
    .map(|word| word.as_bytes().to_vec())
    .collect();
    let damage = prop_oneof![
        4 => (any::<Index>(), 1..=255_u8).prop_map(|(at, by)| Damage::Flip(at, by)),
        1 => any::<Index>().prop_map(Damage::Cut),
        2 => any::<(Index, Index)>().prop_map(|(a, b)| Damage::Drop(a, b)),
        1 => (any::<Index>(), any::<Index>(), 2..40_usize).prop_map(|(a, b, n)| Damage::Repeat(a, b, n)),
        2 => (any::<Index>(), select(words)).prop_map(|(at, word)| Damage::Insert(at, word)),
        2 => (any::<Index>(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ];
    let damaged =
        (select(good()), prop::collection::vec(damage, 0..5)).prop_map(|(mut bytes, damages)| {
            damages.iter().for_each(|damage| damage.to(&mut bytes));
            bytes
        });
    let noise = prop::collection::vec(any::<u8>(), 0..300);
    let then = prop_oneof![
        8 => Just(Then::Close),
        2 => Just(Then::KeepOpen),
        2 => Just(Then::Reset),
        1 => Just(Then::Hang),
    ];
    (prop_oneof![9 => damaged, 1 => noise], then)
}

/// All that a visit does with an answer, but for the database.
async fn visit(fetcher: Fetcher, url: PageUrl) {
    let options = FetchOptions {
        wanted: extract::is_wanted,
        ..FetchOptions::default()
    };
    let Ok(found) = fetcher.fetch(&url, &options).await else {
        return;
    };
    assert!(found.body.len() <= 64 * 1024 && found.status >= 200);
    pgcrawl::fetch::retry_after(&found.headers, std::time::SystemTime::now());
    if let Some(target) = found.redirect_target() {
        let _ = url.join(&target);
    }
    let input = extract::Input {
        url: &url,
        headers: &found.headers,
        body: &found.body,
        robots_token: "testbot",
        anchors: false,
        canon: &pgcrawl::canon::BASE,
        wants: extract::Wants::default(),
    };
    let read = extract::extract(&input, &mut HrefCache::new(16));
    let row = PageRow::answered(&found, Some(read), true);
    assert!(row.title.is_none_or(|title| !title.contains('\0')));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_answer_can_panic_or_hang_a_visit(answers in prop::collection::vec(answer(), 64)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let ended = runtime.block_on(async {
            let count = answers.len();
            let answers = Arc::new(answers);
            let raw = RawListener::start(move |request| {
                let number = request.target().trim_matches(|c: char| !c.is_ascii_digit());
                answers[number.parse::<usize>().unwrap_or(0) % answers.len()].clone()
            })
            .await;
            let fetcher = fetcher(impatient());
            let mut visits = tokio::task::JoinSet::new();
            for number in 0..count {
                let url = PageUrl::parse(&raw.url(&format!("/{number}"))).unwrap();
                visits.spawn(visit(fetcher.clone(), url));
            }
            // The same bytes as a robots.txt; the first of them, since it has but one address.
            let host = HostKey::parse(raw.url("").trim_end_matches('/')).unwrap();
            visits.spawn(async move {
                let found = fetcher.fetch_robots(&host, Duration::from_secs(5), Duration::ZERO).await;
                Robots::parse(&found.body, "testbot");
            });
            tokio::time::timeout(HANGS, async {
                while let Some(visit) = visits.join_next().await {
                    visit.unwrap();
                }
            })
            .await
        });
        prop_assert!(ended.is_ok(), "a visit hangs");
    }
}
