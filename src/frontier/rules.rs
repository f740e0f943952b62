//! What belongs to the crawl: the rules that its seeds made.

use super::{
    Frontier, NewLink, Result, TaskId, WorkerId,
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

/// A task on the way from a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is fetched for it.
    pub url: String,
    /// Links from a seed.
    pub depth: u16,
    /// Redirects in a row that led to it.
    pub hops: u16,
    /// It came from a seed and not from a page.
    pub is_seed: bool,
}

impl Frontier {
    /// A task, the one on whose page it was found first, and so on, so many of them at most.
    pub async fn way(&self, task: TaskId, most: u16) -> Result<Vec<Step>> {
        let most = i32::from(most);
        let rows = run!(self, "way", async |db| {
            sqlx::query_file!("src/frontier/sql/way.sql", task.0, most)
                .fetch_all(db)
                .await
        })?;
        let steps = rows.into_iter().map(|row| Step {
            url: row.url,
            depth: row.depth.unsigned_abs(),
            hops: row.hops.unsigned_abs(),
            is_seed: row.is_seed,
        });
        Ok(steps.collect())
    }

    /// Says how many links a worker left out, in all since it joined, by reason.
    pub async fn report_rejections(
        &self,
        worker: WorkerId,
        totals: &[(&'static str, u64)],
    ) -> Result {
        let (reasons, links): (Vec<String>, Vec<i64>) = totals
            .iter()
            .map(|(reason, links)| {
                (
                    (*reason).to_owned(),
                    i64::try_from(*links).unwrap_or(i64::MAX),
                )
            })
            .unzip();
        let (reasons, links) = (&reasons, &links);
        run!(self, "report_rejections", async |db| {
            sqlx::query_file!(
                "src/frontier/sql/report_rejections.sql",
                worker.0,
                reasons,
                links
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }

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

    /// Makes those of these links new that are tasks already, and were left out where they were found before. With each the task on whose page it
    /// was found; `None` where no page names it.
    pub async fn readmit(&self, links: &[(Option<TaskId>, &NewLink)]) -> Result {
        if links.is_empty() {
            return Ok(());
        }
        let small = |n: u16| i16::try_from(n).unwrap_or(i16::MAX);
        let all = || links.iter().map(|(_, link)| *link);
        let hosts: &Vec<i32> = &all().map(|link| link.host.0).collect();
        let digests: &Vec<uuid::Uuid> = &all().map(|link| link.digest.into()).collect();
        let depths: &Vec<i16> = &all().map(|link| small(link.depth)).collect();
        let hops: &Vec<i16> = &all().map(|link| small(link.hops)).collect();
        let via: &Vec<Option<i64>> = &links
            .iter()
            .map(|(task, _)| task.map(|task| task.0))
            .collect();
        let kinds: &Vec<&str> = &all().map(|link| link.kind.as_str()).collect();
        let priorities: &Vec<i16> = &all().map(|link| link.priority).collect();
        let labels: &Vec<Option<String>> = &all()
            .map(|link| link.label.as_deref().map(str::to_owned))
            .collect();
        run!(self, "readmit", async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/readmit.sql",
                hosts,
                digests,
                depths,
                hops,
                via as &[Option<i64>],
                priorities,
                labels as &[Option<String>],
                kinds as &[&str]
            )
            .fetch_all(db)
            .await
            .map(|_| ())
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
