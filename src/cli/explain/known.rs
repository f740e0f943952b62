//! What the database knows of a URL: its task, its host, its last visit.

use super::{literal, rows};
use crate::canon::PageUrl;
use crate::cli::Context;
use crate::cli::database::Opened;

type Facts = Vec<(String, String)>;

/// Names and values, in the order in which they are shown; without those that are null.
pub(super) struct Known {
    pub(super) task: Facts,
    pub(super) host: Facts,
    pub(super) page: Facts,
}

/// Pages shown of the way from a seed.
const LONGEST_WAY: u8 = 20;

impl Known {
    pub(super) async fn of(
        url: &PageUrl,
        context: &Context,
        opened: &Opened,
    ) -> anyhow::Result<Known> {
        let delay = context.loaded.config.politeness.delay.as_millis();
        let authority = literal(url.host().as_str());
        let digest = uuid::Uuid::from(url.digest(&context.loaded.config.canon()));
        let its = format!("h.authority = {authority} and t.url_digest = '{digest}'");
        let task = format!(
            "select t.id, t.status, t.reason, t.detail, t.depth, nullif(t.hops, 0) as hops, t.attempts, nullif(t.expiries, 0) as lost_leases, \
             nullif(t.deferrals, 0) as deferrals, nullif(t.priority, 0) as priority, t.label, t.claimed_by, t.claimed_at, t.available_at, t.discovered_at, \
             case when t.via is not null then w.way when t.kind = 'sitemap' then 'robots.txt' else 'a seed' end as found_by, nullif(t.kind, 'page') as kind, t.url as fetched_as \
             from tasks t join hosts h on h.id = t.host_id \
             left join lateral ( \
                 with recursive way as ( \
                     select v.via, v.url, 1 as far from tasks v where v.id = t.via \
                     union all \
                     select v.via, v.url, way.far + 1 from way join tasks v on v.id = way.via where way.far < {LONGEST_WAY}) \
                 select string_agg(url, ' → ' order by far desc) as way from way) w on true \
             where {its}"
        );
        let host = format!(
            "select p.state, p.note, p.visits, p.new_tasks, \
             case coalesce(h.delay_ms, greatest({delay}, h.crawl_delay_ms)) when 0 then 0 \
             else greatest(coalesce(h.delay_ms, greatest({delay}, h.crawl_delay_ms)), h.pace_ms) end as delay_ms, \
             h.delay_ms as own_delay_ms, h.crawl_delay_ms, nullif(h.pace_ms, 0) as pace_ms, \
             case when h.ready_at > now() then h.ready_at end as next_fetch_at, h.held_by, nullif(h.failures, 0) as failures, \
             nullif(h.pauses, 0) as breaker_pauses, nullif(h.robots_failures, 0) as robots_failures, p.deferred_until, h.parked_at, h.given_up_at, \
             nullif(h.priority, 1) as class \
             from host_progress p join hosts h on h.id = p.host_id where p.authority = {authority}"
        );
        let page = format!(
            "select p.fetched_at, p.body_at as unchanged_since, p.http_status, p.http_version, p.error, p.error_detail, p.final_url, p.redirect_to, nullif(p.hops, 0) as hops, p.content_type, \
             p.charset, p.charset_from, p.lang, p.title, p.canonical_url, p.robots, p.signals, p.links, p.fetch_ms, p.wire_bytes, p.body_bytes, \
             p.truncated, p.ip, p.proxy, p.etag, p.last_modified \
             from pages p join tasks t on t.id = p.task_id join hosts h on h.id = t.host_id where {its}"
        );
        Ok(Known {
            task: rows(opened, &task).await?,
            host: rows(opened, &host).await?,
            page: rows(opened, &page).await?,
        })
    }
}
