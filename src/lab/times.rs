//! Percentiles, written once.

use std::time::Duration;

/// Spans that were measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn push(&mut self, span: Duration) {
        self.0.push(span);
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The smallest span that at least `percent` % of all do not exceed (nearest rank); zero where there is none.
    pub(super) fn percentile(&self, percent: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn p50(&self) -> Duration {
        self.percentile(50.0)
    }

    pub(super) fn p99(&self) -> Duration {
        self.percentile(99.0)
    }
}

impl Extend<Times> for Times {
    fn extend<I: IntoIterator<Item = Times>>(&mut self, others: I) {
        for other in others {
            self.0.extend(other.0);
        }
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(spans: I) -> Times {
        Times(spans.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(spans: impl IntoIterator<Item = u64>) -> Times {
        spans.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let hundred = ms((1..=100).rev());
        assert_eq!(hundred.p50(), Duration::from_millis(50));
        assert_eq!(hundred.p99(), Duration::from_millis(99));
        assert_eq!(hundred.percentile(100.0), Duration::from_millis(100));
        assert_eq!(ms([7]).p99(), Duration::from_millis(7));
        assert_eq!(ms([7, 9]).p50(), Duration::from_millis(7));
        assert_eq!(ms([]).p50(), Duration::ZERO);
    }
}
