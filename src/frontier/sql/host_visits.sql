-- Tasks of hosts that were visited or are claimed, counted up to $2. $1 hosts
select h.id as "host_id!",
       (select count(*)
        from (select
              from tasks t
              where t.host_id = h.id
                and t.status in ('claimed', 'done', 'failed')
              limit $2::bigint) t) as "visits!"
from unnest($1::int[]) as h (id)
