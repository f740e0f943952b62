-- Nobody claims from these hosts until an operator says otherwise. $1 hosts, $2 note
update hosts
set deferred_until = 'infinity',
    note           = $2
where id = any (array(select id from hosts where id = any ($1::int[]) order by id for no key update))
  and deferred_until is distinct from 'infinity'
returning id
