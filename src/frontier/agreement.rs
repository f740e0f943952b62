//! What all machines of a crawl agree on: settings, key by key and versioned, and the pause.
//!
//! The first start writes them, later ones take them, an operator changes them. A claim names the version that its process knows and takes
//! nothing under another: from the commit of a change on nothing is claimed under the old values, whenever each process hears of it. What was
//! claimed before is finished under them, for about the time of a visit.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Frontier, FrontierError, Result,
    tries::{once, run},
};

/// The settings of a crawl, as the database has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Counts changes.
    pub version: i32,
    /// Values by key (`section.name`). What they mean is not known here.
    pub settings: BTreeMap<String, Value>,
    /// The last rule of the scope then.
    pub last_rule: i32,
}

/// What a running process must hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The version of the settings that counts.
    pub version: i32,
    /// Whether an operator paused the crawl.
    pub paused: bool,
    /// Processes in it.
    pub workers: usize,
    /// Counts changes of which shapes are parked.
    pub shapes_version: i32,
    /// Whether tasks were left out by a scope that came after them.
    pub has_left_out: bool,
}

impl Frontier {
    /// Opens the crawl of this database, or begins it. The first start decides: of what is `proposed`, only keys that are not there yet are
    /// written. Another version of the canonicaliser is refused.
    pub async fn open(
        &self,
        canon_version: i32,
        proposed: &BTreeMap<String, Value>,
    ) -> Result<Agreement> {
        let (keys, values): (Vec<String>, Vec<Value>) = proposed.clone().into_iter().unzip();
        let (keys, values) = (&keys, &values);
        run!(self, "open_crawl", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/open_crawl.sql",
                canon_version,
                keys,
                values
            )
            .execute(db)
            .await
            .map(|_| ())
        })?;
        let agreement = self.agreement(canon_version).await?;
        Ok(agreement.unwrap_or_default())
    }

    /// What the crawl of this database agreed on; `None` where none was begun. Another version of the canonicaliser is refused.
    pub async fn agreement(&self, canon_version: i32) -> Result<Option<Agreement>> {
        let stored = run!(self, "agreement", async |db| {
            sqlx::query_file!("src/frontier/sql/agreement.sql")
                .fetch_optional(db)
                .await
        })?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        if stored.canon_version != canon_version {
            return Err(FrontierError::Differs {
                what: "canonical URLs of version",
                stored: stored.canon_version.to_string(),
                wanted: canon_version.to_string(),
            });
        }
        Ok(Some(Agreement {
            version: stored.settings_version,
            settings: stored.keys.into_iter().zip(stored.values).collect(),
            last_rule: stored.last_rule,
        }))
    }

    /// Changes a setting that was judged together with those of an agreement. A new scope comes with its rules (rule, host name, source).
    /// Answers the new version; `None` where another change came between.
    ///
    /// One try: repeated after a lost answer, it would not know its own change from another's.
    pub async fn set(
        &self,
        key: &str,
        value: &Value,
        judged_by: &Agreement,
        rules: Option<&[(String, String, &'static str)]>,
    ) -> std::result::Result<Option<i32>, sqlx::Error> {
        let column = |part: fn(&(String, String, &'static str)) -> String| {
            rules.map(|rules| rules.iter().map(part).collect::<Vec<_>>())
        };
        let texts = column(|rule| rule.0.clone());
        let hosts = column(|rule| rule.1.clone());
        let sources = column(|rule| rule.2.to_owned());
        let (texts, hosts, sources) = (texts.as_deref(), hosts.as_deref(), sources.as_deref());
        once!(self, async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/set_setting.sql",
                key,
                value,
                judged_by.version,
                judged_by.last_rule,
                texts,
                hosts,
                sources
            )
            .fetch_one(db)
            .await
        })
    }

    /// The version that counts, and whether the crawl is paused; `None` where none was begun.
    pub async fn standing(&self) -> Result<Option<Standing>> {
        let row = run!(self, "standing", async |db| {
            sqlx::query_file!("src/frontier/sql/standing.sql")
                .fetch_optional(db)
                .await
        })?;
        Ok(row.map(|row| Standing {
            version: row.settings_version,
            paused: row.paused,
            workers: usize::try_from(row.workers).unwrap_or_default(),
            shapes_version: row.shapes_version,
            has_left_out: row.has_left_out,
        }))
    }
}
