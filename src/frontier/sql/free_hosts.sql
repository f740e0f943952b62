-- Holds of workers that stopped, before they end by themselves. $1 hosts, $2 the crawl's delay in ms
update hosts h
set polite_at = least(h.polite_at, now() + make_interval(secs => coalesce(h.delay_ms, greatest($2::int, h.crawl_delay_ms)) / 1000.0)),
    held_by   = null
from (select id
      from hosts
      where id = any ($1::int[])
        and held_by in (select id from workers where stopped_at is not null)
      order by id
      for no key update skip locked) s
where h.id = any ($1::int[])
  and h.id = s.id
returning h.id
