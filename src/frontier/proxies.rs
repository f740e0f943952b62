//! How the proxies of a process stand, for those who look.

use std::time::Duration;

use super::{
    Frontier, Result, WorkerId,
    tries::{once, run},
};

/// A row of table `proxies`; the columns are documented there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the columns are documented once, in migrations/0010_proxies.sql"
)]
pub struct ProxyRow {
    pub label: String,
    /// `healthy`, `resting` or `probing`.
    pub state: &'static str,
    pub failures: u32,
    /// From now; becomes `rests_until` by the database's clock. Only of one that is resting.
    pub rests_for: Option<Duration>,
    pub last_error: Option<String>,
    pub requests: u64,
    pub failed: u64,
    pub bytes: u64,
}

impl Frontier {
    /// Says how the proxies stand, each label once. Nothing depends on it.
    pub async fn report_proxies(&self, worker: WorkerId, rows: &[ProxyRow]) -> Result {
        if rows.is_empty() {
            return Ok(());
        }
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let labels: Vec<String> = rows.iter().map(|row| row.label.clone()).collect();
        let states: Vec<String> = rows.iter().map(|row| row.state.to_owned()).collect();
        let failures: Vec<i32> = rows
            .iter()
            .map(|row| i32::try_from(row.failures).unwrap_or(i32::MAX))
            .collect();
        let rests: Vec<Option<i64>> = rows
            .iter()
            .map(|row| {
                row.rests_for
                    .map(|rest| i64::try_from(rest.as_millis()).unwrap_or(i64::MAX))
            })
            .collect();
        let errors: Vec<Option<String>> = rows.iter().map(|row| row.last_error.clone()).collect();
        let requests: Vec<i64> = rows.iter().map(|row| count(row.requests)).collect();
        let failed: Vec<i64> = rows.iter().map(|row| count(row.failed)).collect();
        let bytes: Vec<i64> = rows.iter().map(|row| count(row.bytes)).collect();
        run!(self, "report_proxies", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/report_proxies.sql",
                worker.0,
                &labels,
                &states,
                &failures,
                &rests as &[Option<i64>],
                &errors as &[Option<String>],
                &requests,
                &failed,
                &bytes
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }
}
