-- Tasks that are still to be visited are decided against, each for its own reason. The finish of a claimed one is refused. $1 tasks, $2 reasons,
-- $3 details. Answers a host a task.
with judged as materialized (
    select *
    from unnest($1::bigint[], $2::text[], $3::text[]) as j (id, reason, detail)
),
open as materialized (
    select t.id
    from tasks t
    where t.id = any ($1::bigint[])
      and (t.status in ('new', 'claimed') or t.status = 'failed' and t.available_at is not null)
    order by t.id
    for no key update
),
noted as (
    update crawl
    set has_left_out = true
    where not has_left_out
      and exists (select from judged where reason in ('out_of_scope', 'scope_rule', 'depth'))
)
update tasks t
set status       = 'excluded',
    claimed_by   = null,
    claimed_at   = null,
    available_at = null,
    reason       = j.reason,
    detail       = j.detail
from judged j
where t.id = any (array(select id from open))
  and t.id = j.id
returning t.host_id
