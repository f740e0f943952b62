//! In which order the tasks of a host are visited, as a number that a task gets when it is made.
//!
//! A claim takes the tasks of a host by `(priority, id)`, the smaller the sooner. So an order is arithmetic: what a page leads to has a
//! priority that is counted from the page's own, and a number that an operator gave (to a seed, or by `reprioritise`) goes on to all that
//! it leads to.
//!
//! | order | a link | an entry of a sitemap |
//! |---|---|---|
//! | breadth-first | the page's + 1 for each link from a seed | as a link |
//! | depth-first | the page's − 1 | as a link |
//! | seeds | the page's; the n-th seed has its own + n | the sitemap's |
//! | sitemap | the thousand of the page's + 500 + its depth | the thousand + 1 … 440: by priority, then the newest first |
//! | in-links | the page's, less one for each link that is found to it | the sitemap's |
//! | random | the thousand of the page's + 1 … 999 | as a link |
//!
//! Breadth-first is exact within a host: whatever is found late at depth 1 comes before all of depth 2. A seed with priority 100 comes
//! after all that lies within a hundred links of one with 0; where tens of seeds are to be told apart, tens do. In the orders by thousand
//! an operator's priorities count in thousands. What does not fit into 16 bits stays at the end of them. Between hosts there is no order
//! but readiness: who may be asked again, is; so a huge host takes nothing from a small one.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Width of what an operator's priority decides in the orders that need room of their own.
const BAND: i32 = 1_000;

/// Where, in the order of sitemaps, begins what no sitemap names.
const UNNAMED: i32 = 500;

/// Steps of age in the order of sitemaps: half powers of two, in days. The last stands for no date.
const AGES: i32 = 40;

/// The order within a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By depth, then as found.
    #[default]
    BreadthFirst,
    /// What lies deepest first.
    DepthFirst,
    /// All that the first seed leads to, then the second's.
    Seeds,
    /// By what sitemaps say; what they do not name comes behind, breadth-first.
    Sitemap,
    /// What most links lead to first, as far as is known.
    InLinks,
    /// None, but the same each time.
    Random,
}

impl Order {
    /// All of them.
    pub const ALL: [Order; 6] = [
        Order::BreadthFirst,
        Order::DepthFirst,
        Order::Seeds,
        Order::Sitemap,
        Order::InLinks,
        Order::Random,
    ];

    /// The word for it in settings and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Order::BreadthFirst => "breadth-first",
            Order::DepthFirst => "depth-first",
            Order::Seeds => "seeds",
            Order::Sitemap => "sitemap",
            Order::InLinks => "in-links",
            Order::Random => "random",
        }
    }

    /// The priority of what a page links to, or a sitemap names without saying more. `from`: the priority of that page; `depth`: the
    /// link's; `chance`: any number that belongs to the URL.
    ///
    /// What is no link deeper (the target of a redirect, a sitemap of an index) has the priority of what led there.
    pub fn of_link(self, from: i16, depth: u16, chance: u16) -> i16 {
        match self {
            Order::BreadthFirst => from.saturating_add(1),
            Order::DepthFirst => from.saturating_sub(1),
            Order::Seeds | Order::InLinks => from,
            Order::Sitemap => in_band(from, UNNAMED + i32::from(depth).min(BAND - UNNAMED - 1)),
            Order::Random => in_band(from, 1 + i32::from(chance) % (BAND - 1)),
        }
    }

    /// The priority of an entry of a sitemap, whose own is `from`.
    pub fn of_entry(
        self,
        from: i16,
        depth: u16,
        chance: u16,
        said: &Said,
        now: DateTime<Utc>,
    ) -> i16 {
        match self {
            Order::Sitemap => in_band(from, 1 + said.rank(now)),
            other => other.of_link(from, depth, chance),
        }
    }

    /// The priority of the n-th seed (from 0) that was given this one.
    pub fn of_seed(self, given: i16, n: usize) -> i16 {
        match self {
            Order::Seeds => given.saturating_add(i16::try_from(n).unwrap_or(i16::MAX)),
            _ => given,
        }
    }
}

/// What a sitemap says of the importance of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Said {
    /// 0 to 1; none means 0.5, as sitemaps.org has it.
    pub priority: Option<f32>,
    /// When the page was changed.
    pub lastmod: Option<DateTime<Utc>>,
}

impl Said {
    /// 0 to 439: tenths of its priority first, then its age.
    fn rank(&self, now: DateTime<Utc>) -> i32 {
        let tenths = (self.priority.unwrap_or(0.5).clamp(0.0, 1.0) * 10.0).round();
        let age = match self.lastmod {
            None => AGES - 1,
            Some(at) => {
                let days = (now - at).num_seconds().max(0) as f64 / 86_400.0;
                // 2^19 days are 1,400 years.
                (((days + 1.0).log2() * 2.0) as i32).min(AGES - 2)
            }
        };
        (10 - tenths as i32) * AGES + age
    }
}

/// So far into the thousand in which a priority lies.
fn in_band(from: i16, within: i32) -> i16 {
    let band = i32::from(from).div_euclid(BAND) * BAND;
    let value = (band + within).clamp(i16::MIN.into(), i16::MAX.into());
    i16::try_from(value).expect("clamped")
}

/// Why a word is no order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// It names none.
    #[error("order {0:?} is none of breadth-first, depth-first, seeds, sitemap, in-links, random")]
    Unknown(String),
}

impl FromStr for Order {
    type Err = OrderError;

    fn from_str(word: &str) -> Result<Order, OrderError> {
        Order::ALL
            .into_iter()
            .find(|order| order.as_str() == word)
            .ok_or_else(|| OrderError::Unknown(word.to_owned()))
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_late_link_of_a_near_page_comes_before_a_far_one() {
        let order = Order::BreadthFirst;
        let near = order.of_link(0, 1, 7);
        let far = order.of_link(order.of_link(near, 2, 7), 3, 7);
        assert_eq!((near, far), (1, 3));
        // An operator's number goes on to what it leads to.
        assert_eq!(order.of_link(-100, 1, 7), -99);
        assert_eq!(Order::DepthFirst.of_link(-1, 2, 7), -2);
        assert_eq!((Order::Seeds.of_seed(5, 2), order.of_seed(5, 2)), (7, 5));
        assert_eq!(Order::Seeds.of_link(7, 3, 7), 7);
    }

    #[test]
    fn sitemaps_order_by_priority_then_by_age_and_before_what_they_do_not_name() {
        let entry = |priority, days: Option<i64>| {
            let lastmod = days.map(|days| now() - TimeDelta::days(days));
            Order::Sitemap.of_entry(0, 1, 7, &Said { priority, lastmod }, now())
        };
        let in_order = [
            0,
            entry(Some(1.0), Some(-3)),
            entry(Some(1.0), Some(1)),
            entry(Some(1.0), Some(30)),
            entry(Some(1.0), Some(300)),
            entry(Some(1.0), None),
            entry(Some(0.8), Some(0)),
            entry(None, Some(1)),
            entry(None, None),
            entry(Some(0.0), None),
            Order::Sitemap.of_link(0, 1, 7),
            Order::Sitemap.of_link(200, 2, 7),
            Order::Sitemap.of_link(0, u16::MAX, 7),
            Order::Sitemap.of_entry(1_000, 1, 7, &Said::default(), now()),
        ];
        assert!(
            in_order.is_sorted_by(|one, other| one < other),
            "{in_order:?}"
        );
    }

    #[test]
    fn what_does_not_fit_stays_at_the_end() {
        for order in Order::ALL {
            for from in [i16::MIN, -1, 0, 1, i16::MAX] {
                for depth in [0, 1, u16::MAX] {
                    order.of_link(from, depth, u16::MAX);
                    let said = Said {
                        priority: Some(f32::NAN),
                        lastmod: Some(DateTime::<Utc>::MIN_UTC),
                    };
                    order.of_entry(from, depth, 0, &said, now());
                    order.of_seed(from, usize::MAX);
                }
            }
            assert_eq!(order.as_str().parse::<Order>().unwrap(), order);
        }
        assert_eq!(Order::BreadthFirst.of_link(i16::MAX, 1, 0), i16::MAX);
        assert_eq!(Order::DepthFirst.of_link(i16::MIN, 1, 0), i16::MIN);
        let random: Vec<i16> = (0..50)
            .map(|n| Order::Random.of_link(0, 1, n * 97))
            .collect();
        assert!(
            random.iter().all(|one| (1..1_000).contains(one)),
            "{random:?}"
        );
        assert!("nearest".parse::<Order>().is_err());
    }
}
