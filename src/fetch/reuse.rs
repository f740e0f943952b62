//! Tells whether a request had to connect or took a kept connection.
//!
//! A server may close an idle connection at the very moment we send the next request on it. hyper
//! sends again only what it has not yet written, so the rest is for us to see: a request that failed
//! without an answer, on a connection that was not made for it, may be sent once more (RFC 9112
//! §9.3.1). On a new connection the same failure is the server's answer.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static CONNECTED: Arc<AtomicBool>;
}

/// Watches one request.
#[derive(Debug, Default)]
pub(super) struct Fresh(Arc<AtomicBool>);

impl Fresh {
    /// Runs the request; a connection begun for it is noted.
    pub(super) fn watch<F: Future>(&self, request: F) -> impl Future<Output = F::Output> {
        CONNECTED.scope(Arc::clone(&self.0), request)
    }

    /// Whether a connection was begun for the request.
    pub(super) fn connected(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A layer around reqwest's connector that notes each call of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkFresh;

impl<S> Layer<S> for MarkFresh {
    type Service = Marked<S>;

    fn layer(&self, connector: S) -> Marked<S> {
        Marked(connector)
    }
}

/// The connector inside [`MarkFresh`].
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
        let _ = CONNECTED.try_with(|connected| connected.store(true, Ordering::Relaxed));
        self.0.call(target)
    }
}
