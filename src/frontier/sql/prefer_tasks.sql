-- Tasks that are new come as soon as this, where they were to come later. $1 hosts, $2 digests, $3 priorities.
with said as materialized (
    select host_id, url_digest, min(priority) as priority
    from unnest($1::int[], $2::uuid[], $3::smallint[]) as l (host_id, url_digest, priority)
    group by host_id, url_digest
),
known as materialized (
    select k.id, s.priority
    from said s
    cross join lateral (
        select t.id, t.status, t.priority
        from tasks t
        where t.host_id = s.host_id
          and t.url_digest = s.url_digest
        limit 1
    ) k
    where k.status = 'new'
      and k.priority > s.priority
),
mine as materialized (
    select t.id, k.priority
    from tasks t
    join known k on k.id = t.id
    where t.id = any (array(select id from known))    -- as in count_links.sql
    order by t.id
    for no key update of t
)
update tasks t
set priority = case when t.status = 'new' then least(t.priority, m.priority) else t.priority end
from mine m
where t.id = any (array(select id from mine))
  and t.id = m.id
