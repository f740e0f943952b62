-- New tasks of a host are decided against, so many at once: $1 host, $2 tasks at most, $3 reason, $4 detail. Waits for nobody: what is locked is
-- somebody's claim. Answers how many.
with open as materialized (
    select id
    from tasks
    where host_id = $1::int
      and status = 'new'
    order by priority, id
    limit $2::int
    for no key update skip locked
),
closed as (
    update tasks
    set status = 'excluded',
        reason = $3,
        detail = $4
    where id = any (array(select id from open))
    returning id
)
select count(*) as "closed!"
from closed
