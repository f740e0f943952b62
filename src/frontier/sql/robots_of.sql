-- What is known of robots.txt of hosts whose answer still counts. $1 hosts
select h.id as host_id,
       h.authority,
       greatest(0, extract(epoch from h.robots_until - now()) * 1000)::bigint as "left_ms!",
       r.http_status,
       r.body
from hosts h
join robots r on r.host_id = h.id
where h.id = any ($1)
  and h.robots_until > now()
