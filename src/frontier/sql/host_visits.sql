-- Tasks of hosts that were visited, and those that are claimed, counted up to $2 together. $1 hosts, $3 a worker whose claims are not counted
-- (null = none), $4 tasks that are not counted.
select h.id as "host_id!",
       v.visited as "visited!",
       v.claimed as "claimed!"
from unnest($1::int[]) as h (id)
cross join lateral (
    select count(*) filter (where status <> 'claimed') as visited,
           count(*) filter (where status = 'claimed') as claimed
    from (select t.status
          from tasks t
          where t.host_id = h.id
            and t.status in ('claimed', 'done', 'failed')
            and (t.status <> 'claimed' or $3::int is null or t.claimed_by is distinct from $3::int)
            and t.id <> all ($4::bigint[])
          limit $2::bigint) t
) v
