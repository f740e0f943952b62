use async_compression::tokio::bufread::{
    BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
};
use proptest::prelude::*;

use super::*;

const CAP: usize = 1 << 20;

async fn all(mut encoder: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.read_to_end(&mut out).await.unwrap();
    out
}

async fn coded(name: &str, plain: &[u8]) -> Vec<u8> {
    match name {
        "gzip" => all(GzipEncoder::new(plain)).await,
        "zlib" => all(ZlibEncoder::new(plain)).await,
        "raw" => all(DeflateEncoder::new(plain)).await,
        "br" => all(BrotliEncoder::new(plain)).await,
        "zstd" => all(ZstdEncoder::new(plain)).await,
        other => panic!("no coding {other}"),
    }
}

async fn decoded(header: &str, wire: impl Into<Bytes>, cap: usize) -> Decoded {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, header.parse().unwrap());
    decode(&headers, wire.into(), None, cap).await
}

fn page() -> Vec<u8> {
    entries(4000)
}

fn entries(count: usize) -> Vec<u8> {
    (0..count)
        .map(|n| format!("<li>entry {n}</li>\n"))
        .collect::<String>()
        .into_bytes()
}

#[tokio::test]
async fn every_coding_is_undone_whatever_the_case_of_its_name() {
    for (header, name) in [
        ("gzip", "gzip"),
        ("X-GZip", "gzip"),
        ("deflate", "zlib"),
        ("Deflate", "raw"),
        ("br", "br"),
        ("ZSTD", "zstd"),
        ("identity, gzip", "gzip"),
    ] {
        let found = decoded(header, coded(name, &page()).await, CAP).await;
        assert_eq!(found.coding, Coding::Decoded, "{header}");
        assert_eq!(found.truncated, None, "{header}");
        assert_eq!(found.body, page(), "{header}");
    }
}

#[tokio::test]
async fn codings_in_a_row_are_undone_last_first() {
    let wire = coded("gzip", &coded("zlib", &page()).await).await;
    assert_eq!(decoded("deflate, gzip", wire, CAP).await.body, page());
    let twice = coded("gzip", &coded("gzip", &page()).await).await;
    assert_eq!(decoded("gzip, gzip", twice, CAP).await.body, page());
}

#[tokio::test]
async fn a_coding_that_was_named_twice_and_done_once_still_gives_the_page() {
    let found = decoded("gzip, gzip", coded("gzip", &page()).await, CAP).await;
    assert_eq!(
        (found.coding, found.body),
        (Coding::Mismatch, page().into())
    );
}

#[tokio::test]
async fn an_unknown_coding_leaves_the_body_as_it_was_sent() {
    for header in ["compress", "gzip, aes128gcm", "gzip, gzip, gzip, gzip"] {
        let found = decoded(header, "as sent", CAP).await;
        assert_eq!(
            (found.coding, &found.body[..]),
            (Coding::Unsupported, &b"as sent"[..])
        );
    }
}

#[tokio::test]
async fn a_plain_page_under_a_coding_s_name_is_not_lost() {
    for header in ["gzip", "deflate", "br", "zstd"] {
        for plain in [&page()[..], b"<html>", b"x^ starts like zlib", b"hello"] {
            let found = decoded(header, plain.to_vec(), CAP).await;
            assert_eq!(found.coding, Coding::Mismatch, "{header}");
            assert_eq!(found.body, plain, "{header}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_keeps_what_it_gave() {
    for (header, name) in [("gzip", "gzip"), ("deflate", "raw"), ("br", "br")] {
        let mut wire = coded(name, &page()).await;
        wire.truncate(wire.len() * 3 / 4);
        let found = decoded(header, wire, CAP).await;
        assert_eq!(found.truncated, Some(Truncated::Disconnect), "{header}");
        assert!(
            found.body.len() > 1000 && page().starts_with(&found.body),
            "{header}"
        );
    }
}

#[tokio::test]
async fn what_swells_beyond_measure_is_cut_long_before_the_cap_and_a_page_is_not() {
    let cap = 10 * CAP;
    let page = entries(150_000);
    assert!(page.len() > 2 * FREE_BYTES);
    for name in ["gzip", "br", "zstd", "zlib", "raw"] {
        let header = if matches!(name, "zlib" | "raw") {
            "deflate"
        } else {
            name
        };
        let bomb = decoded(header, coded(name, &vec![b' '; 64 << 20]).await, cap).await;
        assert_eq!(
            (bomb.body.len(), bomb.truncated),
            (FREE_BYTES, Some(Truncated::Length)),
            "{name}"
        );
        let whole = decoded(header, coded(name, &page).await, cap).await;
        assert_eq!(
            (whole.body.len(), whole.truncated),
            (page.len(), None),
            "{name}"
        );
    }
    // Each member is harmless, and the measure is all of them.
    let members = coded("gzip", &vec![b' '; 1 << 20]).await.repeat(100);
    assert_eq!(decoded("gzip", members, cap).await.body.len(), FREE_BYTES);
}

#[tokio::test]
async fn the_head_of_a_payload_is_enough_where_it_yields_all_that_is_kept() {
    let headers =
        |coding: &str| HeaderMap::from_iter([(CONTENT_ENCODING, coding.parse().unwrap())]);
    let bomb = Bytes::from(coded("gzip", &vec![b' '; 64 << 20]).await);
    let head = bomb.slice(..bomb.len() / 2);
    assert!(is_enough(&headers("gzip"), head.clone(), 10 * CAP).await);
    assert!(!is_enough(&headers("identity"), head.clone(), 10 * CAP).await);
    assert!(!is_enough(&headers("aes128gcm"), head, 10 * CAP).await);
    let page = Bytes::from(coded("gzip", &entries(150_000)).await);
    let head = page.slice(..page.len() / 2);
    assert!(!is_enough(&headers("gzip"), head.clone(), 10 * CAP).await);
    assert!(is_enough(&headers("gzip"), head, CAP).await);
}

#[tokio::test]
async fn the_cap_holds_after_decoding_and_a_body_of_just_its_size_is_whole() {
    for name in ["gzip", "br", "zstd"] {
        let bomb = coded(name, &vec![b' '; 64 << 20]).await;
        let found = decoded(name, bomb, CAP).await;
        assert_eq!(
            (found.body.len(), found.truncated),
            (CAP, Some(Truncated::Length)),
            "{name}"
        );
        let full = coded(name, &vec![b' '; CAP]).await;
        let found = decoded(name, full, CAP).await;
        assert_eq!((found.body.len(), found.truncated), (CAP, None), "{name}");
    }
}

#[tokio::test]
async fn members_in_a_row_are_one_body_and_rubbish_behind_them_is_ignored() {
    let mut wire = coded("gzip", b"one ").await;
    wire.extend(coded("gzip", b"two").await);
    wire.extend(b"\0\0rubbish");
    let found = decoded("gzip", wire, CAP).await;
    assert_eq!((&found.body[..], found.truncated), (&b"one two"[..], None));
}

#[tokio::test]
async fn members_without_end_are_cut_off() {
    let wire = [
        coded("gzip", b"page").await,
        coded("gzip", b"").await.repeat(20_000),
    ]
    .concat();
    let found = decoded("gzip", wire, 1 << 20).await;
    assert_eq!(found.body, "page");
    assert_eq!(found.truncated, Some(Truncated::Disconnect));
}

#[tokio::test]
async fn what_was_cut_on_the_wire_keeps_that_reason() {
    let mut wire = coded("gzip", &page()).await;
    wire.truncate(wire.len() / 2);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
    let found = decode(&headers, wire.into(), Some(Truncated::Time), CAP).await;
    assert_eq!(found.truncated, Some(Truncated::Time));
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic_or_exceed_the_cap(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        header in "(gzip|deflate|br|zstd)(, (gzip|deflate|br|zstd)){0,2}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(decoded(&header, bytes.clone(), 1000));
        prop_assert!(found.body.len() <= 1000.max(bytes.len()));
    }
}
