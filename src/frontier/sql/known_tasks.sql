-- Which URLs are tasks. $1 hosts, $2 digests.
select l.url_digest as "digest!"
from unnest($1::int[], $2::uuid[]) as l (host_id, url_digest)
-- The lookup of the anti-join, see finish.sql.
cross join lateral (
    select 1
    from tasks t
    where t.host_id = l.host_id
      and t.url_digest = l.url_digest
    limit 1
) k
