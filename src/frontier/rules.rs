//! What belongs to the crawl: the rules that its seeds made.

use super::{
    Frontier, Result,
    tries::{once, run},
};

/// A rule of the scope, as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRule {
    /// Grows with each rule; see [`Frontier::rules_after`].
    pub id: i32,
    /// The host, site or prefix, as `scope::Scope::insert` takes it.
    pub rule: String,
    /// The host name that the seed named.
    pub host: String,
}

impl Frontier {
    /// Adds rules (rule, host name) where they are not there yet. `source` is `seed` or `redirect`. False: the crawl's settings have changed,
    /// and rules of another scope may be wanted.
    pub async fn add_rules(&self, rules: &[(String, String)], source: &str) -> Result<bool> {
        if rules.is_empty() {
            return Ok(true);
        }
        let version = self.settings().version;
        let (texts, hosts): (Vec<String>, Vec<String>) = rules.iter().cloned().unzip();
        let (texts, hosts) = (&texts, &hosts);
        run!(self, "add_rules", async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/add_rules.sql",
                texts,
                hosts,
                source,
                version
            )
            .fetch_one(db)
            .await
        })
    }

    /// URLs of seeds, and of what they redirected to (`false`), among the next tasks above an id; with the last id that was looked at, `None`
    /// at the end.
    pub async fn roots_after(&self, id: i64) -> Result<(Option<i64>, Vec<(String, bool)>)> {
        const LOOK_AT: i32 = 50_000;
        let row = run!(self, "roots_after", async |db| {
            sqlx::query_file!("src/frontier/sql/roots_after.sql", id, LOOK_AT)
                .fetch_one(db)
                .await
        })?;
        Ok((row.last, row.urls.into_iter().zip(row.seeds).collect()))
    }

    /// Rules with an id above this one, in order, at most 10,000: ask again from the last while it answers that many.
    pub async fn rules_after(&self, id: i32) -> Result<Vec<ScopeRule>> {
        run!(self, "rules_after", async |db| {
            sqlx::query_file_as!(ScopeRule, "src/frontier/sql/rules_after.sql", id)
                .fetch_all(db)
                .await
        })
    }
}
