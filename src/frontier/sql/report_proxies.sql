-- How the proxies of a process stand, in arrays of one length. $1 worker, $2 labels, $3 states, $4 failures in a row, $5 ms until the end of the
-- rest (null: none), $6 last errors (null: none), $7 requests, $8 failed ones, $9 bytes
insert into proxies (worker_id, label, state, failures, rests_until, last_error, requests, failed, bytes)
select $1, p.label, p.state, p.failures, now() + make_interval(secs => p.rest_ms / 1000.0), p.last_error, p.requests, p.failed, p.bytes
from unnest($2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[])
    as p (label, state, failures, rest_ms, last_error, requests, failed, bytes)
on conflict (worker_id, label) do update
set reported_at = now(),
    state       = excluded.state,
    failures    = excluded.failures,
    rests_until = excluded.rests_until,
    last_error  = excluded.last_error,
    requests    = excluded.requests,
    failed      = excluded.failed,
    bytes       = excluded.bytes
