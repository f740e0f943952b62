-- Gives back what was not started; the attempt is not counted. Before release, so that the host is not claimed without them.
-- $1 worker, $2 tasks, $3 claim versions
update tasks t
set status     = 'new',
    claimed_by = null,
    claimed_at = null,
    attempts   = greatest(t.attempts - 1, 0)
from (select x.id
      from tasks x
      join unnest($2::bigint[], $3::int[]) as v (task_id, claim_version) on v.task_id = x.id
      where x.id = any ($2::bigint[])
        and x.claimed_by = $1::int    -- so it is claimed; to say so would invite a walk over all of tasks_claimed
        and x.claim_version = v.claim_version
      order by x.id
      for no key update of x) s
where t.id = any ($2::bigint[])
  and t.id = s.id
returning t.id
