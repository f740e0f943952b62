-- The host did not answer. From the $2-th failure in a row on it is paused, longer each time; a failure after the last pause gives it up.
-- A failure that comes while the host is already paused (others were in flight) only counts. Answers whether it is given up now, and no time:
-- a pause may be 'infinity', which few drivers decode. $1 host, $2 failures that open the breaker, $3 pauses in ms, $4 note
update hosts
set failures       = least(failures + 1, 1000)::smallint,
    pauses         = case when failures + 1 < $2::int or coalesce(deferred_until > now(), false) or pauses > cardinality($3::bigint[]) then pauses
                          else pauses + 1 end,
    deferred_until = case when failures + 1 < $2::int or coalesce(deferred_until > now(), false) or pauses >= cardinality($3::bigint[]) then deferred_until
                          else now() + make_interval(secs => ($3::bigint[])[pauses + 1] / 1000.0) end,
    given_up_at    = case when given_up_at is not null then given_up_at
                          when failures + 1 >= $2::int and pauses >= cardinality($3::bigint[]) and not coalesce(deferred_until > now(), false) then now() end,
    note           = $4
where id = $1
returning given_up_at is not null as "given_up!"
