//! Requests a second of one process.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// A burst is at most what a tenth of a second brings: above that, the timer's own coarseness
/// (1 ms) would keep a high rate from being reached.
const BURST_SECONDS: f64 = 0.1;

/// A steady rate, first come first served.
#[derive(Debug)]
pub struct Rate {
    limiter: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
    clock: TokioClock,
    /// Held while waiting: only the first in line sleeps, and none overtakes it.
    line: Mutex<()>,
}

impl Rate {
    /// `rate` requests a second; none unless it is above zero and not absurdly small.
    pub fn new(rate: f64) -> Option<Rate> {
        let period = Duration::try_from_secs_f64(rate.recip()).ok()?;
        // Above a billion a second there is no period left, and nothing to limit.
        let quota = Quota::with_period(period)?;
        let burst = (rate * BURST_SECONDS).clamp(1.0, f64::from(u32::MAX));
        // In range by the clamp, so the cast keeps its value's whole part.
        let burst = NonZeroU32::new(burst as u32).unwrap_or(NonZeroU32::MIN);
        let clock = TokioClock {
            origin: Instant::now(),
        };
        let limiter = RateLimiter::direct_with_clock(quota.allow_burst(burst), clock);
        Some(Rate {
            limiter,
            clock,
            line: Mutex::new(()),
        })
    }

    /// Waits for the next request's turn.
    pub async fn wait(&self) {
        let _turn = self.line.lock().await;
        while let Err(early) = self.limiter.check() {
            sleep(early.wait_time_from(self.clock.now())).await;
        }
    }
}

/// tokio's clock, which stands still when a test pauses it.
#[derive(Clone, Copy, Debug)]
struct TokioClock {
    origin: Instant,
}

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}
