//! Bodies that are not kept but handed on as they come: sitemaps, which may be longer than any page.
//!
//! The body goes from the wire through its codings to a [`Sink`] in pieces of some KiB, and waits where the taker is slow: memory is that
//! of a few pieces. gzip is recognised by its first bytes, whatever the headers and the name say, also below a coding. What a server sends
//! decides how much there is to decode, also where nothing comes out of it: so each layer is bounded, keeps the time and lets others run.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::HeaderMap;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, BufReader, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;
use url::Url;

use super::body::{self, Deadline, Head, Step};
use super::decode::{self, Kind, ZSTD_WINDOW_LOG};
use super::error::FetchError;
use crate::exchange::{Coding, Truncated};

/// Size of a piece, after decoding. To read one of XML takes some 0.1 ms, so it is done in place.
const PIECE_BYTES: usize = 16 << 10;

/// Pieces that wait for a taker.
const PIECES: usize = 4;

/// gzip inside gzip: as a coding and as a file, and once more by mistake.
const MOST_GZIP: usize = 3;

/// The first bytes of gzip (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A piece of a body that is handed on.
#[derive(Debug)]
pub enum Piece {
    /// A body begins; what came before, if anything did, was another one.
    Begin {
        /// The URL that gives it.
        url: Url,
        /// The `charset` of its media type.
        charset: Option<String>,
    },
    /// The next bytes, decoded.
    Data(Bytes),
}

/// Takes a body in pieces, if it is one to be taken so.
#[derive(Clone, Debug)]
pub struct Sink {
    /// Bytes that are handed on at most, and read at most before decoding.
    pub cap: u64,
    /// Which bodies may be such ones, by URL and media type: of those the head is looked at.
    pub may_take: fn(&Url, Option<&str>) -> bool,
    /// Which are, by their first bytes, decoded: 4 KiB, or all where there is less.
    pub takes: fn(&[u8]) -> bool,
    pieces: mpsc::Sender<Piece>,
}

impl Sink {
    /// A sink, and where its pieces come out. They end when the sink is dropped; a receiver that is dropped ends the fetch.
    pub fn new(
        cap: u64,
        may_take: fn(&Url, Option<&str>) -> bool,
        takes: fn(&[u8]) -> bool,
    ) -> (Sink, mpsc::Receiver<Piece>) {
        let (pieces, taken) = mpsc::channel(PIECES);
        let sink = Sink {
            cap,
            may_take,
            takes,
            pieces,
        };
        (sink, taken)
    }
}

/// What was handed on.
pub(super) struct Streamed {
    pub(super) wire_bytes: u64,
    pub(super) truncated: Option<Truncated>,
    pub(super) coding: Coding,
}

/// Why no more comes from the wire.
#[derive(Debug)]
enum Stop {
    Truncated(Truncated),
    Failed(FetchError),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body ends early")
    }
}

impl std::error::Error for Stop {}

type Layer<'a> = Pin<Box<dyn AsyncBufRead + Send + 'a>>;

/// What a decoder reads from: the layer below it, up to the cap and the end of the time, a piece at a time, after which others run. A decoder
/// takes all that is ready before it looks up, and of a stream of empty members nothing comes out, however long it is.
struct Watched<'a> {
    below: Layer<'a>,
    room: u64,
    deadline: Deadline,
    /// Bytes that were taken since others ran.
    taken: usize,
}

impl AsyncBufRead for Watched<'_> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        if this.taken >= PIECE_BYTES {
            this.taken = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if this.deadline.is_over() {
            return Poll::Ready(Err(io::Error::other(this.deadline.late())));
        }
        let bytes = ready!(this.below.as_mut().poll_fill_buf(cx))?;
        if this.room == 0 && !bytes.is_empty() {
            let stop = Stop::Truncated(Truncated::Length);
            return Poll::Ready(Err(io::Error::other(stop)));
        }
        let room = usize::try_from(this.room).unwrap_or(usize::MAX);
        let most = bytes.len().min(PIECE_BYTES - this.taken).min(room);
        Poll::Ready(Ok(&bytes[..most]))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        let this = self.get_mut();
        this.room = this.room.saturating_sub(amount as u64);
        this.taken += amount;
        this.below.as_mut().consume(amount);
    }
}

impl AsyncRead for Watched<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = ready!(self.as_mut().poll_fill_buf(cx))?;
        let taken = bytes.len().min(out.remaining());
        out.put_slice(&bytes[..taken]);
        self.consume(taken);
        Poll::Ready(Ok(()))
    }
}

/// Hands a body on, whose head was read already.
///
/// # Errors
/// As [`body::read`]; what was handed on by then counts, and is handed on again when the resource is asked for anew.
pub(super) async fn hand_on(
    response: &mut reqwest::Response,
    head: Head,
    url: &Url,
    headers: &HeaderMap,
    sink: &Sink,
    deadline: &Deadline,
) -> Result<Streamed, FetchError> {
    let wire_bytes = AtomicU64::new(0);
    let begin = Piece::Begin {
        url: url.clone(),
        charset: crate::extract::charset_of(headers),
    };
    let mut streamed = Streamed {
        wire_bytes: 0,
        truncated: None,
        coding: Coding::Identity,
    };
    let kinds = decode::codings(headers);
    streamed.coding = match &kinds {
        None => Coding::Unsupported,
        Some(kinds) if kinds.is_empty() => Coding::Identity,
        Some(_) => Coding::Decoded,
    };
    let wire = wire(response, head, sink.cap, deadline, &wire_bytes);
    let (mut body, is_other) = unfold(
        Box::pin(wire),
        kinds.unwrap_or_default(),
        sink.cap,
        deadline,
    )
    .await;
    if is_other {
        streamed.coding = Coding::Mismatch;
    }
    let ended = pass(&mut body, begin, sink, deadline).await;
    drop(body);
    streamed.wire_bytes = wire_bytes.into_inner();
    match ended {
        Ok(truncated) => streamed.truncated = truncated,
        Err(Stop::Truncated(truncated)) => streamed.truncated = Some(truncated),
        Err(Stop::Failed(error)) => return Err(error),
    }
    Ok(streamed)
}

/// The bytes as they come: the head, then the rest, each piece in time.
fn wire<'a>(
    response: &'a mut reqwest::Response,
    head: Head,
    cap: u64,
    deadline: &'a Deadline,
    count: &'a AtomicU64,
) -> impl AsyncBufRead + Send + 'a {
    let begun = (response, Some(head), cap);
    StreamReader::new(Box::pin(stream::try_unfold(
        begun,
        move |(response, head, room)| async move {
            let (chunk, head) = match head {
                Some(Head { bytes, ended }) if ended && bytes.is_empty() => return Ok(None),
                Some(Head { bytes, ended }) => {
                    let end = Head {
                        bytes: BytesMut::new(),
                        ended,
                    };
                    (bytes.freeze(), ended.then_some(end))
                }
                None => match body::step(response, deadline).await {
                    Ok(Step::Chunk(chunk)) => (chunk, None),
                    Ok(Step::End) => return Ok(None),
                    Ok(Step::Late) => return Err(io::Error::other(deadline.late())),
                    Err(error) => return Err(io::Error::other(Stop::Failed(error))),
                },
            };
            let length = chunk.len() as u64;
            if length > room {
                return Err(io::Error::other(Stop::Truncated(Truncated::Length)));
            }
            count.fetch_add(length, Ordering::Relaxed);
            Ok(Some((chunk, (response, head, room - length))))
        },
    )))
}

/// Undoes the codings, the last one first, then what is gzip by its bytes. Answers also whether a coding was named that it is not in.
async fn unfold<'a>(
    wire: Layer<'a>,
    kinds: Vec<Kind>,
    cap: u64,
    deadline: &Deadline,
) -> (Layer<'a>, bool) {
    let watched = |below: Layer<'a>| -> Layer<'a> {
        Box::pin(Watched {
            below,
            room: cap,
            deadline: *deadline,
            taken: 0,
        })
    };
    let (mut layer, mut is_other) = (watched(wire), false);
    for kind in kinds.into_iter().rev() {
        let (head, rest) = peek(layer).await;
        layer = match kind {
            Kind::Gzip if !head.starts_with(&GZIP) => {
                is_other |= !head.is_empty();
                rest
            }
            Kind::Gzip => gunzip(rest),
            Kind::Deflate if decode::has_zlib_header(&head) => buffered(ZlibDecoder::new(rest)),
            Kind::Deflate => buffered(DeflateDecoder::new(rest)),
            Kind::Brotli => buffered(BrotliDecoder::new(rest)),
            Kind::Zstd => {
                let window = [DParameter::window_log_max(ZSTD_WINDOW_LOG)];
                let mut decoder = ZstdDecoder::with_params(rest, &window);
                decoder.multiple_members(true);
                buffered(decoder)
            }
        };
        layer = watched(layer);
    }
    for _ in 0..MOST_GZIP {
        let (head, rest) = peek(layer).await;
        layer = rest;
        if !head.starts_with(&GZIP) {
            break;
        }
        layer = watched(gunzip(layer));
    }
    (layer, is_other)
}

fn gunzip(layer: Layer<'_>) -> Layer<'_> {
    let mut decoder = GzipDecoder::new(layer);
    decoder.multiple_members(true);
    buffered(decoder)
}

fn buffered<'a>(decoder: impl AsyncRead + Send + 'a) -> Layer<'a> {
    Box::pin(BufReader::with_capacity(PIECE_BYTES, decoder))
}

/// The first two bytes of a layer, and the layer as it was. An error in them comes again behind them.
async fn peek(mut layer: Layer<'_>) -> (Vec<u8>, Layer<'_>) {
    let mut head = Vec::with_capacity(GZIP.len());
    let mut failed = None;
    while head.len() < GZIP.len() {
        let mut byte = [0; 1];
        match layer.read(&mut byte).await {
            Ok(0) => break,
            Ok(_) => head.push(byte[0]),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let begun = io::Cursor::new(head.clone());
    let rest: Layer<'_> = match failed {
        None => layer,
        Some(error) => Box::pin(StreamReader::new(Box::pin(stream::once(async move {
            Err::<Bytes, _>(error)
        })))),
    };
    (head, Box::pin(begun.chain(rest)))
}

/// Hands the layer's bytes on, up to the cap.
async fn pass(
    body: &mut Layer<'_>,
    begin: Piece,
    sink: &Sink,
    deadline: &Deadline,
) -> Result<Option<Truncated>, Stop> {
    let mut room = sink.cap;
    send(begin, sink, deadline).await?;
    loop {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        let end = loop {
            match body.read_buf(&mut piece).await {
                Ok(0) => break Some(Ok(None)),
                Ok(_) if piece.len() < PIECE_BYTES => {}
                Ok(_) => break None,
                Err(error) => {
                    let stop = error
                        .into_inner()
                        .and_then(|cause| cause.downcast::<Stop>().ok());
                    break Some(match stop {
                        Some(stop) => Err(*stop),
                        // A coded stream that is damaged, or not complete.
                        None => Ok(Some(Truncated::Disconnect)),
                    });
                }
            }
        };
        let is_longer = piece.len() as u64 > room;
        if is_longer {
            piece.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        }
        room -= piece.len() as u64;
        if !piece.is_empty() {
            send(Piece::Data(piece.freeze()), sink, deadline).await?;
        }
        if is_longer {
            return Ok(Some(Truncated::Length));
        }
        if let Some(end) = end {
            return end;
        }
    }
}

impl Deadline {
    /// The end of the time: what came by then counts, unless the hurry was ours.
    fn late(&self) -> Stop {
        match self.in_a_hurry() {
            Some(error) => Stop::Failed(error),
            None => Stop::Truncated(Truncated::Time),
        }
    }
}

/// Waits for the taker, as long as there is time.
async fn send(piece: Piece, sink: &Sink, deadline: &Deadline) -> Result<(), Stop> {
    match deadline.within(sink.pieces.send(piece)).await {
        Some(Ok(())) => Ok(()),
        // The taker has enough.
        Some(Err(_)) => Err(Stop::Truncated(Truncated::Length)),
        None => Err(deadline.late()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_compression::tokio::bufread::GzipEncoder;
    use futures_util::poll;

    use super::*;
    use crate::fetch::settings::{FetchOptions, FetchSettings};

    /// A gzip file of nothing (RFC 1952).
    const EMPTY: [u8; 20] = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    fn deadline(total_timeout: Duration) -> Deadline {
        let settings = FetchSettings {
            total_timeout,
            ..FetchSettings::default()
        };
        Deadline::start(&settings, &FetchOptions::default())
    }

    /// Some KB of which nothing comes out, for 4 MB between the layers.
    async fn bomb() -> Vec<u8> {
        let inner = EMPTY.repeat(200_000);
        let mut wire = Vec::new();
        GzipEncoder::new(&inner[..])
            .read_to_end(&mut wire)
            .await
            .unwrap();
        assert!(wire.len() < 40_000, "{}", wire.len());
        wire
    }

    async fn ending(cap: u64, deadline: Deadline) -> io::Result<usize> {
        let wire = bomb().await;
        let (mut body, _) = unfold(Box::pin(&wire[..]), Vec::new(), cap, &deadline).await;
        body.read_to_end(&mut Vec::new()).await
    }

    #[tokio::test]
    async fn what_lies_between_layers_is_bounded_also_where_nothing_comes_out() {
        let stop = ending(1 << 20, deadline(Duration::from_secs(60))).await;
        let stop = stop.unwrap_err().into_inner().unwrap();
        let stop = stop.downcast::<Stop>().unwrap();
        assert!(matches!(*stop, Stop::Truncated(Truncated::Length)));
        // Within the bounds it is a file of nothing.
        let end = ending(8 << 20, deadline(Duration::from_secs(60))).await;
        assert_eq!(end.unwrap(), 0);
    }

    #[tokio::test]
    async fn the_end_of_the_time_ends_what_is_ready_all_the_time() {
        let stop = ending(8 << 20, deadline(Duration::ZERO)).await;
        let stop = stop.unwrap_err().into_inner().unwrap();
        assert!(stop.downcast::<Stop>().is_ok());
    }

    #[tokio::test]
    async fn others_run_while_a_body_is_decoded_of_which_nothing_comes_out() {
        let wire = bomb().await;
        let deadline = deadline(Duration::from_secs(60));
        let begun = unfold(Box::pin(&wire[..]), Vec::new(), 8 << 20, &deadline);
        let mut reading = std::pin::pin!(async {
            let (mut body, _) = begun.await;
            body.read_to_end(&mut Vec::new()).await
        });
        let mut pauses = 0;
        while poll!(&mut reading).is_pending() {
            pauses += 1;
        }
        // One a piece.
        assert!(pauses > 200, "{pauses}");
    }
}
