-- Claims of workers that stopped. Walks the claimed rows (what is in flight), and only while there is such a worker. $1 rows at most,
-- $2 expiries at which it is given up, $3 ms, as in recycle_expired. Repeat until it answers nothing, then free_hosts, then clear.
with dead as materialized (
    select id
    from workers
    where stopped_at is not null
      and cleared_at is null
),
stale as materialized (
    select id, expiries = 0 or coalesce(begun_version = claim_version, false) as counts
    from tasks
    where status = 'claimed'
      and (select count(*) from dead) > 0
      and claimed_by = any (array(select id from dead))
    order by claimed_at
    limit $1::int
    for no key update skip locked
)
update tasks
set status       = case when not c.counts or (expiries = 0 and $2::int > 1) then 'new' else 'failed' end::task_status,
    expiries     = expiries + c.counts::int,
    claimed_by   = null,
    claimed_at   = null,
    available_at = case when c.counts and expiries > 0 and expiries + 1 < $2::int
                        then now() + make_interval(secs => random() * $3::int * power(2, expiries) / 1000.0) end,
    reason       = case when c.counts and expiries + 1 >= $2::int then 'poison' else 'lease lost' end
from stale c
where tasks.id = any (array(select id from stale))
  and tasks.id = c.id
returning tasks.id
