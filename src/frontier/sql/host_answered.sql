-- Hosts that answered, where no release says so (delay 0): scattered faults of a long crawl must not add up to a breaker. $1 hosts
update hosts h
set failures = 0,
    pauses   = 0
from (select id
      from hosts
      where id = any ($1::int[])
        and (failures > 0 or pauses > 0)
        and given_up_at is null
      order by id
      for no key update skip locked) s
where h.id = any ($1::int[])
  and h.id = s.id
