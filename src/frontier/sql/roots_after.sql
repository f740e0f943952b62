-- Seeds, and what their redirects led to, for the rules of a new scope. $1 tasks above this id, $2 rows to look at; answers the last row looked
-- at (null at the end).
with looked as materialized (
    select id, url, via, depth, kind
    from tasks
    where id > $1::bigint
    order by id
    limit $2::int
),
roots as (
    select array_agg(url order by id) as urls, array_agg(via is null order by id) as seeds
    from looked
    where (via is null or depth = 0)    -- a seed may have a depth of its own
      and kind = 'page'    -- a sitemap may lie anywhere
)
select (select max(id) from looked) as last,
       coalesce(urls, '{}') as "urls!",
       coalesce(seeds, '{}') as "seeds!"
from roots
