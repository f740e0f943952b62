//! Reads a body from the wire, by our own clock and up to our own cap.
//!
//! reqwest has one error for both of its timeouts, so the waiting is done here. A body that is cut
//! short by its server is an error; one that we cut ourselves is a result, with the reason.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::decode;
use super::error::{self, FetchError, Stage};
use super::settings::{BodyRoom, FetchOptions, FetchSettings, HopLeave};
use crate::exchange::Truncated;

/// What is reserved for a body before it comes; `Content-Length` may claim anything.
const FIRST_BYTES: usize = 16 * 1024;

/// A body that is larger waits for room, and if it is coded, it is looked at whether more of it is needed: a look costs about a millisecond,
/// which small pages are spared.
const LARGE_BYTES: usize = 256 * 1024;

/// What is read of a redirect's body, and for how long: servers send a line or two, at once.
const SKIMMED_BYTES: usize = 64 * 1024;
const SKIMMED_FOR: Duration = Duration::from_secs(2);

/// How long a fetch may still take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    ends: Instant,
    /// From start to `ends`.
    total: Duration,
    /// The longest silence.
    pub(super) idle: Duration,
    /// The longest time to a connection.
    pub(super) connect: Duration,
    /// Ends before `total_timeout` would: by no fault of the server.
    hurried: bool,
}

impl Deadline {
    /// A deadline that starts now.
    pub(super) fn start(settings: &FetchSettings, options: &FetchOptions) -> Deadline {
        let total = options.budget.min(settings.total_timeout);
        Deadline {
            ends: Instant::now() + total,
            total,
            idle: settings.idle_timeout,
            connect: settings.connect_timeout,
            hurried: options.budget < settings.total_timeout,
        }
    }

    /// The error of waiting until `moment` for nothing, the earlier of silence's end and `ends`.
    fn missed(&self, moment: Instant, stage: Stage) -> FetchError {
        if moment >= self.ends {
            FetchError::TotalTimeout {
                after: self.total,
                stage,
            }
        } else {
            FetchError::IdleTimeout {
                after: self.idle,
                stage,
            }
        }
    }

    /// Keeps a host's delay before a further request to it.
    ///
    /// # Errors
    /// [`FetchError::TotalTimeout`], at once, if the time would be over by then: no fault of the
    /// host, which has just answered.
    pub(super) async fn pause(&self, pause: Duration) -> Result<(), FetchError> {
        if pause.is_zero() {
            return Ok(());
        }
        match Instant::now().checked_add(pause) {
            Some(moment) if moment < self.ends => {
                sleep_until(moment).await;
                Ok(())
            }
            _ => Err(FetchError::TotalTimeout {
                after: self.total,
                stage: Stage::Pause,
            }),
        }
    }

    /// Waits for leave to make a further request.
    ///
    /// # Errors
    /// [`FetchError::TotalTimeout`], when the time is over by then.
    pub(super) async fn leave(&self, leave: &HopLeave) -> Result<(), FetchError> {
        timeout_at(self.ends, leave.wait())
            .await
            .map_err(|_| FetchError::TotalTimeout {
                after: self.total,
                stage: Stage::Pause,
            })
    }

    /// Waits for somebody else while the body comes; none at the end of the time.
    pub(super) async fn within<T>(&self, other: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.ends, other).await.ok()
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    /// The error at the end of the time, where the hurry was ours: what came by then does not count.
    pub(super) fn in_a_hurry(&self) -> Option<FetchError> {
        self.hurried.then(|| self.missed(self.ends, Stage::Body))
    }

    /// The error of a large body that other large ones left no room for until the end of the time.
    fn no_room(&self) -> FetchError {
        FetchError::TotalTimeout {
            after: self.total,
            stage: Stage::Room,
        }
    }

    /// The error of a body that was still coming at the end of the time.
    pub(super) fn body_cut(&self) -> FetchError {
        FetchError::TotalTimeout {
            after: self.total,
            stage: Stage::Body,
        }
    }

    /// Waits for the headers: a connection may take its time, then silence counts.
    ///
    /// # Errors
    /// [`FetchError::IdleTimeout`] or [`FetchError::TotalTimeout`].
    pub(super) async fn headers<T>(
        &self,
        answer: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        let moment = self.ends.min(Instant::now() + self.connect + self.idle);
        timeout_at(moment, answer)
            .await
            .map_err(|_| self.missed(moment, Stage::Headers))
    }
}

/// A payload as received.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) bytes: Bytes,
    pub(super) truncated: Option<Truncated>,
}

/// What came of waiting for the next piece.
pub(super) enum Step {
    /// Some bytes.
    Chunk(Bytes),
    /// The end of the payload.
    End,
    /// The end of the time.
    Late,
}

/// Waits for the next piece.
///
/// # Errors
/// [`FetchError::IdleTimeout`] after a silence; [`FetchError::Incomplete`] and [`FetchError::Malformed`] as the server deserves.
pub(super) async fn step(
    response: &mut reqwest::Response,
    deadline: &Deadline,
) -> Result<Step, FetchError> {
    let moment = deadline.ends.min(Instant::now() + deadline.idle);
    match timeout_at(moment, response.chunk()).await {
        Ok(Ok(Some(chunk))) => Ok(Step::Chunk(chunk)),
        Ok(Ok(None)) => Ok(Step::End),
        Ok(Err(error)) => Err(error::in_body(error)),
        Err(_) if moment < deadline.ends => Err(deadline.missed(moment, Stage::Body)),
        Err(_) => Ok(Step::Late),
    }
}

/// The first bytes of a payload.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) bytes: BytesMut,
    /// There are no more.
    pub(super) ended: bool,
}

/// Reads the first `enough` bytes, or some more; fewer where there are no more, or not in time.
///
/// # Errors
/// As [`step`].
pub(super) async fn head(
    response: &mut reqwest::Response,
    enough: usize,
    deadline: &Deadline,
) -> Result<Head, FetchError> {
    let mut head = Head::default();
    while head.bytes.len() < enough {
        match step(response, deadline).await? {
            Step::Chunk(chunk) => head.bytes.extend_from_slice(&chunk),
            Step::End => {
                head.ended = true;
                break;
            }
            // The next step says so again.
            Step::Late => break,
        }
    }
    Ok(head)
}

/// What is done once for a body that turns out to be large.
pub(super) struct Large<'a> {
    /// Leave to hold so much more in memory.
    pub(super) room: &'a BodyRoom,
    /// Decides whether more of it is needed.
    pub(super) headers: &'a HeaderMap,
}

/// Reads the payload behind its head, which may be empty, to its end, to `cap` bytes or to the end of the time.
///
/// # Errors
/// [`FetchError::IdleTimeout`] after a silence; [`FetchError::TotalTimeout`] if the time was cut
/// short by the caller; [`FetchError::Incomplete`] and [`FetchError::Malformed`] as the server
/// deserves.
pub(super) async fn read(
    response: &mut reqwest::Response,
    head: Head,
    cap: usize,
    deadline: &Deadline,
    mut large: Option<Large<'_>>,
) -> Result<Wire, FetchError> {
    let announced = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok());
    let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0).min(cap).min(FIRST_BYTES));
    let mut next = (!head.bytes.is_empty()).then(|| head.bytes.freeze());
    loop {
        let chunk = match next.take() {
            Some(chunk) => chunk,
            None if head.ended => break,
            None => match step(response, deadline).await? {
                Step::Chunk(chunk) => chunk,
                Step::End => break,
                Step::Late => return late(bytes, deadline),
            },
        };
        let room = cap - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok(Wire {
                bytes: bytes.freeze(),
                truncated: Some(Truncated::Length),
            });
        }
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LARGE_BYTES
            && let Some(large) = large.take()
        {
            let here = Bytes::copy_from_slice(&bytes);
            if decode::is_enough(large.headers, here, cap).await {
                return Ok(Wire {
                    bytes: bytes.freeze(),
                    truncated: Some(Truncated::Length),
                });
            }
            // Undone it may be as large as may be.
            let is_coded = large.headers.contains_key(CONTENT_ENCODING);
            let most = announced.filter(|_| !is_coded).unwrap_or(cap).min(cap);
            // Not cut: other bodies took the time, and no fault is the server's.
            timeout_at(deadline.ends, large.room.wait(most))
                .await
                .map_err(|_| deadline.no_room())?;
        }
    }
    Ok(Wire {
        bytes: bytes.freeze(),
        truncated: None,
    })
}

/// The time is over: what is here is the head of the body, unless the hurry was ours.
fn late(bytes: BytesMut, deadline: &Deadline) -> Result<Wire, FetchError> {
    if deadline.hurried {
        return Err(deadline.missed(deadline.ends, Stage::Body));
    }
    Ok(Wire {
        bytes: bytes.freeze(),
        truncated: Some(Truncated::Time),
    })
}

/// Reads the payload of a redirect, which says nothing that its header does not: a small one to its end, so that the connection can be
/// used again, and of any other only the head. It is cut, and no error, whatever becomes of it.
pub(super) async fn skim(
    response: &mut reqwest::Response,
    cap: usize,
    deadline: &Deadline,
) -> Wire {
    let brief = Deadline {
        ends: deadline.ends.min(Instant::now() + SKIMMED_FOR),
        // What is late is cut.
        hurried: false,
        idle: SKIMMED_FOR.max(deadline.idle),
        ..*deadline
    };
    match read(
        response,
        Head::default(),
        cap.min(SKIMMED_BYTES),
        &brief,
        None,
    )
    .await
    {
        Ok(wire) => wire,
        Err(_) => Wire {
            truncated: Some(Truncated::Disconnect),
            ..Wire::default()
        },
    }
}
