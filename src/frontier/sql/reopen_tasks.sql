-- Tasks that ended become new, as if they had never been tried, and their hosts are open again: in one statement, since claims fail the new tasks of
-- a host that is given up. Tasks before hosts, as everybody locks them. $1 tasks, $2 their claim versions as they were looked at (another visit
-- is another story), $3 whether done and excluded ones too. Answers a host a task.
with ended as materialized (
    select t.id
    from tasks t
    join unnest($1::bigint[], $2::int[]) as s (task_id, claim_version) on s.task_id = t.id
    where t.id = any ($1::bigint[])
      and t.claim_version = s.claim_version
      and (t.status = 'failed' or $3::boolean and t.status in ('done', 'excluded'))
    order by t.id
    for no key update of t
),
opened as (
    update tasks
    set status       = 'new',
        available_at = null,
        attempts     = 0,
        expiries     = 0,
        deferrals    = 0,
        reason       = null,
        detail       = null
    where id = any (array(select id from ended))
    returning host_id
),
locked as materialized (
    -- All of them, in order: the trigger wakes the others after this.
    select id
    from hosts
    where id = any (array(select host_id from opened))
    order by id
    for no key update
),
reopened as (
    -- What the breaker set goes; a server's Retry-After and an operator's pause stay. Ready from now on: claims do not look for hosts that
    -- become ready in the past.
    update hosts
    set given_up_at     = null,
        failures        = 0,
        pauses          = 0,
        robots_failures = 0,
        polite_at       = greatest(polite_at, now()),
        note            = case when parked_at is not null or deferred_until = 'infinity'
                                    or deferred_until > now() and given_up_at is null and pauses = 0 then note end,
        deferred_until  = case when deferred_until = 'infinity' or given_up_at is null and pauses = 0 then deferred_until end
    where id = any (array(select id from locked))
      and (given_up_at is not null or failures > 0 or pauses > 0 or robots_failures > 0)
    returning id
)
select o.host_id as "host_id!",
       r.id is not null as "reopened!"
from opened o
left join reopened r on r.id = o.host_id
