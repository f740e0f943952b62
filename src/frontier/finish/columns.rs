//! A batch of finishes as the arrays that the statement takes, and the statement.

use uuid::Uuid;

use super::super::{TaskId, WorkerId, ms};
use super::{Edge, Finish, Finished, Outcome, Target};
use crate::db::Session;
use crate::pages::PageRow;

/// Bodies in one statement whose memory its connection may keep for the next.
const KEPT_BYTES: usize = 1 << 20;

/// A batch, column by column, as `unnest` takes it. Strings are borrowed from the batch.
#[derive(Default)]
pub(super) struct Columns<'a> {
    tasks: Vec<i64>,
    claim_versions: Vec<i32>,
    statuses: Vec<&'static str>,
    reasons: Vec<Option<&'a str>>,
    details: Vec<Option<&'a str>>,
    due_ms: Vec<Option<i64>>,
    charged: Vec<bool>,
    visited: Vec<bool>,
    http_status: Vec<Option<i16>>,
    hops: Vec<i16>,
    fetch_ms: Vec<Option<i32>>,
    wire_bytes: Vec<i64>,
    body_bytes: Vec<i64>,
    links: Vec<i32>,
    truncated: Vec<Option<&'a str>>,
    error: Vec<Option<&'a str>>,
    error_detail: Vec<Option<&'a str>>,
    final_url: Vec<Option<&'a str>>,
    redirect_to: Vec<Option<&'a str>>,
    content_type: Vec<Option<&'a str>>,
    charset: Vec<Option<&'a str>>,
    charset_from: Vec<Option<&'a str>>,
    lang: Vec<Option<&'a str>>,
    title: Vec<Option<&'a str>>,
    description: Vec<Option<&'a str>>,
    h1: Vec<Option<&'a str>>,
    canonical_url: Vec<Option<&'a str>>,
    robots: Vec<Option<&'a str>>,
    etag: Vec<Option<&'a str>>,
    last_modified: Vec<Option<&'a str>>,
    ip: Vec<Option<String>>,
    proxy: Vec<Option<&'a str>>,
    digest: Vec<Option<&'a [u8]>>,
    headers: Vec<Option<&'a str>>,
    http_version: Vec<Option<&'a str>>,
    reading: Vec<Option<i32>>,
    keep_body: Vec<bool>,
    body: Vec<Option<&'a [u8]>>,
    link_position: Vec<i32>,
    link_host: Vec<i32>,
    link_digest: Vec<Uuid>,
    link_url: Vec<&'a str>,
    link_depth: Vec<i16>,
    link_hops: Vec<i16>,
    link_reason: Vec<Option<&'a str>>,
    link_detail: Vec<Option<&'a str>>,
    link_priority: Vec<i16>,
    link_label: Vec<Option<&'a str>>,
    link_kind: Vec<&'static str>,
    signals: Vec<Option<&'a str>>,
    simhash: Vec<Option<i64>>,
    withheld: Vec<bool>,
    edge_position: Vec<i32>,
    edge_task: Vec<i64>,
    edge_host: Vec<i32>,
    edge_digest: Vec<Uuid>,
    edge_url: Vec<Option<&'a str>>,
    edge_kind: Vec<&'static str>,
    edge_nofollow: Vec<bool>,
    edge_rel: Vec<Option<&'a str>>,
    edge_anchor: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &'a [Finish]) -> Columns<'a> {
        let mut columns = Columns::default();
        for (finish, position) in batch.iter().zip(1..) {
            columns.push_outcome(finish);
            columns.push_page(finish.page.as_ref());
            for link in &finish.links {
                columns.link_position.push(position);
                columns.link_host.push(link.host.0);
                columns.link_digest.push(link.digest.into());
                columns.link_url.push(&link.url);
                columns.link_depth.push(short(link.depth));
                columns.link_hops.push(short(link.hops));
                columns.link_priority.push(link.priority);
                columns.link_label.push(link.label.as_deref());
                columns.link_kind.push(link.kind.as_str());
                columns
                    .link_reason
                    .push(link.excluded.as_ref().map(|(reason, _)| *reason));
                columns
                    .link_detail
                    .push(link.excluded.as_ref().map(|(_, detail)| detail.as_str()));
            }
            for edge in &finish.edges {
                columns.push_edge(position, edge);
            }
        }
        columns
    }

    fn push_edge(&mut self, position: i32, edge: &'a Edge) {
        let (task, host, digest, url) = match &edge.target {
            Target::Task(task) => (task.0, 0, Uuid::nil(), None),
            Target::Url { host, digest, url } => (0, host.0, (*digest).into(), url.as_deref()),
            Target::Elsewhere(url) => (0, 0, Uuid::nil(), Some(url.as_str())),
        };
        self.edge_position.push(position);
        self.edge_task.push(task);
        self.edge_host.push(host);
        self.edge_digest.push(digest);
        self.edge_url.push(url);
        self.edge_kind.push(edge.kind);
        self.edge_nofollow.push(edge.nofollow);
        self.edge_rel.push(edge.rel.as_deref());
        self.edge_anchor.push(edge.anchor.as_deref());
    }

    fn push_outcome(&mut self, finish: &'a Finish) {
        self.tasks.push(finish.task.0);
        self.claim_versions.push(finish.claim_version);
        let (status, reason, detail, due, charged) = match &finish.outcome {
            Outcome::Done { reason } => ("done", *reason, None, None, true),
            Outcome::Failed {
                reason,
                detail,
                due,
                charged,
            } => (
                "failed",
                Some(reason.as_str()),
                detail.as_deref(),
                *due,
                *charged,
            ),
            Outcome::Excluded { reason, detail } => (
                "excluded",
                Some(reason.as_str()),
                detail.as_deref(),
                None,
                true,
            ),
        };
        self.statuses.push(status);
        self.reasons.push(reason);
        self.details.push(detail);
        self.due_ms.push(due.map(|due| i64::from(ms(due))));
        self.charged.push(charged);
    }

    fn push_page(&mut self, page: Option<&'a PageRow>) {
        self.visited.push(page.is_some());
        self.http_status.push(
            page.and_then(|p| p.http_status)
                .and_then(|status| i16::try_from(status).ok()),
        );
        self.hops.push(page.map_or(0, |p| i16::from(p.hops)));
        self.fetch_ms.push(page.and_then(|p| p.fetch).map(ms));
        self.wire_bytes.push(page.map_or(0, |p| long(p.wire_bytes)));
        self.body_bytes.push(page.map_or(0, |p| long(p.body_bytes)));
        self.links
            .push(page.map_or(0, |p| i32::try_from(p.links).unwrap_or(i32::MAX)));
        self.truncated.push(page.and_then(|p| p.truncated));
        self.error.push(page.and_then(|p| p.error.as_deref()));
        self.error_detail
            .push(page.and_then(|p| p.error_detail.as_deref()));
        self.final_url
            .push(page.and_then(|p| p.final_url.as_deref()));
        self.redirect_to
            .push(page.and_then(|p| p.redirect_to.as_deref()));
        self.content_type
            .push(page.and_then(|p| p.content_type.as_deref()));
        self.charset.push(page.and_then(|p| p.charset));
        self.charset_from.push(page.and_then(|p| p.charset_from));
        self.lang.push(page.and_then(|p| p.lang.as_deref()));
        self.title.push(page.and_then(|p| p.title.as_deref()));
        self.description
            .push(page.and_then(|p| p.description.as_deref()));
        self.h1.push(page.and_then(|p| p.h1.as_deref()));
        self.canonical_url
            .push(page.and_then(|p| p.canonical_url.as_deref()));
        self.robots.push(page.and_then(|p| p.robots.as_deref()));
        self.etag.push(page.and_then(|p| p.etag.as_deref()));
        self.last_modified
            .push(page.and_then(|p| p.last_modified.as_deref()));
        self.ip
            .push(page.and_then(|p| p.ip).map(|ip| ip.to_string()));
        self.proxy.push(page.and_then(|p| p.proxy.as_deref()));
        self.digest.push(
            page.and_then(|p| p.digest.as_ref())
                .map(<[u8; 32]>::as_slice),
        );
        self.headers.push(page.and_then(|p| p.headers.as_deref()));
        self.http_version.push(page.and_then(|p| p.http_version));
        self.reading.push(page.and_then(|p| p.reading));
        self.keep_body.push(page.is_some_and(|p| p.body.is_some()));
        self.body.push(page.and_then(|p| p.body.as_deref()));
        self.signals.push(page.and_then(|p| p.signals.as_deref()));
        self.simhash.push(page.and_then(|p| p.simhash));
        self.withheld.push(page.is_some_and(|p| p.links_withheld));
    }

    pub(super) async fn send(
        &self,
        worker: WorkerId,
        batch: &[Finish],
        skip_repeats: bool,
        db: &mut Session,
    ) -> std::result::Result<Vec<Finished>, sqlx::Error> {
        // Each try anew, and before it is sent.
        let ended_ago: Vec<i64> = batch
            .iter()
            .map(|finish| {
                finish
                    .page
                    .as_ref()
                    .map_or(0, |page| i64::from(ms(page.ended.elapsed())))
            })
            .collect();
        let rows = sqlx::query_file!(
            "src/frontier/sql/finish.sql",
            worker.0,
            &self.tasks,
            &self.claim_versions,
            &self.statuses as &[&str],
            &self.reasons as &[Option<&str>],
            &self.details as &[Option<&str>],
            &self.due_ms as &[Option<i64>],
            &self.charged,
            &self.visited,
            &self.http_status as &[Option<i16>],
            &self.hops,
            &self.fetch_ms as &[Option<i32>],
            &self.wire_bytes,
            &self.body_bytes,
            &self.links,
            &self.truncated as &[Option<&str>],
            &self.error as &[Option<&str>],
            &self.error_detail as &[Option<&str>],
            &self.final_url as &[Option<&str>],
            &self.redirect_to as &[Option<&str>],
            &self.content_type as &[Option<&str>],
            &self.charset as &[Option<&str>],
            &self.charset_from as &[Option<&str>],
            &self.lang as &[Option<&str>],
            &self.title as &[Option<&str>],
            &self.description as &[Option<&str>],
            &self.h1 as &[Option<&str>],
            &self.canonical_url as &[Option<&str>],
            &self.robots as &[Option<&str>],
            &self.etag as &[Option<&str>],
            &self.last_modified as &[Option<&str>],
            &self.ip as &[Option<String>],
            &self.proxy as &[Option<&str>],
            &self.digest as &[Option<&[u8]>],
            &self.headers as &[Option<&str>],
            &ended_ago,
            &self.keep_body,
            &self.body as &[Option<&[u8]>],
            &self.link_position,
            &self.link_host,
            &self.link_digest,
            &self.link_url as &[&str],
            &self.link_depth,
            &self.link_hops,
            &self.link_reason as &[Option<&str>],
            &self.link_detail as &[Option<&str>],
            &self.http_version as &[Option<&str>],
            &self.reading as &[Option<i32>],
            &self.signals as &[Option<&str>],
            &self.link_priority,
            &self.link_label as &[Option<&str>],
            &self.edge_position,
            &self.edge_task,
            &self.edge_host,
            &self.edge_digest,
            &self.edge_url as &[Option<&str>],
            &self.edge_kind as &[&str],
            &self.edge_nofollow,
            &self.edge_rel as &[Option<&str>],
            &self.edge_anchor as &[Option<&str>],
            &self.simhash as &[Option<i64>],
            skip_repeats,
            &self.link_kind as &[&str],
            &self.withheld
        )
        .fetch_all(&mut *db)
        .await?;
        if self
            .body
            .iter()
            .flatten()
            .map(|body| body.len())
            .sum::<usize>()
            > KEPT_BYTES
        {
            db.shrink();
        }
        // Of the whole batch, with the first row.
        let mut tasks = rows
            .first()
            .and_then(|row| row.ids.clone())
            .unwrap_or_default()
            .into_iter();
        let finished = rows.iter().zip(batch).map(|(row, finish)| Finished {
            accepted: row.accepted,
            repeats: row.repeats,
            tasks: tasks
                .by_ref()
                .take(finish.edges.len())
                .map(|id| (id != 0).then_some(TaskId(id)))
                .collect(),
        });
        Ok(finished.collect())
    }
}

pub(in crate::frontier) fn short(n: u16) -> i16 {
    i16::try_from(n).unwrap_or(i16::MAX)
}

fn long(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
