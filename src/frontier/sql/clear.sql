-- Stopped workers without claims need no more looking at. What one of them may claim yet, before it learns, ends with its lease.
update workers
set cleared_at = now()
where stopped_at is not null
  and cleared_at is null
  and not exists (select from tasks t where t.status = 'claimed' and t.claimed_by = workers.id)
