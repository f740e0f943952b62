-- The sitemaps that the robots.txt of hosts name. $1 authorities.
select h.authority, r.sitemaps
from hosts h
join robots r on r.host_id = h.id
where h.authority = any ($1::text[])
  and r.sitemaps <> '{}'
