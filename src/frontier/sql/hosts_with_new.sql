-- The next hosts, and whether they have new tasks. $1 the last that was looked at
select id, authority, has_new
from hosts
where id > $1
order by id
limit 5000
