-- A task and those on whose pages it and they were found first, as far as $2 tasks. $1 task
with recursive way as (
    select via, url, hops, depth, 1 as far
    from tasks
    where id = $1::bigint
    union all
    select t.via, t.url, t.hops, t.depth, w.far + 1
    from way w
    join tasks t on t.id = w.via
    where w.far < $2::int
)
select url as "url!",
       hops as "hops!",
       depth as "depth!",
       via is null as "is_seed!"
from way
order by far
