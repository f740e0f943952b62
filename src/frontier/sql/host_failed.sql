-- The host did not answer. From the $2-th failure in a row on it is paused, longer each time; a failure after the last pause gives it up.
-- A failure that comes while the host is already paused (others were in flight) only counts. Answers whether it is given up now, and no time:
-- a pause may be 'infinity', which few drivers decode. $1 host, $2 failures that open the breaker, $3 pauses in ms, $4 note, $5 whether the host
-- answered since the last failure that was noted: then this is the first in a row, $6 whether this repeats a try whose answer was lost: then a
-- failure with the same note was counted, as far as we know
update hosts h
set failures       = b.failures,
    pauses         = case when b.opens and b.pauses < cardinality($3::bigint[]) then b.pauses + 1 else b.pauses end,
    deferred_until = case when b.opens and b.pauses < cardinality($3::bigint[])
                          then greatest(h.deferred_until, now() + make_interval(secs => ($3::bigint[])[b.pauses + 1] / 1000.0))
                          else h.deferred_until end,
    given_up_at    = case when h.given_up_at is null and b.opens and b.pauses >= cardinality($3::bigint[]) then now() else h.given_up_at end,
    note           = $4
from (select id,
             case when counted then failures when $5::boolean then 1 else least(failures + 1, 1000) end::smallint as failures,
             case when counted then pauses when $5::boolean then 0 else pauses end::smallint as pauses,
             not counted
             and (case when $5::boolean then 1 else failures + 1 end) >= $2::int
             and not coalesce(deferred_until > now(), false) as opens
      from hosts
      cross join lateral (select $6::boolean and failures > 0 and note is not distinct from $4 as counted) c
      where id = $1
      for no key update of hosts) b
where h.id = $1
  and h.id = b.id
returning h.given_up_at is not null as "given_up!"
