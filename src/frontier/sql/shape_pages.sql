-- Pages that are not folded into url_shapes yet, in the order of their fetch: first visits that brought a page, and no sitemap. The youngest seconds are left
-- for the next time, since pages are committed somewhat later than they are fetched. $1 pages, about, $2 ms that are left. No row where
-- nothing is new; the last row is where the watermark goes.
with mark as materialized (
    select up_to_at, up_to
    from shape_mark
),
looked as materialized (
    select p.task_id, p.fetched_at, p.http_status, p.digest, p.body_at
    from pages p
    where p.fetched_at > (select up_to_at from mark)
      and p.fetched_at < now() - make_interval(secs => $2::int / 1000.0)
      -- Those of one moment belong together, so that the moment is all there is to remember. In the order of the index, without a sort.
      and p.fetched_at <= coalesce((select b.fetched_at
                                    from pages b
                                    where b.fetched_at > (select up_to_at from mark)
                                    order by b.fetched_at
                                    offset $1::int - 1
                                    limit 1), 'infinity')
    order by p.fetched_at
)
select l.task_id as "task_id!",
       l.fetched_at as "fetched_at!",
       t.host_id as "host_id!",
       t.url as "url!",
       (select up_to_at from mark) as "mark_at!",
       (select up_to from mark) as "mark_task!",
       case when t.kind = 'page' and l.http_status = 200 and l.body_at is null and t.claim_version = 1 then l.digest end as digest
from looked l
cross join lateral (
    select host_id, url, kind, claim_version
    from tasks
    where id = l.task_id
    limit 1
) t
order by l.fetched_at, l.task_id
