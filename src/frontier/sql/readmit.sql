-- URLs that were left out where they were found first, and belong to the crawl where they are found now: nearer to a seed, or from inside.
-- They become what they are as found there. $1 hosts, $2 digests, $3 depths, $4 hops, $5 tasks on whose pages they were found (null: no page
-- names them), $6 priorities, $7 labels, $8 kinds, one element a link.
with found as materialized (
    select distinct on (host_id, url_digest) *
    from unnest($1::int[], $2::uuid[], $3::smallint[], $4::smallint[], $5::bigint[], $6::smallint[], $7::text[], $8::text[])
         as l (host_id, url_digest, depth, hops, via, priority, label, kind)
    order by host_id, url_digest, depth, hops
),
known as materialized (
    select k.id, f.depth, f.hops, f.via, f.priority, f.label, f.kind
    from found f
    cross join lateral (
        select t.id
        from tasks t
        where t.host_id = f.host_id
          and t.url_digest = f.url_digest
          and t.status = 'excluded'
          and t.reason in ('out_of_scope', 'scope_rule', 'depth')
          and t.via is not null
        limit 1
    ) k
    where k.id is distinct from f.via
),
mine as materialized (
    select t.id, k.depth, k.hops, coalesce(k.via, t.via) as via, k.priority, k.label, k.kind
    from (select * from known order by id offset 0) k
    cross join lateral (    -- one lookup a task: a join might compare each with each
        select id, via
        from tasks
        where id = k.id
          and status = 'excluded'
        for no key update
    ) t
)
update tasks t
set status    = 'new',
    depth     = m.depth,
    hops      = m.hops,
    via       = m.via,
    priority  = m.priority,
    label     = m.label,
    kind      = m.kind::task_kind,
    attempts  = 0,
    expiries  = 0,
    deferrals = 0,
    reason    = null,
    detail    = null
from mine m
where t.id = any (array(select id from mine))
  and t.id = m.id
returning t.host_id
