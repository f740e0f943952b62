-- Tasks without a visit (seeds). $1 worker, $2 host ids, $3 digests, $4 urls, $5 priorities, $6 depths, $7 labels; answers
-- how many were new. Of a URL that is there twice the first counts.
with found as materialized (
    select distinct on (host_id, url_digest) *
    from unnest($2::int[], $3::uuid[], $4::text[], $5::smallint[], $6::smallint[], $7::text[]) with ordinality
         as l (host_id, url_digest, url, priority, depth, label, position)
    order by host_id, url_digest, position
),
fresh as (
    insert into tasks (host_id, url_digest, url, priority, depth, label)
    select f.host_id, f.url_digest, f.url, f.priority, f.depth, f.label
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
    order by f.host_id, f.url_digest
    on conflict do nothing
    returning id
),
counted as (
    update worker_counts c
    set seeded = c.seeded + (select count(*) from fresh)
    where worker_id = $1
)
select count(*) as "fresh!"
from fresh
