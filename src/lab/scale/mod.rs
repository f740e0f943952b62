//! Section e: size. Workers, tasks, hosts, an open snapshot, and how work is learnt of.
//!
//! The schema is that of a crawl, and every statement the frontier's own: claim, park, finish with a page row a visit, release. Only the
//! filling of the tables is not, since ten million links would take longer to find than to measure.

mod crowd;
mod done;
mod drive;
mod load;
mod settings;
mod sizes;
mod snapshot;
mod wake;

use std::time::Duration;

use super::report::SectionReport;
use super::rules::Facts;
use super::session::Session;
use super::{Lab, Result, Section};
use crate::frontier::FrontierSettings;

pub(super) use load::empty_crawl;
pub use settings::{Dataset, ScaleSettings};

/// The goals of the frontier (docs/BENCHMARKS.md): a claim's 99th percentile, and how much slower size or a snapshot may make its median.
const GOAL_P99: Duration = Duration::from_millis(20);
const GOAL_RATIO: f64 = 2.0;

pub(super) async fn run(lab: &Lab, facts: &mut Facts) -> Result<SectionReport> {
    let mut report = SectionReport::new(
        Section::E,
        "Workers, sizes, an open snapshot, wake-ups",
        "the schema of a crawl and the frontier's statements; wake-ups: one raw table",
    );
    crowd::run(lab, facts, &mut report).await?;
    sizes::run(lab, facts, &mut report).await?;
    done::run(lab, facts, &mut report).await?;
    snapshot::run(lab, facts, &mut report).await?;
    wake::run(lab, facts, &mut report).await?;
    let mut session = lab.session().await?;
    empty_crawl(&mut session).await?;
    session.close().await;
    Ok(report)
}

/// Settings of a crawl that obeys no robots.txt: nobody fetches one here, and a host whose file is due is held.
fn frontier(delay: Duration) -> FrontierSettings {
    FrontierSettings {
        delay,
        obey_robots: false,
        patience: Duration::from_secs(30),
        ..FrontierSettings::default()
    }
}

async fn bytes(session: &mut Session, relation: &str) -> Result<u64> {
    let bytes = session
        .number(format!("select pg_relation_size('{relation}')"))
        .await?;
    Ok(bytes.unsigned_abs())
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}
