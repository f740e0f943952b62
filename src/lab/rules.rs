//! The field's rules of thumb, beside what a run measured about them.

use super::report::{RuleOfThumb, counted, grouped, rounded};

/// What the sections tell, for those rules that need more than one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Batch size and tasks a second, one by one.
    pub(super) one_by_one: Option<(u32, f64)>,
    /// The same, of the best batch size.
    pub(super) batched: Option<(u32, f64)>,
    /// Tasks claimed, visited and finished a second through the frontier, the most of any number of workers.
    pub(super) frontier: Option<f64>,
    /// Duplicates of SKIP LOCKED.
    pub(super) duplicates: Option<u64>,
    /// Claim time without the partial index to that with it.
    pub(super) partial_index: Option<f64>,
    /// Tasks of the smallest and the largest frontier, and the ratio of their median claims.
    pub(super) size: Option<(u64, u64, f64)>,
    /// Tasks done at least and at most beside the same open ones, and the ratio of the median claims.
    pub(super) done: Option<(u64, u64, f64)>,
    /// The ratio of the median claims with a snapshot held and without.
    pub(super) snapshot: Option<f64>,
    /// Least and most workers, and tasks a second of both.
    pub(super) workers: Option<((usize, f64), (usize, f64))>,
    /// Median wake-up by NOTIFY and by the quickest polling in ms, and the commits a second with a NOTIFY in each to those without.
    pub(super) wake: Option<(f64, f64, f64)>,
}

/// The order of magnitude of a rate, in words.
pub(super) fn magnitude(rate: f64) -> &'static str {
    match rate {
        rate if rate < 10.0 => "single figures a second",
        rate if rate < 100.0 => "tens a second",
        rate if rate < 1_000.0 => "hundreds a second",
        rate if rate < 10_000.0 => "thousands a second",
        rate if rate < 100_000.0 => "tens of thousands a second",
        _ => "hundreds of thousands a second",
    }
}

/// The rules that the run has figures for.
pub(super) fn of_thumb(facts: &Facts) -> Vec<RuleOfThumb> {
    let mut rules = Vec::new();
    let mut rule = |rule, measured| rules.push(RuleOfThumb { rule, measured });
    if let (Some((one, slow)), Some((batch, fast))) = (facts.one_by_one, facts.batched) {
        rule(
            "a Postgres queue does hundreds to thousands a second",
            format!(
                "{} in batches of {one}: {} tasks/s; {} in batches of {batch}: {} tasks/s. The rule counts {}",
                magnitude(slow),
                rounded(slow),
                magnitude(fast),
                rounded(fast),
                if fast >= 10_000.0 && slow < 10_000.0 {
                    "transactions, not tasks"
                } else if fast < 10_000.0 {
                    "what this machine does, too"
                } else {
                    "too low on this machine"
                }
            ),
        );
    }
    let best = facts
        .frontier
        .map(|rate| (rate, "claimed and finished with its page row"))
        .or(facts
            .batched
            .map(|(_, rate)| (rate, "claimed and finished")));
    if let Some((rate, what)) = best {
        let hundreds = rate / 500.0;
        rule(
            "from hundreds a second on take Kafka or Redis",
            format!(
                "{} tasks/s {what}, {}x five hundred a second{}",
                rounded(rate),
                rounded(hundreds),
                if hundreds >= 2.0 {
                    "; at hundreds a second the table is not the limit"
                } else {
                    "; on this machine the rule is not far off"
                }
            ),
        );
    }
    if let Some(duplicates) = facts.duplicates {
        rule(
            "SKIP LOCKED hands nothing out twice",
            match duplicates {
                0 => "no duplicate in this run".to_owned(),
                n => format!("{} duplicates in this run", grouped(n)),
            },
        );
    }
    if let Some(ratio) = facts.partial_index {
        rule(
            "index what is open, not what is done",
            format!(
                "without the partial index a claim takes {}x as long",
                rounded(ratio)
            ),
        );
    }
    if let Some(((few, slow), (many, fast))) = facts.workers {
        rule(
            "SKIP LOCKED breaks down with many workers",
            format!(
                "with {} {} tasks/s, with {many} {}: {}x",
                counted(few as u64, "worker"),
                rounded(slow),
                rounded(fast),
                rounded(fast / slow)
            ),
        );
    }
    if let Some((small, large, ratio)) = facts.size {
        rule(
            "a queue table gets slow as it grows",
            format!(
                "the median claim at {} tasks takes {}x that at {}",
                grouped(large),
                rounded(ratio),
                grouped(small)
            ),
        );
    }
    if let Some((few, many, ratio)) = facts.done {
        rule(
            "delete what is done, or the queue gets slow",
            format!(
                "with {} tasks done beside the open ones the median claim takes {}x that with {}",
                grouped(many),
                rounded(ratio),
                grouped(few)
            ),
        );
    }
    if let Some(ratio) = facts.snapshot {
        rule(
            "one long transaction ruins a Postgres queue",
            format!(
                "with a snapshot held open the median claim takes {}x as long as without",
                rounded(ratio)
            ),
        );
    }
    if let Some((notify, poll, commits)) = facts.wake {
        rule(
            "use LISTEN/NOTIFY and not polling",
            format!(
                "a wake-up arrives after {} ms by NOTIFY, {} ms by the quickest polling tried; a NOTIFY in every transaction leaves {}x of the commits",
                rounded(notify),
                rounded(poll),
                rounded(commits)
            ),
        );
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_what_was_measured_and_is_left_out_where_nothing_was() {
        assert!(of_thumb(&Facts::default()).is_empty());
        let slow = Facts {
            one_by_one: Some((1, 300.0)),
            batched: Some((100, 900.0)),
            ..Facts::default()
        };
        let slow = of_thumb(&slow);
        assert!(
            slow[0]
                .measured
                .contains("hundreds a second in batches of 1"),
            "{slow:?}"
        );
        assert!(slow[1].measured.contains("not far off"), "{slow:?}");
        let fast = Facts {
            one_by_one: Some((1, 3_000.0)),
            batched: Some((100, 60_000.0)),
            ..Facts::default()
        };
        let fast = of_thumb(&fast);
        assert!(
            fast[0].measured.contains("transactions, not tasks"),
            "{fast:?}"
        );
        assert!(
            fast[1].measured.contains("the table is not the limit"),
            "{fast:?}"
        );
    }

    #[test]
    fn a_rate_has_its_order_of_magnitude() {
        assert_eq!(magnitude(9.9), "single figures a second");
        assert_eq!(magnitude(999.0), "hundreds a second");
        assert_eq!(magnitude(1_000.0), "thousands a second");
        assert_eq!(magnitude(54_000.0), "tens of thousands a second");
    }
}
