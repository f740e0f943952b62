-- The shapes of URLs that are left out.
select s.host_id, h.authority, s.shape
from url_shapes s
cross join lateral (
    select authority
    from hosts
    where id = s.host_id
    limit 1
) h
where s.parked_at is not null
order by s.id
limit 100000
