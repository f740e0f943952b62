//! HTTP/2 by ALPN, against a server whose frames the tests choose.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::http::{Request, Response, Version};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::*;
use crate::support::authority::Signed;

/// A request: the number of its connection and its number within it, from 0.
type Nth = (usize, usize);

/// What the connection does after a stream.
enum After {
    GoOn,
    /// Says that it takes no more, and ends when the streams have (GOAWAY).
    GoAway,
    /// Breaks off without a word.
    Break,
}

type Answer = dyn Fn(Nth, &str, SendResponse<Bytes>) -> After + Send + Sync;

struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Nth>>>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(
        answer: impl Fn(Nth, &str, SendResponse<Bytes>) -> After + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer): (_, Arc<Answer>) = (Arc::clone(&seen), Arc::new(answer));
        let serving = tokio::spawn(async move {
            let acceptor = Signed::by_itself(&["127.0.0.1"]).acceptor_of(&["h2", "http/1.1"]);
            let mut connections = JoinSet::new();
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    let stream = acceptor.accept(stream).await.ok()?;
                    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                    let mut connection = h2::server::Builder::new()
                        .max_header_list_size(1 << 20)
                        .handshake::<_, Bytes>(stream)
                        .await
                        .ok()?;
                    for nth in 0.. {
                        let (request, respond): (Request<RecvStream>, _) =
                            connection.accept().await?.ok()?;
                        log.lock().unwrap().push((number, nth));
                        match answer((number, nth), request.uri().path(), respond) {
                            After::GoOn => {}
                            After::GoAway => connection.graceful_shutdown(),
                            After::Break => return None,
                        }
                    }
                    Some(())
                });
            }
        });
        Server {
            address,
            seen,
            serving,
        }
    }

    fn url(&self, path: &str) -> PageUrl {
        PageUrl::parse(&format!("https://{}{path}", self.address)).unwrap()
    }

    fn seen(&self) -> Vec<Nth> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Sends headers and a body.
fn send(mut respond: SendResponse<Bytes>, response: Response<()>, body: impl Into<Bytes>) {
    let mut stream = respond.send_response(response, false).unwrap();
    stream.send_data(body.into(), true).unwrap();
}

fn ok() -> Response<()> {
    Response::new(())
}

fn trusting() -> Fetcher {
    fetcher(FetchSettings {
        insecure: true,
        ..settings()
    })
}

async fn get(fetcher: &Fetcher, url: &PageUrl) -> Result<Exchange, FetchError> {
    fetcher.fetch(url, &FetchOptions::default()).await
}

#[tokio::test]
async fn a_server_that_offers_it_is_asked_over_http_2_on_one_connection() {
    let server = Server::start(|_, path, respond| {
        send(respond, ok(), path.to_owned());
        After::GoOn
    })
    .await;
    let fetcher = trusting();
    let first = get(&fetcher, &server.url("/first")).await.unwrap();
    assert_eq!(
        (first.version, first.http_version()),
        (Version::HTTP_2, "2")
    );
    let urls: Vec<_> = (0..20).map(|n| server.url(&format!("/{n}"))).collect();
    let visits = urls.iter().map(|url| get(&fetcher, url));
    for (found, url) in futures_util::future::join_all(visits)
        .await
        .into_iter()
        .zip(&urls)
    {
        assert_eq!(found.unwrap().body, url.as_url().path());
    }
    assert!(server.seen().iter().all(|(connection, _)| *connection == 0));
    assert_eq!(server.seen().len(), 21);
}

#[tokio::test]
async fn a_server_without_http_2_is_asked_over_http_1_1() {
    let site = Site::builder().page("/", "page").start().await;
    let found = fetch(&site.url("/")).await.unwrap();
    assert_eq!(
        (found.version, found.http_version()),
        (Version::HTTP_11, "1.1")
    );
}

#[tokio::test]
async fn a_stream_that_was_refused_is_asked_for_again_unseen() {
    let server = Server::start(|nth, _, mut respond| {
        match nth {
            (0, 1) => respond.send_reset(Reason::REFUSED_STREAM),
            _ => send(respond, ok(), "page"),
        }
        After::GoOn
    })
    .await;
    let (fetcher, url) = (trusting(), server.url("/"));
    for _ in 0..2 {
        assert_eq!(get(&fetcher, &url).await.unwrap().body, "page");
    }
    assert_eq!(server.seen(), [(0, 0), (0, 1), (0, 2)]);
}

#[tokio::test]
async fn a_connection_that_goes_away_is_replaced_unseen() {
    let server = Server::start(|_, _, respond| {
        send(respond, ok(), "page");
        After::GoAway
    })
    .await;
    let (fetcher, url) = (trusting(), server.url("/"));
    for _ in 0..3 {
        assert_eq!(get(&fetcher, &url).await.unwrap().body, "page");
    }
    assert_eq!(server.seen(), [(0, 0), (1, 0), (2, 0)]);
}

#[tokio::test]
async fn a_kept_connection_that_breaks_under_a_request_is_replaced_unseen() {
    let server = Server::start(|nth, _, respond| {
        if nth == (0, 1) {
            return After::Break;
        }
        send(respond, ok(), "page");
        After::GoOn
    })
    .await;
    let (fetcher, url) = (trusting(), server.url("/"));
    for _ in 0..2 {
        assert_eq!(get(&fetcher, &url).await.unwrap().body, "page");
    }
    assert_eq!(server.seen(), [(0, 0), (0, 1), (1, 0)]);
}

#[tokio::test]
async fn a_server_that_refuses_every_stream_is_asked_three_times_and_no_more() {
    let server = Server::start(|_, _, mut respond| {
        respond.send_reset(Reason::REFUSED_STREAM);
        After::GoOn
    })
    .await;
    let error = get(&trusting(), &server.url("/")).await.unwrap_err();
    assert_eq!(
        (error.class(), error.disposition()),
        ("protocol", Disposition::Retry)
    );
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_stream_that_is_reset_in_its_body_is_incomplete() {
    let server = Server::start(|_, _, mut respond| {
        let mut stream = respond.send_response(ok(), false).unwrap();
        stream.send_data("half".into(), false).unwrap();
        // A reset overtakes what was not sent yet.
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            stream.send_reset(Reason::INTERNAL_ERROR);
        });
        After::GoOn
    })
    .await;
    let error = get(&trusting(), &server.url("/")).await.unwrap_err();
    assert_eq!(
        (error.class(), error.disposition()),
        ("incomplete", Disposition::Retry)
    );
}

#[tokio::test]
async fn a_body_shorter_than_its_length_is_an_error() {
    let server = Server::start(|_, _, respond| {
        let response = Response::builder().header("content-length", "11");
        send(respond, response.body(()).unwrap(), "hello");
        After::GoOn
    })
    .await;
    // RFC 9113 §8.1.1 calls it malformed; it is the cut body of HTTP/1.1.
    let error = get(&trusting(), &server.url("/")).await.unwrap_err();
    assert_eq!(error.class(), "incomplete");
}

#[tokio::test]
async fn long_headers_are_fine_and_endless_ones_are_an_error() {
    let server = Server::start(|_, path, respond| {
        let bytes = if path == "/long" { 100_000 } else { 400_000 };
        let policy = Response::builder().header("content-security-policy", "x".repeat(bytes));
        send(respond, policy.body(()).unwrap(), "page");
        After::GoOn
    })
    .await;
    let fetcher = trusting();
    let long = get(&fetcher, &server.url("/long")).await.unwrap();
    assert_eq!(long.body, "page");
    let error = get(&fetcher, &server.url("/endless")).await.unwrap_err();
    // Below us it is one of many breaches of the protocol.
    assert_eq!(error.class(), "protocol");
}

#[tokio::test]
async fn a_body_that_is_cut_at_the_cap_leaves_the_connection_alive() {
    let server = Server::start(|_, path, respond| {
        let body = if path == "/big" { 3_000_000 } else { 3 };
        send(respond, ok(), vec![b'x'; body]);
        After::GoOn
    })
    .await;
    let fetcher = fetcher(FetchSettings {
        insecure: true,
        max_body_bytes: 100_000,
        ..settings()
    });
    let big = get(&fetcher, &server.url("/big")).await.unwrap();
    assert_eq!(
        (big.body.len(), big.truncated),
        (100_000, Some(Truncated::Length))
    );
    let small = get(&fetcher, &server.url("/small")).await.unwrap();
    assert_eq!(small.body, "xxx");
    assert_eq!(server.seen(), [(0, 0), (0, 1)]);
}
