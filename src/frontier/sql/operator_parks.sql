-- Nobody claims from these hosts until an operator says otherwise. Other reasons to wait go on beside it. $1 hosts, $2 note
update hosts
set parked_at = now(),
    note      = $2
where id = any (array(select id from hosts where id = any ($1::int[]) order by id for no key update))
  and parked_at is null
  and deferred_until is distinct from 'infinity'    -- parked by hand
returning id
