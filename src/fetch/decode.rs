//! Undoes the content codings of a body (RFC 9110 §8.4), and never loses one that it cannot undo.
//!
//! The whole payload is here already, capped by `body`; what comes out is capped again, so that a
//! bomb ends where a plain page would. A payload in another coding than its header says stays as it
//! was sent ([`Coding::Mismatch`]); a stream that ends early gives what it gave. What swells beyond measure is cut long before the cap.

use std::io;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::exchange::{Coding, Truncated, text};

/// More codings in a row than this are nobody's honest page.
const MOST_CODINGS: usize = 3;

/// More gzip members in a row than this are no page; each costs a decoder, even an empty one of twenty bytes.
const MOST_MEMBERS: usize = 10_000;

/// The window of zstd is at most 8 MiB on the web (RFC 9659 §3): memory that a header may claim.
pub(super) const ZSTD_WINDOW_LOG: u32 = 23;

/// What a payload may come to whatever was sent for it, and how many times what was sent beyond that. A bomb (a thousand times with deflate,
/// far more with brotli) is cut here instead of being undone, hashed and read up to the cap; a page that says something is far below.
const FREE_BYTES: usize = 1 << 20;
const MOST_TIMES: usize = 250;

/// Payloads from this size on are decoded on a blocking thread: it takes half a millisecond.
const OFF_THREAD_BYTES: usize = 16 * 1024;

/// Room for what a decoder gives at once, at least.
const READ_BYTES: usize = 8 * 1024;

/// A body after its codings.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) body: Bytes,
    pub(super) coding: Coding,
    pub(super) truncated: Option<Truncated>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Undoes what `headers` say was done to `wire`, last coding first, and keeps `cap` bytes.
///
/// `truncated` is why `wire` is not whole, if it is not.
pub(super) async fn decode(
    headers: &HeaderMap,
    wire: Bytes,
    truncated: Option<Truncated>,
    cap: usize,
) -> Decoded {
    let Some(kinds) = codings(headers) else {
        return Decoded {
            body: wire,
            coding: Coding::Unsupported,
            truncated,
        };
    };
    if kinds.is_empty() || wire.is_empty() {
        return Decoded {
            body: wire,
            coding: Coding::Identity,
            truncated,
        };
    }
    if wire.len() < OFF_THREAD_BYTES {
        return undo_all(&kinds, wire, truncated, cap).await;
    }
    let runtime = tokio::runtime::Handle::current();
    let sent = wire.clone();
    tokio::task::spawn_blocking(move || runtime.block_on(undo_all(&kinds, sent, truncated, cap)))
        .await
        .unwrap_or(Decoded {
            body: wire,
            coding: Coding::Mismatch,
            truncated,
        })
}

/// Whether what is here of a payload yields all already that would be kept of it, so that nothing more need come.
pub(super) async fn is_enough(headers: &HeaderMap, wire: Bytes, cap: usize) -> bool {
    codings(headers).is_some_and(|kinds| !kinds.is_empty())
        && decode(headers, wire, None, cap).await.truncated == Some(Truncated::Length)
}

/// The codings in the order they were applied; none if one of them is unknown or they are too many.
pub(super) fn codings(headers: &HeaderMap) -> Option<Vec<Kind>> {
    let mut kinds = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in text(value).split(',') {
            match name.trim().to_ascii_lowercase().as_str() {
                "" | "identity" => {}
                // RFC 9110 §8.4.1.3: the same coding.
                "gzip" | "x-gzip" => kinds.push(Kind::Gzip),
                "deflate" => kinds.push(Kind::Deflate),
                "br" => kinds.push(Kind::Brotli),
                "zstd" => kinds.push(Kind::Zstd),
                _ => return None,
            }
        }
    }
    (kinds.len() <= MOST_CODINGS).then_some(kinds)
}

/// The first bytes of a body, of which only `wire` is there: its codings undone, and gzip that no header names.
pub(super) async fn head(headers: &HeaderMap, wire: &[u8], cap: usize) -> Bytes {
    let wire = Bytes::copy_from_slice(wire);
    let kinds = codings(headers).unwrap_or_default();
    let mut body = undo_all(&kinds, wire, None, cap).await.body;
    for _ in 0..MOST_CODINGS {
        if !body.starts_with(&[0x1f, 0x8b]) {
            break;
        }
        body = undo_gzip(&body, cap).await.0.into();
    }
    body
}

async fn undo_all(
    kinds: &[Kind],
    wire: Bytes,
    mut truncated: Option<Truncated>,
    cap: usize,
) -> Decoded {
    let mut body = wire;
    for &kind in kinds.iter().rev() {
        let (decoded, end) = undo(kind, &body, cap).await;
        truncated = match end {
            End::Mismatch => {
                return Decoded {
                    body,
                    coding: Coding::Mismatch,
                    truncated,
                };
            }
            End::Whole => truncated,
            End::Early => truncated.or(Some(Truncated::Disconnect)),
            End::Longer => Some(Truncated::Length),
        };
        body = decoded.into();
    }
    Decoded {
        body,
        coding: Coding::Decoded,
        truncated,
    }
}

/// How a coded stream ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// At its end.
    Whole,
    /// Before its end, or it is damaged from here on.
    Early,
    /// Not yet: the cap is reached.
    Longer,
    /// It never was one.
    Mismatch,
}

async fn undo(kind: Kind, input: &[u8], cap: usize) -> (Vec<u8>, End) {
    match kind {
        Kind::Gzip => undo_gzip(input, cap).await,
        Kind::Zstd => {
            let window = [DParameter::window_log_max(ZSTD_WINDOW_LOG)];
            let mut decoder = ZstdDecoder::with_params(input, &window);
            decoder.multiple_members(true);
            drain(decoder, ZstdDecoder::get_ref, input, cap).await
        }
        Kind::Brotli => {
            let decoder = BrotliDecoder::new(input);
            unless_text(
                input,
                drain(decoder, BrotliDecoder::get_ref, input, cap).await,
            )
        }
        Kind::Deflate if has_zlib_header(input) => {
            match drain(ZlibDecoder::new(input), ZlibDecoder::get_ref, input, cap).await {
                (_, End::Mismatch) => bare(input, cap).await,
                decoded => decoded,
            }
        }
        // "deflate" means zlib, but many send the bare stream (RFC 9110 §8.4.1.2).
        Kind::Deflate => unless_text(input, bare(input, cap).await),
    }
}

async fn bare(input: &[u8], cap: usize) -> (Vec<u8>, End) {
    let decoder = DeflateDecoder::new(input);
    drain(decoder, DeflateDecoder::get_ref, input, cap).await
}

/// Decodes each member of a gzip file (RFC 1952 §2.2) and ignores rubbish behind the last one, as
/// browsers do.
async fn undo_gzip(input: &[u8], cap: usize) -> (Vec<u8>, End) {
    // What its end says it comes to (RFC 1952 §2.3.1), within reason: a page is read without that its buffer moves.
    let said = input
        .last_chunk()
        .map_or(0, |end| u32::from_le_bytes(*end) as usize);
    let likely = said.min(input.len().saturating_mul(32)).min(FREE_BYTES);
    let mut body = Vec::with_capacity(likely + READ_BYTES);
    let mut rest = input;
    for _ in 0..MOST_MEMBERS {
        let mut decoder = GzipDecoder::new(rest);
        let end = drain_into(&mut body, &mut decoder, GzipDecoder::get_ref, input, cap).await;
        rest = decoder.into_inner();
        if end != End::Whole || !rest.starts_with(&[0x1f, 0x8b]) {
            return match end {
                // A second member that is none is rubbish, too.
                End::Mismatch if !body.is_empty() => (body, End::Whole),
                end => (body, end),
            };
        }
    }
    (body, End::Early)
}

async fn drain<'a, D: AsyncRead + Unpin>(
    mut decoder: D,
    rest: impl Fn(&D) -> &&'a [u8],
    input: &'a [u8],
    cap: usize,
) -> (Vec<u8>, End) {
    let mut out = Vec::new();
    let end = drain_into(&mut out, &mut decoder, rest, input, cap).await;
    (out, end)
}

/// Appends what comes out of a decoder. `rest`: what it has not taken of `input` yet.
async fn drain_into<'a, D: AsyncRead + Unpin>(
    out: &mut Vec<u8>,
    decoder: &mut D,
    rest: impl Fn(&D) -> &&'a [u8],
    input: &'a [u8],
    cap: usize,
) -> End {
    let before = out.len();
    loop {
        let taken = input.len() - rest(decoder).len();
        let cap = cap.min(FREE_BYTES.max(taken.saturating_mul(MOST_TIMES)));
        if out.len() > cap {
            out.truncate(cap);
            return End::Longer;
        }
        out.reserve(READ_BYTES);
        match decoder.read_buf(out).await {
            Ok(0) => return End::Whole,
            Ok(_) => {}
            Err(error) if out.len() == before && error.kind() != io::ErrorKind::UnexpectedEof => {
                return End::Mismatch;
            }
            Err(_) => return End::Early,
        }
    }
}

/// Brotli and bare deflate have no magic number: a plain page may decode to some noise before it
/// fails. Where decoding failed and the input reads as text, it was text.
fn unless_text(input: &[u8], (out, end): (Vec<u8>, End)) -> (Vec<u8>, End) {
    let control = |&byte: &u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c);
    let failed = matches!(end, End::Early | End::Mismatch);
    if failed && !input.iter().any(control) && std::str::from_utf8(input).is_ok() {
        return (Vec::new(), End::Mismatch);
    }
    (out, end)
}

/// RFC 1950 §2.2: method 8, and a header that is a multiple of 31.
pub(super) fn has_zlib_header(input: &[u8]) -> bool {
    matches!(input, [first, second, ..]
        if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
}

#[cfg(test)]
mod tests;
