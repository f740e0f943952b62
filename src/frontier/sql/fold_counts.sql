-- Folds the noted changes of the counts into their one row. Whoever comes second finds it locked and leaves.
with mine as materialized (
    select id
    from task_counts
    for update skip locked
),
gone as (
    delete from task_count_changes
    where exists (select from mine)
    returning new, claimed, done, failed, excluded
),
summed as (
    select sum(new) as new, sum(claimed) as claimed, sum(done) as done, sum(failed) as failed, sum(excluded) as excluded
    from gone
    having count(*) > 0
)
update task_counts c
set new      = c.new      + s.new,
    claimed  = c.claimed  + s.claimed,
    done     = c.done     + s.done,
    failed   = c.failed   + s.failed,
    excluded = c.excluded + s.excluded
from summed s
where c.id in (select id from mine)
