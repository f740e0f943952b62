-- Ends an operator's pause, and no other. $1 hosts
update hosts
set deferred_until = null,
    note           = null
where id = any (array(select id from hosts where id = any ($1::int[]) order by id for no key update))
  and deferred_until = 'infinity'
returning id
