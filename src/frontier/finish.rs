//! The finish: all of a batch of visits is written by one statement, or nothing of it.

mod columns;

use std::sync::Arc;

use uuid::Uuid;

use super::{
    Frontier, FrontierError, HostId, Result, TaskId, WorkerId,
    tries::{once, run},
};
use crate::canon::UrlDigest;
use crate::pages::PageRow;
use columns::Columns;
pub(super) use columns::short;

/// How a visit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer was recorded.
    Done {
        /// Why its redirect was not followed, if it was one.
        reason: Option<&'static str>,
    },
    /// No usable answer.
    Failed {
        /// Class of the error.
        reason: String,
        /// The error in words.
        detail: Option<String>,
        /// When it is tried again; `None`: never.
        due: Option<std::time::Duration>,
        /// False where the server asked for patience: the attempt does not count, the deferral does.
        charged: bool,
    },
    /// Decided against.
    Excluded {
        /// Which rule: `robots`, …
        reason: String,
        /// The rule in words.
        detail: Option<String>,
    },
}

/// A URL that a visit found.
#[derive(Clone, Debug)]
pub struct NewLink {
    /// Its host's row.
    pub host: HostId,
    /// Its identity within the host.
    pub digest: UrlDigest,
    /// What is to be fetched.
    pub url: String,
    /// Links from a seed.
    pub depth: u16,
    /// Redirects in a row that lead to it.
    pub hops: u16,
    /// What it is to be visited for.
    pub kind: super::TaskKind,
    /// Its place in the order of its host: the smaller, the sooner.
    pub priority: i16,
    /// The label of the seed that led here.
    pub label: Option<Arc<str>>,
    /// Reason and rule, where it is excluded from the start.
    pub excluded: Option<(&'static str, String)>,
}

/// A link of a visit's page, as the link graph keeps it.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Where it leads.
    pub target: Target,
    /// What makes it, a word.
    pub kind: &'static str,
    /// Whether it asked not to be followed.
    pub nofollow: bool,
    /// The tokens of its `rel`.
    pub rel: Option<Box<str>>,
    /// Its text.
    pub anchor: Option<Box<str>>,
}

/// Where an edge leads.
#[derive(Clone, Debug)]
pub enum Target {
    /// To this task.
    Task(TaskId),
    /// To a URL that may be a task when the visit is finished, be it by the links of the visit itself.
    Url {
        /// Its host's row.
        host: HostId,
        /// Its identity within the host.
        digest: UrlDigest,
        /// Kept where it is none; `None`: then the edge is not kept.
        url: Option<String>,
    },
    /// Out of the crawl.
    Elsewhere(String),
}

/// What became of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// False where the lease was lost: the visit left no trace.
    pub accepted: bool,
    /// Whether its page repeats another one that was followed, and so none of its links became a task.
    pub repeats: bool,
    /// The tasks of its edges, in their order, for those that had to be looked up; `None` where none is known.
    pub tasks: Vec<Option<TaskId>>,
}

/// A visit to finish.
#[derive(Clone, Debug)]
pub struct Finish {
    /// The task.
    pub task: TaskId,
    /// The claim's version; fences the finish.
    pub claim_version: i32,
    /// How it ended.
    pub outcome: Outcome,
    /// Its page; `None` where nothing was asked for.
    pub page: Option<PageRow>,
    /// What it found.
    pub links: Vec<NewLink>,
    /// The links of its page, in their order; they replace those of its last visit, unless it was answered 304 or has no page.
    pub edges: Vec<Edge>,
}

impl Frontier {
    /// Finishes visits. Answers for each whether it was accepted; one that lost its lease leaves no trace.
    ///
    /// If the data of the batch violate a rule of the database, its visits are finished one by one, so that only the one at fault is
    /// lost; that one is failed with reason `unstorable`.
    pub async fn finish(&self, worker: WorkerId, batch: &[Finish]) -> Result<Vec<bool>> {
        let finished = self.finish_and_tell(worker, batch).await?;
        Ok(finished.into_iter().map(|one| one.accepted).collect())
    }

    /// The same, and tells more of what became of each.
    pub async fn finish_and_tell(
        &self,
        worker: WorkerId,
        batch: &[Finish],
    ) -> Result<Vec<Finished>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        match self.finish_at_once(worker, batch).await {
            Err(error) if error.is_data() => self.finish_one_by_one(worker, batch, &error).await,
            other => other,
        }
    }

    /// Moves tasks ahead by the links that visits have found to them, those that were tasks before included. For the order by links only.
    pub async fn count_links(&self, links: &[(HostId, UrlDigest, u32)]) -> Result {
        if links.is_empty() {
            return Ok(());
        }
        let hosts: Vec<i32> = links.iter().map(|(host, _, _)| host.0).collect();
        let digests: Vec<Uuid> = links
            .iter()
            .map(|(_, digest, _)| (*digest).into())
            .collect();
        let counts: Vec<i32> = links
            .iter()
            .map(|(_, _, n)| i32::try_from(*n).unwrap_or(i32::MAX).min(32_767))
            .collect();
        let (hosts, digests, counts) = (&hosts, &digests, &counts);
        run!(self, "count_links", async |db| {
            sqlx::query_file!("src/frontier/sql/count_links.sql", hosts, digests, counts)
                .execute(db)
                .await
                .map(|_| ())
        })
    }

    async fn finish_at_once(&self, worker: WorkerId, batch: &[Finish]) -> Result<Vec<Finished>> {
        let columns = &Columns::of(batch);
        let skip_repeats = self.settings().skip_duplicate_links;
        run!(self, "finish", async |db| columns
            .send(worker, batch, skip_repeats, db)
            .await)
    }

    async fn finish_one_by_one(
        &self,
        worker: WorkerId,
        batch: &[Finish],
        error: &FrontierError,
    ) -> Result<Vec<Finished>> {
        tracing::warn!(visits = batch.len(), error = %Causes(error), "a batch broke a rule of the database; finishing its visits one by one");
        let mut accepted = Vec::with_capacity(batch.len());
        for finish in batch {
            let one = match self
                .finish_at_once(worker, std::slice::from_ref(finish))
                .await
            {
                Err(error) if error.is_data() => {
                    tracing::error!(task.id = finish.task.0, error = %Causes(&error), "a visit cannot be stored");
                    let failed = Finish {
                        outcome: Outcome::Failed {
                            reason: "unstorable".to_owned(),
                            detail: Some(crate::pages::clean(&Causes(&error).to_string(), 1_000)),
                            due: None,
                            charged: true,
                        },
                        page: None,
                        links: Vec::new(),
                        edges: Vec::new(),
                        ..finish.clone()
                    };
                    self.finish_at_once(worker, std::slice::from_ref(&failed))
                        .await?
                }
                other => other?,
            };
            accepted.extend(one);
        }
        Ok(accepted)
    }
}

/// Makes a batch the arrays of the statement, and drops them: for the guard of what that costs, `tests/it/costs`.
#[doc(hidden)]
pub fn encode(batch: &[Finish]) {
    std::hint::black_box(Columns::of(batch));
}

/// An error with its causes, on one line.
struct Causes<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
