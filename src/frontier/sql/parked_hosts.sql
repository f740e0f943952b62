-- Hosts that an operator parked while they have new tasks.
select h.authority
from hosts h
where h.has_new
  and h.ready_at = 'infinity'
  and exists (select from tasks t where t.host_id = h.id and t.status = 'new')
order by h.id
limit 100
