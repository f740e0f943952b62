-- The URLs that led to a sitemap: its own, and those of the redirects and indexes above it. $1 its task, $2 how many at most.
with recursive chain as (
    select url, via, 1 as n
    from tasks
    where id = $1::bigint
    union all
    select t.url, t.via, c.n + 1
    from chain c
    join tasks t on t.id = c.via
    where c.n < $2::int
)
select url as "url!"
from chain
