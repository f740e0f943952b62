-- Hosts that were given up are asked again, and troubles of the past are forgotten: waits that the breaker set, but not a server's Retry-After or
-- an operator's pause. Ready from now on: claims do not look for hosts that become ready in the past.
update hosts h
set given_up_at     = null,
    failures        = 0,
    pauses          = 0,
    robots_failures = 0,
    polite_at       = greatest(h.polite_at, now()),
    note            = case when h.parked_at is not null or h.deferred_until = 'infinity'
                                or h.deferred_until > now() and h.given_up_at is null and h.pauses = 0 then h.note end,
    deferred_until  = case when h.deferred_until = 'infinity' or h.given_up_at is null and h.pauses = 0 then h.deferred_until end
from (select id
      from hosts
      where given_up_at is not null
         or failures > 0
         or pauses > 0
         or robots_failures > 0
      order by id
      for no key update) s
where h.id = s.id
