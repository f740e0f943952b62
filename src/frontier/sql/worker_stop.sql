update workers
set stopped_at = now()
where id = $1
  and stopped_at is null
