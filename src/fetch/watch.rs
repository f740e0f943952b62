//! Goes along with one request through reqwest's connector and resolver, which know nothing of it.
//!
//! It tells the resolver what is asked for, and where it must be asked; and it sees which addresses
//! were found, and whether the request had to connect or took a kept connection. A server may close
//! an idle connection at the very moment we send the next request on it. hyper sends again only what
//! it has not yet written, so the rest is for us to see: a request that failed without an answer, on
//! a connection that was not made for it, may be sent once more (RFC 9112 §9.3.1). On a new
//! connection the same failure is the server's answer.

use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;
use url::Url;

use super::address;

tokio::task_local! {
    static REQUEST: Watch;
}

/// Who chose the URL of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The crawl: it is of the scope, and the operator's words about its host count.
    Ours,
    /// Another host's robots.txt, whose redirect leads there: nothing is said that the operator meant for that host, and that a seed
    /// names it opens no private address. Else whoever has a robots.txt could have us ask with an operator's login whatever they like.
    Strangers,
}

/// Watches one request; clones watch the same.
#[derive(Clone, Debug)]
pub(super) struct Watch(Arc<Seen>);

#[derive(Debug)]
struct Seen {
    port: Option<u16>,
    /// A host, and the address at which it is to be asked.
    pinned: Option<(String, IpAddr)>,
    whose: Whose,
    connected: AtomicBool,
    found: Mutex<Vec<IpAddr>>,
}

impl Watch {
    /// A watch of a request for this URL; `at` is the only address that may be asked, if it is
    /// given and the host is a name.
    pub(super) fn of(url: &Url, at: Option<IpAddr>, whose: Whose) -> Watch {
        let host = || url.host_str().unwrap_or_default().to_owned();
        Watch(Arc::new(Seen {
            port: url.port_or_known_default(),
            pinned: at.map(|at| (host(), at)),
            whose,
            connected: AtomicBool::new(false),
            found: Mutex::new(address::literal(url).into_iter().collect()),
        }))
    }

    /// The request that the caller is a part of; none outside of one.
    pub(super) fn current() -> Option<Watch> {
        REQUEST.try_with(Watch::clone).ok()
    }

    /// Runs the request; a connection begun for it is noted.
    pub(super) fn along<F: Future>(&self, request: F) -> impl Future<Output = F::Output> {
        REQUEST.scope(self.clone(), request)
    }

    /// Whether a connection was begun for the request.
    pub(super) fn connected(&self) -> bool {
        self.0.connected.load(Ordering::Relaxed)
    }

    /// Who chose where the request goes.
    pub(super) fn whose(&self) -> Whose {
        self.0.whose
    }

    pub(super) fn port(&self) -> Option<u16> {
        self.0.port
    }

    /// Where this host must be asked.
    pub(super) fn pinned(&self, host: &str) -> Option<IpAddr> {
        let (pinned, ip) = self.0.pinned.as_ref()?;
        (pinned == host).then_some(*ip)
    }

    /// Notes where the host may be asked.
    pub(super) fn note(&self, found: &[IpAddr]) {
        *self.0.found.lock().unwrap_or_else(PoisonError::into_inner) = found.to_vec();
    }

    /// The address that the request went to, where it could go to one only.
    pub(super) fn address(&self) -> Option<IpAddr> {
        match self.0.found.lock().unwrap_or_else(PoisonError::into_inner)[..] {
            [ip] => Some(ip),
            _ => None,
        }
    }
}

/// A layer around reqwest's connector that notes each call of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkConnecting;

impl<S> Layer<S> for MarkConnecting {
    type Service = Marked<S>;

    fn layer(&self, connector: S) -> Marked<S> {
        Marked(connector)
    }
}

/// The connector inside [`MarkConnecting`].
#[derive(Clone, Debug)]
pub(super) struct Marked<S>(S);

impl<S: Service<R>, R> Service<R> for Marked<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> S::Future {
        // Outside of a watched request there is nobody to tell.
        let _ = REQUEST.try_with(|watch| watch.0.connected.store(true, Ordering::Relaxed));
        self.0.call(target)
    }
}
