//! Tells the database how the proxies stand, where anything changed.

use std::{sync::Arc, time::Duration};

use super::context::Context;
use crate::{
    fetch::ProxyReport,
    frontier::{FrontierError, ProxyRow},
};

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Told(Vec<ProxyReport>);

impl Told {
    /// Tells it, if it is not the same. A rest that goes on is.
    pub(super) async fn tell(&mut self, cx: &Arc<Context>) -> Result<(), FrontierError> {
        let reports = cx.fetcher.proxies();
        let known: Vec<ProxyReport> = reports.iter().map(lasting).collect();
        if known == self.0 {
            return Ok(());
        }
        let rows: Vec<ProxyRow> = reports.iter().map(row).collect();
        cx.frontier
            .report_proxies(cx.licence.worker(), &rows)
            .await?;
        self.0 = known;
        Ok(())
    }
}

/// The report without what changes by itself.
fn lasting(report: &ProxyReport) -> ProxyReport {
    ProxyReport {
        rests_for: report.rests_for.map(|_| Duration::ZERO),
        ..report.clone()
    }
}

fn row(report: &ProxyReport) -> ProxyRow {
    ProxyRow {
        label: crate::pages::clean(&report.label, 200),
        state: report.state.as_str(),
        failures: report.failures,
        rests_for: report.rests_for,
        last_error: report
            .last_error
            .as_deref()
            .map(|error| crate::pages::clean(error, 1_000)),
        requests: report.requests,
        failed: report.failed,
        bytes: report.bytes,
    }
}
