-- Whether the crawl is at its end: one statement, one snapshot, never a counter. New tasks of hosts that an operator parked do not count.
-- "parked" and "given_up" are hosts that the end must name.
select not exists (select from hosts h
                   where h.has_new
                     and h.ready_at < 'infinity'
                     and exists (select from tasks t where t.host_id = h.id and t.status = 'new'))
       and not exists (select from tasks where status = 'claimed')
       and not exists (select from tasks where available_at is not null and status = 'failed') as "finished!"
