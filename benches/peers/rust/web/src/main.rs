//! A web of many hosts on one port, the same at each start: `peers-web HOSTS PAGES LINKS CROSS LATENCY_MS CRAWL_DELAY_S PORT CONTROL SEED`.
//!
//! Host n is h000n.site.test. Its pages are `/` and `/p/1`, `/p/2`, …; `/p/0` is `/` again. Each has LINKS links: one to `/private/`,
//! which robots.txt forbids, CROSS to other hosts, the rest to pages of its own. All pages can be reached from h0001's first: a page
//! links to the two below it in a binary tree, and the first page of a host to the first pages of the next five hosts.
//!
//! On the control port `/log` prints what was asked for since `/reset`: moment of the request and of its answer (µs since 1970), host,
//! path, status, method. One thread, so that it takes no more than its part of the machine.

mod page;

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::LocalSet;

use page::{Asked, Web};

/// One request, in as little as a million of them allow.
struct Entry {
    asked_us: u64,
    took_us: u32,
    host: u16,
    asked: Asked,
    status: u16,
    head: bool,
}

struct State {
    web: Web,
    latency: Duration,
    crawl_delay_s: u64,
    began: (std::time::Instant, u64),
    log: Vec<Entry>,
}

impl State {
    /// By the wall's clock at the start, and steadily since.
    fn now_us(&self) -> u64 {
        self.began.1 + self.began.0.elapsed().as_micros() as u64
    }
}

type Shared = Rc<RefCell<State>>;
type Answer = Response<Full<Bytes>>;

fn answer(status: StatusCode, media_type: &str, body: String) -> Answer {
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, media_type)
        .body(Full::new(Bytes::from(body)))
        .expect("a good header")
}

async fn serve(state: Shared, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let name = request
        .headers()
        .get(HOST)
        .and_then(|name| name.to_str().ok());
    let (asked_us, host, asked, latency) = {
        let state = state.borrow();
        let host = name.and_then(|name| state.web.host(name)).unwrap_or(0);
        let asked = match host {
            0 => Asked::Nothing,
            _ => state.web.asked(request.uri().path()),
        };
        (state.now_us(), host, asked, state.latency)
    };
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let mut state = state.borrow_mut();
    let made = match asked {
        Asked::Robots => {
            let mut rules = "User-agent: *\nDisallow: /private/\n".to_owned();
            if state.crawl_delay_s > 0 {
                let _ = writeln!(rules, "Crawl-delay: {}", state.crawl_delay_s);
            }
            answer(StatusCode::OK, "text/plain", rules)
        }
        Asked::Root => answer(StatusCode::OK, "text/html", state.web.page(host, 0)),
        Asked::Page(n) => answer(StatusCode::OK, "text/html", state.web.page(host, n)),
        Asked::Private => answer(StatusCode::OK, "text/html", "<title>private</title>".into()),
        Asked::Nothing => answer(StatusCode::NOT_FOUND, "text/plain", "nothing\n".into()),
    };
    let took_us = (state.now_us() - asked_us) as u32;
    state.log.push(Entry {
        asked_us,
        took_us,
        host,
        asked,
        status: made.status().as_u16(),
        head: request.method() == Method::HEAD,
    });
    Ok(made)
}

async fn control(state: Shared, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let mut text = String::new();
    match request.uri().path() {
        "/reset" => state.borrow_mut().log.clear(),
        "/log" => {
            for entry in &state.borrow().log {
                let ended = entry.asked_us + u64::from(entry.took_us);
                let method = if entry.head { "HEAD" } else { "GET" };
                let _ = writeln!(
                    text,
                    "{} {ended} h{:04} {} {} {method}",
                    entry.asked_us, entry.host, entry.asked, entry.status
                );
            }
        }
        _ => return Ok(answer(StatusCode::NOT_FOUND, "text/plain", text)),
    }
    Ok(answer(StatusCode::OK, "text/plain", text))
}

fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(([127, 0, 0, 1], port).into())?;
    socket.listen(8_192)
}

async fn run(state: Shared, port: u16, control_port: u16) -> std::io::Result<()> {
    let (site, controls) = (listen(port)?, listen(control_port)?);
    loop {
        let (stream, is_site) = tokio::select! {
            Ok((stream, _)) = site.accept() => (stream, true),
            Ok((stream, _)) = controls.accept() => (stream, false),
            // Out of descriptors, for one: it passes.
            else => { tokio::time::sleep(Duration::from_millis(5)).await; continue }
        };
        stream.set_nodelay(true)?;
        let state = state.clone();
        tokio::task::spawn_local(async move {
            let stream = TokioIo::new(stream);
            // Whoever hangs up in the middle has said so; there is nothing to do about it.
            let _ = if is_site {
                let service = service_fn(move |request| serve(state.clone(), request));
                http1::Builder::new()
                    .serve_connection(stream, service)
                    .await
            } else {
                let service = service_fn(move |request| control(state.clone(), request));
                http1::Builder::new()
                    .serve_connection(stream, service)
                    .await
            };
        });
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let &[
        hosts,
        pages,
        links,
        cross,
        latency_ms,
        crawl_delay_s,
        port,
        control_port,
        seed,
    ] = numbers.as_slice()
    else {
        eprintln!(
            "usage: peers-web HOSTS PAGES LINKS CROSS LATENCY_MS CRAWL_DELAY_S PORT CONTROL SEED"
        );
        std::process::exit(2);
    };
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is later than 1970");
    let state = Rc::new(RefCell::new(State {
        web: Web::new(
            hosts as u16,
            pages as u32,
            links as u32,
            cross as u32,
            port as u16,
            seed,
        ),
        latency: Duration::from_millis(latency_ms),
        crawl_delay_s,
        began: (std::time::Instant::now(), since_1970.as_micros() as u64),
        log: Vec::new(),
    }));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let served = LocalSet::new().block_on(&runtime, run(state, port as u16, control_port as u16));
    if let Err(error) = served {
        eprintln!("peers-web: {error}");
        std::process::exit(1);
    }
}
