-- Tasks without a visit (seeds), in their order: within a host the smaller id is the sooner. $1 worker, $2 host ids, $3 digests, $4 urls,
-- $5 priorities, $6 depths, $7 labels; answers how many were new. Of a URL that is there twice the first counts.
with found as materialized (
    select distinct on (host_id, url_digest) *
    from unnest($2::int[], $3::uuid[], $4::text[], $5::smallint[], $6::smallint[], $7::text[]) with ordinality
         as l (host_id, url_digest, url, priority, depth, label, position)
    order by host_id, url_digest, position
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
numbered as materialized (
    select nextval(pg_get_serial_sequence('tasks', 'id')) as id, u.*
    from unknown u
),
fresh as (
    -- In the order of all who insert, whatever the ids.
    insert into tasks (id, host_id, url_digest, url, priority, depth, label)
    overriding system value
    select n.id, n.host_id, n.url_digest, n.url, n.priority, n.depth, n.label
    from numbered n
    order by n.host_id, n.url_digest
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
