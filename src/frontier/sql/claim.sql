-- Claims. $1 worker, $2 hosts at most, $3 tasks at most, $4 tasks a host at most, $5 ms of fetching to claim from a host with a delay,
-- $6 lease in ms, $7 the crawl's delay in ms, $8 age of a low-water mark in ms from which on it is ignored, $9 whether robots.txt is obeyed.
-- $10 the version of the settings that this process knows, $11 moments (one a class, in us since 1970, null = none) before which no ready host
-- is looked for: what stands there in hosts_ready is dead, and stays while somebody holds an old snapshot. A row without a task is a host that looked empty: give it to park_hosts. Never waits
-- for a lock. Under other settings, or in a pause, nothing is claimed.
--
-- A host is held while it has a delay, and also while its robots.txt is due: so one process fetches that file, and a Crawl-delay that it
-- names counts from the first page on. A host that was given up has no delay: its tasks are only taken to be failed.
with ready as materialized (
    select h.*
    from (values (0::smallint), (1::smallint), (2::smallint)) as c (priority)    -- class by class, none of the next before the last is taken
    cross join lateral (
        select id,
               authority,
               case when given_up_at is not null then 0
                    when coalesce(delay_ms, greatest($7::int, crawl_delay_ms)) = 0 then 0
                    else greatest(coalesce(delay_ms, greatest($7::int, crawl_delay_ms)), pace_ms) end as delay,
               $9::boolean and given_up_at is null and (robots_until is null or robots_until <= now()) as robots_due,
               low_since < now() - make_interval(secs => $8::int / 1000.0) as from_bottom,
               low_priority,
               low_id,
               case when given_up_at is null then null
                    when robots_failures > 0 then 'robots_unreachable'
                    else 'host_down' end as given_up,
               failures > 0 or pauses > 0 as ailing,
               priority,
               ready_at
        from hosts
        where has_new
          and priority = c.priority
          and ready_at <= now()
          and ready_at >= coalesce(to_timestamp(($11::bigint[])[c.priority + 1] / 1e6), '-infinity')
          -- A delay that appears is kept from when nobody can be fetching without a hold any more.
          and (unheld_until is null
               or given_up_at is not null
               or coalesce(delay_ms, greatest($7::int, crawl_delay_ms)) = 0
               or unheld_until <= now() - make_interval(secs => coalesce(delay_ms, greatest($7::int, crawl_delay_ms)) / 1000.0))
        order by ready_at
        limit $2::int
        for no key update skip locked
    ) h
    where not exists (select from crawl where paused_at is not null or settings_version <> $10::int)
    limit $2::int
),
picked as materialized (
    select r.id as host_id,
           r.authority,
           r.delay,
           r.robots_due,
           r.delay > 0 or r.robots_due as hold,
           r.from_bottom,
           r.given_up,
           r.ailing,
           r.priority as class,
           r.ready_at,
           t.id as task_id,
           t.priority
    from ready r
    left join lateral (
        select id, priority
        from tasks
        where host_id = r.id
          and status = 'new'
          and (priority, id) > (case when r.from_bottom then '-32768'::smallint else r.low_priority end,
                                case when r.from_bottom then 0 else r.low_id end)
        order by priority, id
        limit case when r.delay > 0 then least($4::int, greatest(1, $5::int / r.delay)) else $4::int end
        for no key update skip locked
    ) t on true
    limit $3::int
),
last as materialized (    -- the greatest (priority, id), not the greatest of each: that would jump over tasks
    select distinct on (host_id) host_id, delay, hold, from_bottom, priority, task_id, count(task_id) over (partition by host_id) as n
    from picked
    order by host_id, priority desc, task_id desc
),
taken as (
    update tasks
    set status        = 'claimed',
        claimed_by    = $1::int,
        claimed_at    = now(),
        claim_version = claim_version + 1,
        attempts      = attempts + 1
    where id = any (array(select task_id from picked where task_id is not null))    -- not a join: no statistics turn it into a scan
    returning id, url, kind, depth, hops, via, priority, label, attempts, expiries, deferrals, claim_version
),
held as (
    update hosts h
    set polite_at    = case when l.n > 0 and l.hold then now() + make_interval(secs => ($6::int + l.delay) / 1000.0)
                            else now() end,    -- to the back of the queue, an empty one too: a few that cannot be parked must not starve the rest
        held_by      = case when l.n > 0 and l.hold then $1::int end,
        unheld_until = case when l.n > 0 and not l.hold and h.given_up_at is null then now() + make_interval(secs => $6::int / 1000.0) else h.unheld_until end,
        hold_version = h.hold_version + case when l.n > 0 and l.hold then 1 else 0 end,
        low_priority = case when l.n > 0 then l.priority else h.low_priority end,
        low_id       = case when l.n > 0 then l.task_id else h.low_id end,
        low_since    = case when l.from_bottom then now() else h.low_since end,
        claimed      = h.claimed + l.n
    from last l
    where h.id = any (array(select host_id from last))
      and h.id = l.host_id
    returning h.id, h.hold_version, h.claimed
)
select p.host_id as "host_id!",
       p.authority as "authority!",
       p.delay as "delay!",
       p.hold as "hold!",
       p.robots_due as "robots_due!",
       p.given_up as "given_up?",
       p.ailing as "ailing!",
       coalesce(h.hold_version, 0) as "hold_version!",
       coalesce(h.claimed, 0) as "claimed!",
       p.task_id as "task_id?",
       t.claim_version as "claim_version?",
       t.attempts as "attempts?",
       t.expiries as "expiries?",
       t.deferrals as "deferrals?",
       t.depth as "depth?",
       t.hops as "hops?",
       t.via as "via?",
       t.kind::text as "kind?",
       t.priority as "priority?",
       t.label as "label?",
       t.url as "url?",
       p.class as "class!",
       (extract(epoch from p.ready_at) * 1000000)::bigint as "ready_us!",
       (extract(epoch from now()) * 1000000)::bigint as "at_us!"    -- tells what this worker has claimed and knows of, see stray.sql
from picked p
-- All of both are picked. Left joins might compare each row with each, full ones never do.
full join taken t on t.id = p.task_id
full join held h on h.id = p.host_id
order by p.host_id, p.priority, p.task_id
