-- Holds an address, if nobody does and its delay is over. $1 address, $2 worker, $3 ms after which the hold ends by itself. Answers the version of
-- the hold, or (null) in how many ms the address is free at the latest. By the wall clock: another may have been waited for.
with held as (
    insert into addresses as a (ip, polite_at, held_by, hold_version)
    values ($1::text::inet, clock_timestamp() + make_interval(secs => $3::int / 1000.0), $2, 1)
    on conflict (ip) do update
    set polite_at    = excluded.polite_at,
        held_by      = excluded.held_by,
        hold_version = a.hold_version + 1
    where a.polite_at <= clock_timestamp()
    returning hold_version
)
select (select hold_version from held) as hold_version,
       greatest(0, coalesce((select extract(epoch from polite_at - clock_timestamp()) * 1000 from addresses where ip = $1::text::inet), 0))::bigint as "free_in_ms!"
