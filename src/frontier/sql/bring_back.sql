-- Excluded tasks become new, as if they had never been tried, where their reason is one of these. $1 tasks, $2 reasons. Answers a host a task.
with out as materialized (
    select id
    from tasks
    where id = any ($1::bigint[])
      and status = 'excluded'
      and reason = any ($2::text[])
    order by id
    for no key update
)
update tasks
set status    = 'new',
    attempts  = 0,
    expiries  = 0,
    deferrals = 0,
    reason    = null,
    detail    = null
where id = any (array(select id from out))
returning host_id
