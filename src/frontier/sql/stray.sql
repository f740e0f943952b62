-- Gives back what a claim took whose answer was lost with its connection, and ends its holds; the attempts are not counted. $1 worker, $2 the
-- moment of its last claim that was answered, microseconds since 1970, null where none was: it claims one at a time, so whatever it has claimed
-- since is from the lost one.
--
-- The holds are its holds, too: a host with such a task was ready when the lost claim took it, so an earlier hold of ours was over. For the
-- same reason it is ready again at once: nothing was fetched in between. A lost claim that commits only after a later one was answered (its
-- statement was still on its way) looks like one of before: it is left alone here, nobody fetches for it, and it comes back with its lease. Hosts are locked in the order of their ids, all of them, before the
-- tasks' trigger wakes them.
with stray as materialized (
    select id, host_id
    from tasks
    where status = 'claimed'
      and claimed_at > coalesce('epoch'::timestamptz + $2::bigint * interval '1 microsecond', '-infinity')
      and claimed_by = $1::int
    for no key update skip locked
),
locked as materialized (
    select id
    from hosts
    where id = any (array(select host_id from stray))
    order by id
    for no key update
),
freed as (
    update hosts
    set polite_at = now(),
        held_by   = null
    where id = any (array(select id from locked))
      and held_by = $1::int
)
update tasks
set status     = 'new',
    claimed_by = null,
    claimed_at = null,
    attempts   = greatest(attempts - 1, 0)
where id = any (array(select id from stray))
  and (select count(*) from locked) >= 0    -- the hosts' locks first
returning id
