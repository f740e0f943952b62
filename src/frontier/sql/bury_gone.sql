-- Declares workers dead whose process is gone. $1 workers
update workers
set stopped_at = now()
where id = any ($1)
  and stopped_at is null
returning id
