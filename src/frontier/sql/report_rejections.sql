-- Totals of a worker, so that to say them twice changes nothing. $1 worker, $2 reasons, $3 links
insert into scope_rejections (worker_id, reason, links)
select $1::int, r.reason, r.links
from unnest($2::text[], $3::bigint[]) as r (reason, links)
order by r.reason
on conflict (worker_id, reason) do update
set links = excluded.links
