-- $1 tasks, $2 priority. What moves ahead of its host's mark lowers it, by the trigger. Answers a host a task.
with other as materialized (
    select id
    from tasks
    where id = any ($1::bigint[])
      and priority <> $2::smallint
    order by id
    for no key update
)
update tasks
set priority = $2::smallint
where id = any (array(select id from other))
returning host_id
