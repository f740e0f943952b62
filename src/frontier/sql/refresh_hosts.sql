-- Hosts that were given up are asked again, and troubles of the past are forgotten.
update hosts h
set given_up_at     = null,
    failures        = 0,
    pauses          = 0,
    robots_failures = 0,
    note            = null,
    deferred_until  = case when deferred_until = 'infinity' then deferred_until end
from (select id
      from hosts
      where given_up_at is not null
         or failures > 0
         or pauses > 0
         or robots_failures > 0
      order by id
      for no key update) s
where h.id = s.id
