//! Serves the demo's site on loopback and counts who asks for what.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{Response, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::site::{HOSTS, NEIGHBOUR, Owed, Site};

/// The ports of `seeds/demo.txt`, and the neighbour's.
const PORTS: [u16; HOSTS] = [8601, 8602, 8603, 8604];

/// The site while it is served; ends when it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) site: Arc<Site>,
    /// The hosts' addresses without a path.
    pub(super) bases: [String; HOSTS],
    requests: Arc<Requests>,
    stop: CancellationToken,
}

/// How often each path and query of each host was asked for.
type Requests = Mutex<[BTreeMap<String, usize>; HOSTS]>;

/// One host of the site.
#[derive(Debug, Clone)]
struct Host {
    number: usize,
    site: Arc<Site>,
    requests: Arc<Requests>,
}

impl Server {
    /// Starts serving, on the ports of `seeds/demo.txt` if all are free, else on any.
    ///
    /// # Errors
    ///
    /// The system gives no port on 127.0.0.1.
    pub(super) async fn start() -> std::io::Result<Server> {
        let listeners = match listen(PORTS).await {
            Ok(listeners) => listeners,
            Err(_) => listen([0; HOSTS]).await?,
        };
        let mut bases = [const { String::new() }; HOSTS];
        for (base, listener) in bases.iter_mut().zip(&listeners) {
            *base = format!("http://{}", listener.local_addr()?);
        }
        let server = Server {
            site: Arc::new(Site::new(&bases)),
            bases,
            requests: Arc::default(),
            stop: CancellationToken::new(),
        };
        let tasks = TaskTracker::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            let host = Host {
                number,
                site: Arc::clone(&server.site),
                requests: Arc::clone(&server.requests),
            };
            let app = Router::new().fallback(answer).with_state(host);
            let stop = server.stop.clone().cancelled_owned();
            tasks.spawn(async move {
                axum::serve(listener, app)
                    .with_graceful_shutdown(stop)
                    .await
            });
        }
        Ok(server)
    }

    /// Returns the addresses of the hosts that are to be crawled.
    pub(super) fn seeds(&self) -> impl Iterator<Item = &str> {
        self.bases[..NEIGHBOUR].iter().map(String::as_str)
    }

    /// Returns how often each path and query of each host was asked for until now.
    pub(super) fn requests(&self) -> [BTreeMap<String, usize>; HOSTS] {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn listen(ports: [u16; HOSTS]) -> std::io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::with_capacity(HOSTS);
    for port in ports {
        listeners.push(TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?);
    }
    Ok(listeners)
}

async fn answer(State(host): State<Host>, uri: Uri) -> Response<axum::body::Body> {
    let asked = uri.path_and_query().map_or("/", |asked| asked.as_str());
    let path = host.site.spellings[host.number]
        .get(asked)
        .map_or(asked, String::as_str);
    let times = host.count(path);
    let Some(resource) = host.site.hosts[host.number].get(path) else {
        return respond(
            StatusCode::NOT_FOUND.as_u16(),
            &[("content-type", "text/plain".into())],
            b"nothing here".to_vec(),
        );
    };
    if resource.owed == Owed::Busy && times == 1 {
        return respond(
            503,
            &[("retry-after", "1".into())],
            b"counting, come back in a second".to_vec(),
        );
    }
    tokio::time::sleep(resource.wait).await;
    respond(resource.status, &resource.headers, resource.body.clone())
}

impl Host {
    /// Counts a request and returns which one it is, from 1.
    fn count(&self, path: &str) -> usize {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let times = requests[self.number].entry(path.to_owned()).or_default();
        *times += 1;
        *times
    }
}

fn respond(
    status: u16,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
) -> Response<axum::body::Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    response.body(body.into()).unwrap_or_else(|_| {
        let mut broken = Response::new(axum::body::Body::empty());
        *broken.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        broken
    })
}
