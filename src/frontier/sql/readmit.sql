-- URLs that were left out where they were found first, and belong to the crawl where they are found now: nearer to a seed, or from inside.
-- $1 hosts, $2 digests, $3 depths, one element a link.
with found as materialized (
    select host_id, url_digest, min(depth) as depth
    from unnest($1::int[], $2::uuid[], $3::smallint[]) as l (host_id, url_digest, depth)
    group by host_id, url_digest
),
known as materialized (
    select k.id, f.depth
    from found f
    cross join lateral (
        select t.id
        from tasks t
        where t.host_id = f.host_id
          and t.url_digest = f.url_digest
          and t.status = 'excluded'
          and t.reason in ('out_of_scope', 'scope_rule', 'depth')
        limit 1
    ) k
),
mine as materialized (
    select t.id, k.depth
    from tasks t
    join known k on k.id = t.id
    where t.id = any (array(select id from known))
      and t.status = 'excluded'
    order by t.id
    for no key update of t
)
update tasks t
set status = 'new',
    depth  = m.depth,
    reason = null,
    detail = null
from mine m
where t.id = any (array(select id from mine))
  and t.id = m.id
returning t.host_id
