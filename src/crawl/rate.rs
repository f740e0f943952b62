//! The rate of the whole crawl: each request waits for its turn in time that this process has taken from the database.

use std::{collections::VecDeque, time::Duration};

use rand::RngExt as _;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    frontier::{Frontier, FrontierError, Stretch},
    politeness::Rate,
};

/// Time that is taken at once: long enough that the row is not asked for more than ten times a second, short enough that processes alternate.
const STRETCH: Duration = Duration::from_millis(100);

/// A stretch is taken so early that its answer is there when the last one ends.
const AHEAD: Duration = Duration::from_millis(50);

/// Asks for turns.
#[derive(Debug)]
pub(super) struct Turns(mpsc::UnboundedSender<Turn>);

/// A request's place in the line; nobody waits for that of one that was made already.
#[derive(Debug)]
pub(super) struct Turn(Option<oneshot::Sender<()>>);

impl Turns {
    pub(super) fn new() -> (Turns, Line) {
        let (ask, line) = mpsc::unbounded_channel();
        (Turns(ask), line)
    }

    /// Waits for this request's turn. Where nobody gives turns any more the crawl is at its end, and it never comes.
    pub(super) async fn next(&self) {
        let (give, turn) = oneshot::channel();
        let _ = self.0.send(Turn(Some(give)));
        if turn.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Takes the turn of a request that could not wait for it: those that come after it wait for so much longer.
    pub(super) fn owe(&self) {
        let _ = self.0.send(Turn(None));
    }
}

impl Turn {
    fn is_given_up(&self) -> bool {
        self.0.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn give(self) {
        if let Some(waiting) = self.0 {
            let _ = waiting.send(());
        }
    }
}

/// Those who wait.
pub(super) type Line = mpsc::UnboundedReceiver<Turn>;

/// Gives turns until told to stop.
pub(super) async fn run(
    frontier: Frontier,
    rate: f64,
    line: Line,
    stop: CancellationToken,
) -> Result<(), FrontierError> {
    let Some(pace) = Rate::new(rate) else {
        return Ok(());
    };
    let mut desk = Desk {
        frontier,
        rate,
        pace,
        line,
        waiting: VecDeque::new(),
    };
    while !stop.is_cancelled() {
        let wait = desk.serve(&stop).await?;
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(wait) => {}
        }
    }
    Ok(())
}

struct Desk {
    frontier: Frontier,
    rate: f64,
    pace: Rate,
    line: Line,
    waiting: VecDeque<Turn>,
}

impl Desk {
    /// Takes a stretch and gives its turns. Answers how long to wait before the next.
    async fn serve(&mut self, stop: &CancellationToken) -> Result<Duration, FrontierError> {
        self.waiting.retain(|turn| !turn.is_given_up());
        if self.waiting.is_empty() {
            tokio::select! {
                () = stop.cancelled() => return Ok(Duration::ZERO),
                turn = self.line.recv() => self.waiting.extend(turn),
            }
        }
        while let Ok(turn) = self.line.try_recv() {
            self.waiting.push_back(turn);
        }
        let each = Duration::from_secs_f64(self.rate.recip());
        let wanted = stretch(self.rate, self.waiting.len());
        let begin = match self.frontier.take_rate(wanted, each, AHEAD).await? {
            Stretch::Taken { begins_in } => Instant::now() + begins_in,
            Stretch::Later { wait } => {
                // Others wait as well: not all at once.
                let jitter = Duration::from_millis(rand::rng().random_range(1..20));
                return Ok(wait.saturating_sub(AHEAD) + jitter);
            }
        };
        let end = begin + each * wanted;
        sleep_until(begin).await;
        for _ in 0..wanted {
            let Some(turn) = self.waiting.pop_front() else {
                break;
            };
            self.pace.wait().await;
            // What is left of a stretch that is over is lost: others' time has begun.
            if Instant::now() > end + each {
                self.waiting.push_front(turn);
                break;
            }
            turn.give();
        }
        Ok(Duration::ZERO)
    }
}

/// Requests of a stretch: as many as wait, and as the rate has in it; at least one.
fn stretch(rate: f64, waiting: usize) -> u32 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a saturating count"
    )]
    let most = (rate * STRETCH.as_secs_f64()) as u32;
    u32::try_from(waiting).unwrap_or(u32::MAX).min(most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_a_tenth_of_a_second_and_at_least_one_request() {
        assert_eq!(stretch(200.0, 64), 20);
        assert_eq!(stretch(200.0, 3), 3);
        assert_eq!(stretch(0.1, 9), 1);
    }
}
