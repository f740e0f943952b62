-- Ends an operator's pause, and no other. Ready from now on: claims do not look for hosts that become ready in the past. $1 hosts
update hosts
set parked_at      = null,
    deferred_until = nullif(deferred_until, 'infinity'),
    polite_at      = greatest(polite_at, now()),
    note           = null
where id = any (array(select id from hosts where id = any ($1::int[]) order by id for no key update))
  and (parked_at is not null or deferred_until = 'infinity')
returning id
