-- Workers whose heartbeat stopped. Before anything is taken from them: the row's lock decides between this and a heartbeat on its way, so a
-- worker that could renew keeps its claims and holds, and one that lost them cannot renew. Each by the limit that it knows itself.
update workers
set stopped_at = now()
where cleared_at is null
  and stopped_at is null
  and heartbeat < now() - make_interval(secs => dead_after_ms / 1000.0)
returning id
