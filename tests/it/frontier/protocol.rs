//! The protocol's statements as the crawl runs them, or changed on purpose: a test of a guard runs without it and must see that.

use std::time::Duration;

use pgcrawl::clock::Boottime;
use pgcrawl::frontier::{
    Appetite, Claim, ClaimedHost, ClaimedTask, Finish, Frontier, HostId, Outcome, Release, Target,
    TaskId, TaskKind, WorkerId,
};
use pgcrawl::pages::PageRow;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgPool, Row as _};
use uuid::Uuid;

pub(super) const CLAIM: &str = include_str!("../../../src/frontier/sql/claim.sql");
pub(super) const FINISH: &str = include_str!("../../../src/frontier/sql/finish.sql");
pub(super) const RELEASE: &str = include_str!("../../../src/frontier/sql/release.sql");

/// Statements that replace the frontier's own, and changes of the schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed {
    pub(super) claim: Option<String>,
    pub(super) finish: Option<String>,
    pub(super) release: Option<String>,
    /// Statements that change the schema, run before the crawl.
    pub(super) schema: Vec<String>,
    /// Functions, with the pieces of their text that are replaced.
    pub(super) functions: Vec<(&'static str, Vec<(&'static str, &'static str)>)>,
}

/// A text with a piece replaced that must be there.
pub(super) fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "nothing to replace: {old}");
    text.replace(old, new)
}

impl Changed {
    /// Changes the schema of a database.
    pub(super) async fn apply(&self, pool: &PgPool) {
        for statement in &self.schema {
            run(pool, statement).await;
        }
        for (name, pieces) in &self.functions {
            let mut definition: String =
                sqlx::query_scalar("select pg_get_functiondef($1::text::regproc)")
                    .bind(name)
                    .fetch_one(pool)
                    .await
                    .unwrap();
            for (old, new) in pieces {
                definition = replaced(&definition, old, new);
            }
            run(pool, &definition).await;
        }
    }
}

async fn run(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(pool)
        .await
        .expect(sql);
}

/// One process's hands: the frontier, or what stands in for a part of it.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    pub(super) frontier: Frontier,
    pub(super) changed: Changed,
}

impl Protocol {
    pub(super) async fn claim(&self, worker: WorkerId, appetite: Appetite) -> Claim {
        let Some(sql) = &self.changed.claim else {
            return self.frontier.claim(worker, appetite).await.unwrap();
        };
        let settings = self.frontier.settings();
        let sent = Boottime::now();
        let rows = sqlx::query(AssertSqlSafe(sql.clone()))
            .bind(worker.0)
            .bind(appetite.hosts as i32)
            .bind(appetite.tasks as i32)
            .bind(appetite.tasks_per_host as i32)
            .bind(ms(settings.hold))
            .bind(ms(settings.lease))
            .bind(ms(settings.delay))
            .bind(ms(settings.mark_age))
            .bind(settings.obey_robots)
            .bind(settings.version)
            .bind(None::<Vec<i64>>)
            .fetch_all(self.frontier.pool())
            .await
            .unwrap();
        let mut claim = Claim {
            hosts: Vec::new(),
            empty: Vec::new(),
            sent,
            took: sent.elapsed(),
        };
        for row in rows {
            let id = HostId(row.get("host_id!"));
            let Some(task) = task_of(&row) else {
                claim.empty.push(id);
                continue;
            };
            match claim.hosts.last_mut().filter(|host| host.id == id) {
                Some(host) => host.tasks.push(task),
                None => claim.hosts.push(ClaimedHost {
                    id,
                    authority: row.get("authority!"),
                    delay: Duration::from_millis(row.get::<i32, _>("delay!") as u64),
                    hold: row
                        .get::<bool, _>("hold!")
                        .then(|| row.get("hold_version!")),
                    robots_due: row.get("robots_due!"),
                    claimed: row.get::<i64, _>("claimed!") as u64,
                    given_up: row.get("given_up?"),
                    ailing: row.get("ailing!"),
                    tasks: vec![task],
                }),
            }
        }
        claim
    }

    /// Answers the visits that were accepted. An error is left to the caller: with a guard removed there may be some.
    pub(super) async fn finish(
        &self,
        worker: WorkerId,
        batch: &[Finish],
    ) -> Result<Vec<bool>, sqlx::Error> {
        match &self.changed.finish {
            None => Ok(self.frontier.finish(worker, batch).await.unwrap()),
            Some(sql) => finish(self.frontier.pool(), sql, worker, batch).await,
        }
    }

    pub(super) async fn release(&self, worker: WorkerId, holds: &[Release]) {
        let Some(sql) = &self.changed.release else {
            return self.frontier.release(worker, holds).await.unwrap();
        };
        let ago = |hold: &Release| hold.last_fetch.map_or(0, |end| ms(end.elapsed()));
        sqlx::query(AssertSqlSafe(sql.clone()))
            .bind(worker.0)
            .bind(column(holds, |hold| hold.host.0))
            .bind(column(holds, |hold| hold.hold))
            .bind(column(holds, ago))
            .bind(column(holds, |hold| hold.answered))
            .bind(ms(self.frontier.settings().delay))
            .bind(column(holds, |hold| ms(hold.took)))
            .bind(ms(self.frontier.settings().lease))
            .bind(column(holds, |hold| hold.goes_on))
            .execute(self.frontier.pool())
            .await
            .unwrap();
    }
}

fn task_of(row: &PgRow) -> Option<ClaimedTask> {
    Some(ClaimedTask {
        id: TaskId(row.get::<Option<i64>, _>("task_id?")?),
        claim_version: row.get::<Option<i32>, _>("claim_version?")?,
        attempt: row.get::<i16, _>("attempts?") as u16,
        expiries: row.get::<i16, _>("expiries?") as u16,
        deferrals: row.get::<i16, _>("deferrals?") as u16,
        depth: row.get::<i16, _>("depth?") as u16,
        hops: row.get::<i16, _>("hops?") as u16,
        priority: row.get::<i16, _>("priority?"),
        label: row.get::<Option<String>, _>("label?").map(Into::into),
        is_seed: row.get::<Option<i64>, _>("via?").is_none(),
        kind: TaskKind::of_word(row.get("kind?")),
        url: row.get("url?"),
    })
}

/// Runs a finish statement as the frontier does.
pub(super) async fn finish(
    db: impl sqlx::PgExecutor<'_>,
    sql: &str,
    worker: WorkerId,
    batch: &[Finish],
) -> Result<Vec<bool>, sqlx::Error> {
    let text = |of: fn(&PageRow) -> Option<String>| -> Vec<Option<String>> {
        column(batch, |visit| visit.page.as_ref().and_then(of))
    };
    let page = |of: fn(&PageRow) -> i64| -> Vec<i64> {
        column(batch, |visit| visit.page.as_ref().map_or(0, of))
    };
    let short =
        |of: fn(&PageRow) -> i64| -> Vec<i16> { page(of).into_iter().map(|n| n as i16).collect() };
    let int =
        |of: fn(&PageRow) -> i64| -> Vec<i32> { page(of).into_iter().map(|n| n as i32).collect() };
    let links: Vec<_> = batch
        .iter()
        .zip(1_i32..)
        .flat_map(|(visit, position)| visit.links.iter().map(move |link| (position, link)))
        .collect();
    let edges: Vec<_> = batch
        .iter()
        .zip(1_i32..)
        .flat_map(|(visit, position)| visit.edges.iter().map(move |edge| (position, edge)))
        .collect();
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .bind(worker.0)
        .bind(column(batch, |visit| visit.task.0))
        .bind(column(batch, |visit| visit.claim_version))
        .bind(column(batch, |visit| words(&visit.outcome).0))
        .bind(column(batch, |visit| words(&visit.outcome).1))
        .bind(column(batch, |visit| words(&visit.outcome).2))
        .bind(column(batch, |visit| words(&visit.outcome).3))
        .bind(column(batch, |visit| words(&visit.outcome).4))
        .bind(column(batch, |visit| visit.page.is_some()))
        .bind(column(batch, |visit| {
            visit
                .page
                .as_ref()
                .and_then(|page| page.http_status)
                .map(|status| status as i16)
        }))
        .bind(short(|page| i64::from(page.hops)))
        .bind(int(|page| {
            page.fetch.map_or(0, |fetch| i64::from(ms(fetch)))
        }))
        .bind(page(|page| page.wire_bytes as i64))
        .bind(page(|page| page.body_bytes as i64))
        .bind(int(|page| i64::from(page.links)))
        .bind(text(|page| page.truncated.map(str::to_owned)))
        .bind(text(|page| page.error.clone()))
        .bind(text(|page| page.error_detail.clone()))
        .bind(text(|page| page.final_url.clone()))
        .bind(text(|page| page.redirect_to.clone()))
        .bind(text(|page| page.content_type.clone()))
        .bind(text(|page| page.charset.map(str::to_owned)))
        .bind(text(|page| page.charset_from.map(str::to_owned)))
        .bind(text(|page| page.lang.clone()))
        .bind(text(|page| page.title.clone()))
        .bind(text(|page| page.description.clone()))
        .bind(text(|page| page.h1.clone()))
        .bind(text(|page| page.canonical_url.clone()))
        .bind(text(|page| page.robots.clone()))
        .bind(text(|page| page.etag.clone()))
        .bind(text(|page| page.last_modified.clone()))
        .bind(text(|page| page.ip.map(|ip| ip.to_string())))
        .bind(text(|page| page.proxy.as_deref().map(str::to_owned)))
        .bind(column(batch, |visit| {
            visit
                .page
                .as_ref()
                .and_then(|page| page.digest)
                .map(|digest| digest.to_vec())
        }))
        .bind(text(|page| page.headers.clone()))
        .bind(page(|page| i64::from(ms(page.ended.elapsed()))))
        .bind(column(batch, |visit| {
            visit.page.as_ref().is_some_and(|page| page.body.is_some())
        }))
        .bind(column(batch, |visit| {
            visit.page.as_ref().and_then(|page| page.body.clone())
        }))
        .bind(column(&links, |(position, _)| *position))
        .bind(column(&links, |(_, link)| link.host.0))
        .bind(column(&links, |(_, link)| Uuid::from(link.digest)))
        .bind(column(&links, |(_, link)| link.url.clone()))
        .bind(column(&links, |(_, link)| link.depth as i16))
        .bind(column(&links, |(_, link)| link.hops as i16))
        .bind(column(&links, |(_, link)| {
            link.excluded.as_ref().map(|(reason, _)| *reason)
        }))
        .bind(column(&links, |(_, link)| {
            link.excluded.as_ref().map(|(_, detail)| detail.clone())
        }))
        .bind(text(|page| page.http_version.map(str::to_owned)))
        .bind(column(batch, |visit| {
            visit.page.as_ref().and_then(|page| page.reading)
        }))
        .bind(text(|page| page.signals.clone()))
        .bind(column(&links, |(_, link)| link.priority))
        .bind(column(&links, |(_, link)| {
            link.label.as_deref().map(str::to_owned)
        }))
        .bind(column(&edges, |(position, _)| *position))
        .bind(column(&edges, |(_, edge)| match edge.target {
            Target::Task(task) => task.0,
            _ => 0,
        }))
        .bind(column(&edges, |(_, edge)| match edge.target {
            Target::Url { host, .. } => host.0,
            _ => 0,
        }))
        .bind(column(&edges, |(_, edge)| match edge.target {
            Target::Url { digest, .. } => Uuid::from(digest),
            _ => Uuid::nil(),
        }))
        .bind(column(&edges, |(_, edge)| match &edge.target {
            Target::Task(_) => None,
            Target::Url { url, .. } => url.clone(),
            Target::Elsewhere(url) => Some(url.clone()),
        }))
        .bind(column(&edges, |(_, edge)| edge.kind))
        .bind(column(&edges, |(_, edge)| edge.nofollow))
        .bind(column(&edges, |(_, edge)| {
            edge.rel.as_deref().map(str::to_owned)
        }))
        .bind(column(&edges, |(_, edge)| {
            edge.anchor.as_deref().map(str::to_owned)
        }))
        .bind(column(batch, |visit| {
            visit.page.as_ref().and_then(|page| page.simhash)
        }))
        .bind(false)
        .bind(column(&links, |(_, link)| link.kind.as_str()))
        .bind(column(batch, |visit| {
            visit.page.as_ref().is_some_and(|page| page.links_withheld)
        }))
        .fetch_all(db)
        .await
}

type Words = (
    &'static str,
    Option<String>,
    Option<String>,
    Option<i64>,
    bool,
);

fn words(outcome: &Outcome) -> Words {
    match outcome.clone() {
        Outcome::Done { reason } => ("done", reason.map(str::to_owned), None, None, true),
        Outcome::Failed {
            reason,
            detail,
            due,
            charged,
        } => (
            "failed",
            Some(reason),
            detail,
            due.map(|due| i64::from(ms(due))),
            charged,
        ),
        Outcome::Excluded { reason, detail } => ("excluded", Some(reason), detail, None, true),
    }
}

fn column<T, U>(rows: &[T], of: impl Fn(&T) -> U) -> Vec<U> {
    rows.iter().map(of).collect()
}

fn ms(span: Duration) -> i32 {
    i32::try_from(span.as_millis()).unwrap_or(i32::MAX)
}
