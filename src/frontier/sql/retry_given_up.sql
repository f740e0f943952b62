-- Tasks of a host that was given up and that wait for a retry become new, so that the next claims fail them: nothing waits for a host that is
-- gone. $1 host, $2 rows at most. Repeat while it answers a full batch.
with waiting as materialized (
    select id
    from tasks
    where host_id = $1
      and status = 'failed'
      and available_at is not null
    limit $2::int
    for no key update skip locked
)
update tasks
set status       = 'new',
    available_at = null
where id = any (array(select id from waiting))
returning id
