//! What an answer, or the lack of one, says of the proxy that was to bring it.

use std::sync::Arc;

use super::{Answer, Fetcher};
use crate::fetch::cookies;
use crate::fetch::error::{FetchError, Stage};
use crate::fetch::proxy::{Blame, Pass};

impl Fetcher {
    /// Draws the lesson about the proxy.
    pub(super) async fn settle(
        &self,
        pass: Pass,
        host: &str,
        asked: Result<Answer, FetchError>,
    ) -> Result<Answer, FetchError> {
        let error = match asked {
            Ok(answer) => {
                pass.reached(answer.wire_bytes);
                return Ok(answer);
            }
            Err(error) => error,
        };
        match &error {
            FetchError::Proxy { reason, .. } => pass.failed(reason),
            FetchError::Tunnel {
                blame: Blame::Unclear,
                ..
            } => {
                let upstream = &self.inner.proxied[pass.index].0;
                if !upstream.is_there().await {
                    return Err(fail(pass, "it cannot be reached".to_owned()));
                }
                return Err(doubt(pass, host, error));
            }
            FetchError::Tunnel {
                blame: Blame::Claimed,
                ..
            } => return Err(doubt(pass, host, error)),
            // Silence and broken connections may be anybody's.
            FetchError::Reset(_) | FetchError::ConnectTimeout(_) => {
                return Err(doubt(pass, host, error));
            }
            FetchError::IdleTimeout { stage, .. } | FetchError::TotalTimeout { stage, .. }
                if *stage == Stage::Headers =>
            {
                return Err(doubt(pass, host, error));
            }
            FetchError::Tunnel { .. }
            | FetchError::Tls { .. }
            | FetchError::IdleTimeout { .. }
            | FetchError::Incomplete(_)
            | FetchError::Malformed(_) => pass.reached(0),
            _ => {}
        }
        Err(error)
    }
}

/// Counts a failure of the proxy.
fn fail(pass: Pass, reason: String) -> FetchError {
    let label = Arc::clone(pass.label());
    pass.failed(&reason);
    FetchError::Proxy { label, reason }
}

/// Counts a host that was not reached, perhaps by the proxy's fault: one of several sites in a row is.
fn doubt(pass: Pass, host: &str, error: FetchError) -> FetchError {
    match pass.doubted(cookies::site(host)) {
        Some(pass) => fail(
            pass,
            format!("it reached none of several sites; of the last: {error}"),
        ),
        None => error,
    }
}
