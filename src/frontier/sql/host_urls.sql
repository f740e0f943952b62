-- Tasks of hosts, counted up to $2: the index of URLs alone is read. $1 hosts
select h.id as "host_id!",
       (select count(*)
        from (select
              from tasks t
              where t.host_id = h.id
              limit $2::bigint) t) as "urls!"
from unnest($1::int[]) as h (id)
