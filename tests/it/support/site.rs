//! A small web on loopback that remembers who asked what, and when.
//!
//! [`Site`] is an HTTP server of fixed routes; several of them are several hosts, by port.
//! [`RawListener`] answers with exact bytes, for what no HTTP server would send. Both stop when
//! dropped, and both are asked by event: [`Site::wait_for`] returns when what a test waits for has
//! been seen.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test module uses a part of it")]

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long a test waits for an event before it fails; far above what any takes.
const PATIENCE: Duration = Duration::from_secs(30);

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;
type Handler = Arc<dyn Fn(Request) -> Answering + Send + Sync>;

/// One request as the site saw it.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// `GET`, …
    pub(crate) method: String,
    /// Path and query, as on the request line.
    pub(crate) target: String,
    /// The request's headers.
    pub(crate) headers: HeaderMap,
    /// When it came.
    pub(crate) started: Instant,
    /// When its answer was ready; none while it is not. A streamed body is still to come then.
    pub(crate) ended: Option<Instant>,
}

impl Recorded {
    /// A header as text; empty if missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

/// A web server with a log of its requests.
pub(crate) struct Site {
    address: SocketAddr,
    log: Log,
    server: JoinHandle<()>,
}

type Log = Arc<watch::Sender<Vec<Recorded>>>;

/// Routes of a site to be. A later route replaces an earlier one of the same path.
#[derive(Clone, Default)]
pub(crate) struct SiteBuilder {
    routes: HashMap<String, Handler>,
    fallback: Option<Handler>,
    bind: Option<String>,
    unrecorded: bool,
}

impl Site {
    /// Begins a site without pages: what has no route is 404, robots.txt too.
    pub(crate) fn builder() -> SiteBuilder {
        SiteBuilder::default()
    }

    /// `http://127.0.0.1:port`, no slash at the end: the host key.
    pub(crate) fn authority(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of a path, which begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.authority())
    }

    /// The same with another name for this machine, such as `localhost`.
    pub(crate) fn url_at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.address.port())
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far, in the order they came.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.log.borrow().clone()
    }

    /// The targets (path and query) of all requests so far, in the order they came.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.log
            .borrow()
            .iter()
            .map(|request| request.target.clone())
            .collect()
    }

    /// How often a target was asked for.
    pub(crate) fn count(&self, target: &str) -> usize {
        self.log
            .borrow()
            .iter()
            .filter(|request| request.target == target)
            .count()
    }

    /// Waits until the log satisfies a condition, and returns it.
    ///
    /// # Panics
    /// After 30 s, with the log.
    pub(crate) async fn wait_for(&self, condition: impl Fn(&[Recorded]) -> bool) -> Vec<Recorded> {
        let mut changes = self.log.subscribe();
        match tokio::time::timeout(PATIENCE, changes.wait_for(|log| condition(log))).await {
            Ok(log) => log.expect("the sender lives as long as the site").clone(),
            Err(_) => panic!("never seen; the site was asked for {:?}", self.targets()),
        }
    }

    /// Waits until a target has been asked for.
    pub(crate) async fn wait_for_request(&self, target: &str) -> Recorded {
        let log = self
            .wait_for(|log| log.iter().any(|request| request.target == target))
            .await;
        log.into_iter()
            .find(|request| request.target == target)
            .expect("just seen")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl SiteBuilder {
    /// An HTML page with status 200.
    pub(crate) fn page(self, path: &str, html: impl Into<String>) -> Self {
        self.typed(path, "text/html; charset=utf-8", html.into())
    }

    /// A resource of any type with status 200.
    pub(crate) fn typed(
        self,
        path: &str,
        content_type: &'static str,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        let body = body.into();
        self.answer(path, move |_| {
            ([(header::CONTENT_TYPE, content_type)], body.clone()).into_response()
        })
    }

    /// The site's robots.txt.
    pub(crate) fn robots(self, text: impl Into<String>) -> Self {
        self.typed("/robots.txt", "text/plain", text.into())
    }

    /// A redirect; the target goes out as it is.
    pub(crate) fn redirect(self, path: &str, status: u16, location: impl Into<String>) -> Self {
        let (status, location) = (status_of(status), location.into());
        self.answer(path, move |_| {
            (status, [(header::LOCATION, location.clone())]).into_response()
        })
    }

    /// A short HTML page with any status.
    pub(crate) fn status(self, path: &str, status: u16) -> Self {
        let status = status_of(status);
        self.answer(path, move |_| {
            let body = format!("<title>{status}</title>");
            (status, [(header::CONTENT_TYPE, "text/html")], body).into_response()
        })
    }

    /// An HTML page that comes after a while.
    pub(crate) fn delay(self, path: &str, delay: Duration, html: impl Into<String>) -> Self {
        let html = html.into();
        self.route(path, move |_| {
            let html = html.clone();
            async move {
                tokio::time::sleep(delay).await;
                ([(header::CONTENT_TYPE, "text/html")], html).into_response()
            }
        })
    }

    /// Answers in turn, one a request; the last one stays.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn sequence(self, path: &str, answers: Vec<(u16, HeaderMap, String)>) -> Self {
        assert!(!answers.is_empty(), "a sequence needs an answer");
        let next = Mutex::new(0);
        self.answer(path, move |_| {
            let mut next = next.lock().unwrap();
            let (status, headers, body) = answers[*next].clone();
            *next = (*next + 1).min(answers.len() - 1);
            (status_of(status), headers, body).into_response()
        })
    }

    /// Any answer that needs no waiting.
    pub(crate) fn answer(
        self,
        path: &str,
        handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        self.route(path, move |request| std::future::ready(handler(&request)))
    }

    /// Any answer. The path is matched exactly and without the query.
    pub(crate) fn route<F>(
        mut self,
        path: &str,
        handler: impl Fn(Request) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response> + Send + 'static,
    {
        assert!(path.starts_with('/'), "a path begins with a slash: {path}");
        self.routes.insert(path.to_owned(), boxed(handler));
        self
    }

    /// What answers where no route does; without it, 404.
    pub(crate) fn otherwise<F>(
        mut self,
        handler: impl Fn(Request) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response> + Send + 'static,
    {
        self.fallback = Some(boxed(handler));
        self
    }

    /// Where to listen, instead of `127.0.0.1:0`.
    pub(crate) fn bind(mut self, address: &str) -> Self {
        self.bind = Some(address.to_owned());
        self
    }

    /// Keeps no log of requests: for sites that are asked hundreds of thousands of times.
    pub(crate) fn unrecorded(mut self) -> Self {
        self.unrecorded = true;
        self
    }

    /// Starts the site.
    ///
    /// # Panics
    /// If it cannot listen.
    pub(crate) async fn start(self) -> Site {
        let bind = self.bind.as_deref().unwrap_or("127.0.0.1:0").to_owned();
        let listener = TcpListener::bind(&bind).await.unwrap();
        let address = listener.local_addr().unwrap();
        let log: Log = Arc::new(watch::Sender::new(Vec::new()));
        let app = Router::new()
            .fallback(serve)
            .with_state((Arc::new(self), Arc::clone(&log)));
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Site {
            address,
            log,
            server,
        }
    }
}

fn boxed<F>(handler: impl Fn(Request) -> F + Send + Sync + 'static) -> Handler
where
    F: Future<Output = Response> + Send + 'static,
{
    Arc::new(move |request| Box::pin(handler(request)))
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap()
}

async fn serve(State((site, log)): State<(Arc<SiteBuilder>, Log)>, request: Request) -> Response {
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str())
        .to_owned();
    let recorded = Recorded {
        method: request.method().to_string(),
        target,
        headers: request.headers().clone(),
        started: Instant::now(),
        ended: None,
    };
    let mut index = None;
    if !site.unrecorded {
        log.send_modify(|log| {
            index = Some(log.len());
            log.push(recorded);
        });
    }
    let handler = site
        .routes
        .get(request.uri().path())
        .or(site.fallback.as_ref())
        .cloned();
    let response = match handler {
        Some(handler) => handler(request).await,
        None => StatusCode::NOT_FOUND.into_response(),
    };
    if let Some(index) = index {
        log.send_modify(|log| log[index].ended = Some(Instant::now()));
    }
    response
}

/// An HTML body that never ends: a kilobyte every few milliseconds.
pub(crate) fn endless(content_type: &'static str) -> Response {
    let stream = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Some((Ok::<_, std::io::Error>(vec![b'x'; 1024]), ()))
    });
    (
        [(header::CONTENT_TYPE, content_type)],
        Body::from_stream(stream),
    )
        .into_response()
}

/// What a raw listener does after its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Reads the next request of the connection.
    KeepOpen,
    /// Closes the connection in order (FIN).
    Close,
    /// Breaks it off (RST).
    Reset,
    /// Says nothing more, and keeps the connection open.
    Hang,
}

/// One request to a raw listener.
#[derive(Clone, Debug)]
pub(crate) struct RawRequest {
    /// The number of its connection, from 0.
    pub(crate) connection: usize,
    /// Its number within the connection, from 0.
    pub(crate) nth: usize,
    /// Request line and headers.
    pub(crate) head: String,
}

impl RawRequest {
    /// The second word of the request line.
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// A server of exact bytes.
pub(crate) struct RawListener {
    address: SocketAddr,
    seen: Arc<watch::Sender<Vec<RawRequest>>>,
    server: JoinHandle<()>,
}

impl RawListener {
    /// Answers every request with what `answer` returns for it.
    ///
    /// # Panics
    /// If it cannot listen.
    pub(crate) async fn start(
        answer: impl Fn(&RawRequest) -> (Vec<u8>, Then) + Send + Sync + 'static,
    ) -> RawListener {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(watch::Sender::new(Vec::new()));
        let (log, answer) = (Arc::clone(&seen), Arc::new(answer));
        let server = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                connections
                    .spawn(async move { converse(stream, connection, &log, &*answer).await });
            }
        });
        RawListener {
            address,
            seen,
            server,
        }
    }

    /// Answers every request with the same bytes, then closes.
    pub(crate) async fn always(bytes: impl Into<Vec<u8>>) -> RawListener {
        let bytes = bytes.into();
        RawListener::start(move |_| (bytes.clone(), Then::Close)).await
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<RawRequest> {
        self.seen.borrow().clone()
    }
}

impl Drop for RawListener {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn converse(
    mut stream: TcpStream,
    connection: usize,
    log: &watch::Sender<Vec<RawRequest>>,
    answer: &(impl Fn(&RawRequest) -> (Vec<u8>, Then) + Sync),
) -> Option<()> {
    for nth in 0.. {
        let head = read_head(&mut stream).await?;
        let request = RawRequest {
            connection,
            nth,
            head,
        };
        log.send_modify(|log| log.push(request.clone()));
        let (bytes, then) = answer(&request);
        stream.write_all(&bytes).await.ok()?;
        match then {
            Then::KeepOpen => {}
            Then::Close => return stream.shutdown().await.ok(),
            Then::Reset => return stream.set_zero_linger().ok(),
            Then::Hang => std::future::pending().await,
        }
    }
    None
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}
