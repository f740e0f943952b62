-- Tasks that are still to be visited are decided against. The finish of a claimed one is refused. $1 tasks, $2 detail, $3 reason. Answers a host a
-- task.
with open as materialized (
    select id
    from tasks
    where id = any ($1::bigint[])
      and (status in ('new', 'claimed') or status = 'failed' and available_at is not null)
    order by id
    for no key update
)
update tasks
set status       = 'excluded',
    claimed_by   = null,
    claimed_at   = null,
    available_at = null,
    reason       = $3,
    detail       = $2
where id = any (array(select id from open))
returning host_id
