-- Holds of workers that stopped, before they end by themselves. After recycle_dead, before clear. $1 the crawl's delay in ms
update hosts h
set polite_at = least(h.polite_at, now() + make_interval(secs => greatest(coalesce(h.delay_ms, greatest($1::int, h.crawl_delay_ms)), h.pace_ms) / 1000.0)),
    held_by   = null
from (select id
      from hosts
      where held_by = any (array(select id from workers where stopped_at is not null and cleared_at is null))
      order by id
      for no key update skip locked) s
where h.id = s.id
returning h.id
