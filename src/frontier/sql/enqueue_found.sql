-- Tasks of what a sitemap names, while it is still being read; and of sitemaps that robots.txt names. $1 worker, $2 the sitemap's task and $3 its claim
-- version (null: robots.txt), $4 host ids, $5 digests, $6 urls, $7 depths, $8 hops, $9 whether each is a sitemap, $10 priorities, $11 labels,
-- $12 and $13 reason and detail of those that are excluded from the start.
--
-- Before the finish of the visit that found them, so that a long file is not held in memory: to insert what is there already is nothing, so a visit
-- that is killed and repeated finds its tasks made. A visit whose claim is over makes none: then `mine` is false.
with mine as materialized (
    select id
    from tasks
    where id = $2::bigint
      and claimed_by = $1
      and claim_version = $3::int
),
found as materialized (
    select distinct on (host_id, url_digest) *
    from unnest($4::int[], $5::uuid[], $6::text[], $7::smallint[], $8::smallint[], $9::boolean[], $10::smallint[], $11::text[], $12::text[], $13::text[])
         with ordinality as l (host_id, url_digest, url, depth, hops, is_sitemap, priority, label, reason, detail, position)
    where $2::bigint is null
       or exists (select from mine)
    order by host_id, url_digest, priority, position
),
unknown as materialized (
    select f.*
    from found f
    -- The anti-join, see finish.sql.
    left join lateral (
        select 1 as known
        from tasks t
        where t.host_id = f.host_id
          and t.url_digest = f.url_digest
        limit 1
    ) k on true
    where k.known is null
    order by f.position
),
-- In the order of the file: within a host the smaller id is the sooner.
numbered as materialized (
    select nextval(pg_get_serial_sequence('tasks', 'id')) as id, u.*
    from unknown u
),
fresh as (
    insert into tasks (id, host_id, url_digest, url, depth, hops, kind, via, status, reason, detail, priority, label)
    overriding system value
    select n.id, n.host_id, n.url_digest, n.url, n.depth, n.hops,
           case when n.is_sitemap then 'sitemap' else 'page' end::task_kind, $2,
           case when n.reason is null then 'new' else 'excluded' end::task_status, n.reason, n.detail, n.priority, n.label
    from numbered n
    order by n.host_id, n.url_digest    -- all insert in one order
    on conflict do nothing
    returning id
),
counted as (
    update worker_counts c
    set discovered = c.discovered + (select count(*) from fresh)
    where worker_id = $1
)
select (select count(*) from fresh) as "fresh!",
       ($2::bigint is null or exists (select from mine)) as "mine!"
