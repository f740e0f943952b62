-- Renews. No row: declared dead; stop fetching, drop the stock, start anew.
update workers
set heartbeat = now()
where id = $1
  and stopped_at is null
returning id
