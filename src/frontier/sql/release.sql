-- Ends holds after the last fetch. $1 worker, $2 hosts, $3 hold versions, $4 ms since the end of the last fetch on the worker's own monotonic
-- clock (read before this was sent: never too long), $5 whether the host answered, $6 the crawl's delay in ms
update hosts h
set polite_at = now() + make_interval(secs => (coalesce(h.delay_ms, greatest($6::int, h.crawl_delay_ms)) - s.ago_ms) / 1000.0),
    held_by   = null,
    failures  = case when s.answered then 0 else h.failures end,
    pauses    = case when s.answered then 0 else h.pauses end
from (select x.id, r.ago_ms, r.answered
      from hosts x
      join unnest($2::int[], $3::int[], $4::int[], $5::boolean[]) as r (host_id, hold_version, ago_ms, answered) on r.host_id = x.id
      where x.id = any ($2::int[])
        and x.held_by = $1::int
        and x.hold_version = r.hold_version
      order by x.id
      for no key update of x) s
where h.id = any ($2::int[])
  and h.id = s.id
returning h.id
