-- Hosts that were given up. Reads hosts whole, once, at the end.
select authority, coalesce(note, '') as "note!", count(*) over () as "total!"
from hosts
where given_up_at is not null
order by id
limit 100
