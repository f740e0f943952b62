-- Holds of addresses of workers that stopped, before they end by themselves. With free_hosts, before clear. $1 delay of an address in ms
update addresses a
set polite_at = least(a.polite_at, now() + make_interval(secs => $1::int / 1000.0)),
    held_by   = null
from (select ip
      from addresses
      where held_by = any (array(select id from workers where stopped_at is not null and cleared_at is null))
      order by ip
      for no key update skip locked) s
where a.ip = s.ip
