-- Only what is to be visited, now or later: closed rows stay as they are. $1 tasks, $2 priority. What moves ahead of its host's mark lowers it, by
-- the trigger. Answers a host a task.
with other as materialized (
    select id
    from tasks
    where id = any ($1::bigint[])
      and priority <> $2::smallint
      and (status in ('new', 'claimed') or available_at is not null)
    order by id
    for no key update
)
update tasks
set priority = $2::smallint
where id = any (array(select id from other))
returning host_id
