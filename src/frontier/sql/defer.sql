-- Nobody claims from a host for a while (Retry-After). $1 host, $2 ms, $3 note
update hosts
set deferred_until = greatest(deferred_until, now() + make_interval(secs => $2::bigint / 1000.0)),
    note           = $3
where id = $1
