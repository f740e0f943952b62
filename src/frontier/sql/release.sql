-- Ends holds after the last fetch. $1 worker, $2 hosts, $3 hold versions, $4 ms since the end of the last fetch on the worker's own monotonic
-- clock (read before this was sent: never too long), $5 whether the host answered, $6 the crawl's delay in ms, $7 ms that the last fetch took:
-- a slow host rests for as long as it worked. The pace that its answers asked for wears off where it answered. $8 lease in ms, $9 whether
-- what was claimed with the hold (for robots.txt) is fetched on without it: the host has no delay.
update hosts h
set polite_at = now() + make_interval(secs => greatest(0,    -- never in the past: claims look from what they saw last on
                    case when coalesce(h.delay_ms, greatest($6::int, h.crawl_delay_ms)) = 0 then 0
                         else greatest(coalesce(h.delay_ms, greatest($6::int, h.crawl_delay_ms)), h.pace_ms, s.took_ms) end - s.ago_ms) / 1000.0),
    pace_ms   = case when s.answered and h.pace_ms * 9 / 10 <= coalesce(h.delay_ms, greatest($6::int, h.crawl_delay_ms)) then null
                     when s.answered then h.pace_ms * 9 / 10
                     else h.pace_ms end,
    unheld_until = case when s.goes_on then now() + make_interval(secs => $8::int / 1000.0)
                        else h.unheld_until end,
    held_by   = null,
    failures  = case when s.answered then 0 else h.failures end,
    pauses    = case when s.answered then 0 else h.pauses end
from (select x.id, r.ago_ms, r.answered, r.took_ms, r.goes_on
      from hosts x
      join unnest($2::int[], $3::int[], $4::int[], $5::boolean[], $7::int[], $9::boolean[])
           as r (host_id, hold_version, ago_ms, answered, took_ms, goes_on) on r.host_id = x.id
      where x.id = any ($2::int[])
        and x.held_by = $1::int
        and x.hold_version = r.hold_version
      order by x.id
      for no key update of x) s
where h.id = any ($2::int[])
  and h.id = s.id
returning h.id
