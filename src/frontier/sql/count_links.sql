-- Moves tasks ahead by the links that were found to them. $1 host ids, $2 digests, $3 links to each. Only where the crawl's order is that of links;
-- after the finish of the visits that found them, so that it lengthens no finish: cut off between, they are not counted, and an order is a hint.
with linked as materialized (
    select t.id, l.links
    from unnest($1::int[], $2::uuid[], $3::int[]) as l (host_id, url_digest, links)
    -- One index lookup a link, see finish.sql.
    cross join lateral (
        select id, status
        from tasks
        where host_id = l.host_id
          and url_digest = l.url_digest
        limit 1
    ) t
    where t.status = 'new'
),
moved as materialized (
    select t.id, l.links
    from tasks t
    join linked l on l.id = t.id
    where t.id = any (array(select id from linked))    -- to say that they are new would invite a walk over all of tasks_new
    order by t.id
    for no key update of t
)
update tasks t
set priority = case when t.status = 'new' then greatest(t.priority - m.links, -32768)::smallint else t.priority end
from moved m
where t.id = any (array(select id from moved))
  and t.id = m.id
