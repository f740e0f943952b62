//! What all machines of a crawl agree on: its scope, and the rules that its seeds made.

use super::{
    Frontier, FrontierError, Result,
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
    /// Opens the crawl of this database, or begins it. The first start decides; another scope or version of the canonicaliser is refused.
    pub async fn open(&self, canon_version: i32, scope: &str) -> Result {
        let stored = run!(self, "open_crawl", async |db| {
            sqlx::query_file!("src/frontier/sql/open_crawl.sql", canon_version, scope)
                .execute(&mut *db)
                .await?;
            sqlx::query_file!("src/frontier/sql/crawl.sql")
                .fetch_one(db)
                .await
        })?;
        if stored.canon_version != canon_version {
            return Err(FrontierError::Differs {
                what: "canonical URLs of version",
                stored: stored.canon_version.to_string(),
                wanted: canon_version.to_string(),
            });
        }
        if stored.scope != scope {
            return Err(FrontierError::Differs {
                what: "the scope",
                stored: stored.scope,
                wanted: scope.to_owned(),
            });
        }
        Ok(())
    }

    /// The scope of the crawl that lives here; `None` where none was begun.
    pub async fn scope(&self) -> Result<Option<String>> {
        let stored = run!(self, "crawl", async |db| {
            sqlx::query_file!("src/frontier/sql/crawl.sql")
                .fetch_optional(db)
                .await
        })?;
        Ok(stored.map(|row| row.scope))
    }

    /// Adds rules (rule, host name) where they are not there yet. `source` is `seed` or `redirect`.
    pub async fn add_rules(&self, rules: &[(String, String)], source: &str) -> Result {
        if rules.is_empty() {
            return Ok(());
        }
        let (texts, hosts): (Vec<String>, Vec<String>) = rules.iter().cloned().unzip();
        let (texts, hosts) = (&texts, &hosts);
        run!(self, "add_rules", async |db| {
            sqlx::query_file!("src/frontier/sql/add_rules.sql", texts, hosts, source)
                .execute(db)
                .await
                .map(|_| ())
        })
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
