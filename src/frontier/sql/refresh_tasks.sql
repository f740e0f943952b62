-- Done and failed tasks become new. $1 tasks above this id, $2 rows to look at; answers the last row looked at (null at the end).
with looked as materialized (
    select id, status
    from tasks
    where id > $1::bigint
    order by id
    limit $2::int
),
ended as materialized (
    select t.id
    from tasks t
    where t.id = any (array(select id from looked where status in ('done', 'failed')))
      and t.status in ('done', 'failed')
    order by t.id
    for no key update
),
fresh as (
    update tasks
    set status       = 'new',
        available_at = null,
        attempts     = 0,
        expiries     = 0,
        deferrals    = 0,
        reason       = null,
        detail       = null
    where id = any (array(select id from ended))
    returning id
)
select (select max(id) from looked) as last, (select count(*) from fresh) as "refreshed!"
