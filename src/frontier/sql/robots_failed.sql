-- robots.txt could not be had: the host waits, and after $3 such waits in a row it is given up. Answers whether it is given up now.
-- $1 host, $2 ms to wait, $3 waits at most, $4 http status, $5 class of the error, $6 note
with noted as (
    insert into robots (host_id, http_status, error)
    values ($1, $4, $5)
    on conflict (host_id) do update
    set http_status = excluded.http_status,
        error       = excluded.error,
        fetched_at  = now()
)
update hosts
set robots_failures = least(robots_failures + 1, 1000)::smallint,
    deferred_until  = case when robots_failures + 1 > $3::int then deferred_until
                           else greatest(deferred_until, now() + make_interval(secs => $2::bigint / 1000.0)) end,
    given_up_at     = case when robots_failures + 1 > $3::int then now() else given_up_at end,
    note            = $6
where id = $1
returning given_up_at is not null as "given_up!"
