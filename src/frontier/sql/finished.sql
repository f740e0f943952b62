-- Whether the crawl is at its end: one statement, one snapshot, never a counter. New tasks of hosts that an operator parked do not count.
-- `offset 0`: a lookup a host, where a semi-join planned in an empty table would read all new tasks.
select not exists (select from hosts h
                   where h.has_new
                     and h.ready_at < 'infinity'
                     and exists (select from tasks t where t.host_id = h.id and t.status = 'new' offset 0))
       and not exists (select from tasks where status = 'claimed')
       and not exists (select from tasks where available_at is not null and status = 'failed') as "finished!"
