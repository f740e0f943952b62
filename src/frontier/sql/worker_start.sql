-- Joins the crawl. The id is this process's until it stops. $1 name, $2 version, $3 machine, $4 host name, $5 pid, $6 start of the process,
-- $7 silence in ms after which it is dead, $8 its lease in ms, $9 whether this repeats a try whose answer was lost: what that may have left
-- is a worker that nobody is
with ghost as (
    update workers
    set stopped_at = now()
    where $9::boolean
      and machine = $3
      and pid = $5
      and process_started = $6
      and stopped_at is null
),
w as (
    insert into workers (name, version, machine, host_name, pid, process_started, dead_after_ms, lease_ms)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    returning id
),
r as (
    insert into worker_reports (worker_id)
    select id
    from w
)
insert into worker_counts (worker_id)
select id
from w
returning worker_id
