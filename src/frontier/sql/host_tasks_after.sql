-- Tasks of a host in the order of their digests: $1 host, $2 after this digest, $3 tasks at most, $4 whether those that a shape has excluded
-- (else those that one may exclude: pages that are still to be visited, but for seeds). Answers them, with the last digest looked at (null at the end).
with looked as materialized (
    select id, url, url_digest, kind, via, status, reason, available_at
    from tasks
    where host_id = $1::int
      and url_digest > $2::uuid
    order by url_digest
    limit $3::int
),
chosen as (
    select *
    from looked
    where case when $4::boolean then status = 'excluded' and reason = 'trap_shape'
               else kind = 'page'
                    and via is not null
                    and (status = 'new' or status = 'failed' and available_at is not null) end
)
select (select url_digest from looked order by url_digest desc limit 1) as last,
       coalesce(array_agg(id order by id), '{}') as "tasks!",
       coalesce(array_agg(url order by id), '{}') as "urls!"
from chosen
