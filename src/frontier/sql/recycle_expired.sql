-- Claims past the lease. $1 lease in ms, $2 rows at most, $3 expiries at which it is given up, $4 ms. Repeat while it answers a full batch.
-- The first loss makes it new. From the second on it waits for a random while up to $4 × 2^expiries: tasks that were lost together come back
-- apart, and the one that kills workers does not take its neighbours to the cap.
with stale as materialized (
    select id
    from tasks
    where status = 'claimed'
      and claimed_at < now() - make_interval(secs => $1::int / 1000.0)
    order by claimed_at
    limit $2::int
    for no key update skip locked
)
update tasks
set status       = case when expiries = 0 and $3::int > 1 then 'new' else 'failed' end::task_status,
    expiries     = expiries + 1,
    claimed_by   = null,
    claimed_at   = null,
    available_at = case when expiries > 0 and expiries + 1 < $3::int
                        then now() + make_interval(secs => random() * $4::int * power(2, expiries) / 1000.0) end,
    reason       = case when expiries + 1 >= $3::int then 'poison' else 'lease lost' end
where id = any (array(select id from stale))
returning id
