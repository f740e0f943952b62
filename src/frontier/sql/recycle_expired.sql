-- Claims past the lease. $1 lease in ms, $2 rows at most, $3 expiries at which it is given up, $4 ms. Repeat while it answers a full batch.
-- The first loss makes it new, and counts whatever became of the task; a further one counts only if its fetch had begun: what only stood in
-- the stock of a worker that died is new at once. From the second that counts on it waits for a random while up to $4 × 2^expiries: tasks that were lost together come back
-- apart, and the one that kills workers does not take its neighbours to the cap.
with stale as materialized (
    select id, expiries = 0 or coalesce(begun_version = claim_version, false) as counts
    from tasks
    where status = 'claimed'
      and claimed_at < now() - make_interval(secs => $1::int / 1000.0)
      -- Not those of a worker that lives under a longer one and does not know of this yet.
      and not exists (select
                      from workers w
                      where w.id = claimed_by
                        and w.stopped_at is null
                        and claimed_at >= now() - make_interval(secs => w.lease_ms / 1000.0))
    order by claimed_at
    limit $2::int
    for no key update skip locked
)
update tasks
set status       = case when not c.counts or (expiries = 0 and $3::int > 1) then 'new' else 'failed' end::task_status,
    expiries     = expiries + c.counts::int,
    claimed_by   = null,
    claimed_at   = null,
    available_at = case when c.counts and expiries > 0 and expiries + 1 < $3::int
                        then now() + make_interval(secs => random() * $4::int * power(2, expiries) / 1000.0) end,
    reason       = case when c.counts and expiries + 1 >= $3::int then 'poison' else 'lease lost' end
from stale c
where tasks.id = any (array(select id from stale))
  and tasks.id = c.id
returning tasks.id
