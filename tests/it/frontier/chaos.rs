//! Whole crawls by eight crawlers that die and hang, on few and on many hosts: the invariants hold.

use std::collections::BTreeMap;

use super::crawlers::{Findings, Trial};
use super::web::Delays;

fn assert_held(findings: &Findings) {
    assert_eq!(findings.broken, BTreeMap::new(), "{findings:?}");
    assert!(findings.visits > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_invariants_hold_on_one_host_that_all_share() {
    assert_held(&Trial::new(1, 1_500, Delays::None).run().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_invariants_hold_on_hosts_with_and_without_a_delay() {
    let mut trial = Trial::new(40, 1_600, Delays::Mixed);
    trial.slow = true;
    let findings = trial.run().await;
    assert_held(&findings);
    assert!(
        findings.least_gap.is_some(),
        "no host was fetched twice: {findings:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_invariants_hold_where_robots_txt_names_the_delays() {
    let mut trial = Trial::new(40, 800, Delays::Mixed);
    trial.robots = true;
    let findings = trial.run().await;
    assert_held(&findings);
    assert!(
        findings.least_gap.is_some(),
        "no host was fetched twice: {findings:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_invariants_hold_on_three_thousand_small_hosts() {
    assert_held(&Trial::new(3_000, 6_000, Delays::None).run().await);
}
