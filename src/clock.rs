//! Now, as a value: a clock that only goes forward, also while the machine sleeps.
//!
//! Leases and deadlines are compared with it. A monotonic clock that stops during sleep would let a worker wake up and
//! fetch on a claim that others took over long ago, and the wall clock may be set back.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of this machine's uptime, in nanoseconds since an unnamed beginning.
///
/// `CLOCK_BOOTTIME` on Linux, `CLOCK_MONOTONIC` on other Unixes (on macOS it counts during sleep as well). Comparable
/// within one boot of one machine only; it must not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Boottime(u64);

impl Boottime {
    /// The clock's beginning: earlier than whatever it has told.
    pub const BEGINNING: Boottime = Boottime(0);

    /// This moment.
    pub fn now() -> Boottime {
        Boottime(nanos(read()))
    }

    /// The time since this moment; zero if it lies ahead.
    pub fn elapsed(self) -> Duration {
        Boottime::now() - self
    }

    /// The moment so much earlier; the clock's beginning where there is none.
    pub fn saturating_sub(self, span: Duration) -> Boottime {
        Boottime(self.0.saturating_sub(nanos(span)))
    }
}

/// The year that the wall clock says, in UTC; a date is judged by it, and nothing that has to be exact.
pub fn year() -> u16 {
    use chrono::Datelike as _;
    u16::try_from(chrono::Utc::now().year()).unwrap_or(0)
}

/// Ends at the clock's last moment, in the year 584, instead of overflowing.
impl Add<Duration> for Boottime {
    type Output = Boottime;

    fn add(self, span: Duration) -> Boottime {
        Boottime(self.0.saturating_add(nanos(span)))
    }
}

/// The time from the right moment to the left one; zero if the right one is later.
impl Sub for Boottime {
    type Output = Duration;

    fn sub(self, earlier: Boottime) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(unix)]
fn read() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(not(unix))]
fn read() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;

    static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGINNING.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_moment_is_never_smaller() {
        let first = Boottime::now();
        assert!(Boottime::now() >= first);
    }

    #[test]
    fn differences_are_spans_and_never_negative() {
        let start = Boottime(5_000_000_000);
        let later = start + Duration::from_secs(2);
        assert_eq!(later - start, Duration::from_secs(2));
        assert_eq!(start - later, Duration::ZERO);
        assert_eq!(start.saturating_sub(Duration::from_secs(9)), Boottime(0));
        assert_eq!(start + Duration::MAX, Boottime(u64::MAX));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_never_lags_behind_the_clock_that_stops_during_sleep() {
        let stops = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let stops = Duration::new(
            stops.tv_sec.try_into().unwrap(),
            stops.tv_nsec.try_into().unwrap(),
        );
        assert!(Boottime::now() >= Boottime(nanos(stops)));
    }
}
