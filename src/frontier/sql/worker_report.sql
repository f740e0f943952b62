-- What this process says of its last minute. $1 worker, $2 visits in flight, $3 visits of the last minute, $4 and $5 claim times in ms
insert into worker_reports (worker_id, in_flight, visits_last_minute, claim_p50_ms, claim_p99_ms)
values ($1, $2, $3, $4, $5)
on conflict (worker_id) do update
set reported_at        = now(),
    in_flight          = excluded.in_flight,
    visits_last_minute = excluded.visits_last_minute,
    claim_p50_ms       = excluded.claim_p50_ms,
    claim_p99_ms       = excluded.claim_p99_ms
