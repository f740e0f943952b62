-- Views for people who come with psql. None of them counts a whole table on the way to `progress`.

create view progress as
select c.new + c.claimed + c.done + c.failed + c.excluded as tasks,
       c.new,
       c.claimed,
       c.done,
       c.failed,
       c.excluded,
       round(coalesce(r.visits, 0) / 60.0, 1) as pages_per_second,
       coalesce(r.in_flight, 0) as in_flight,
       coalesce(r.workers, 0) as workers,
       w.first_activity_at,
       greatest(w.last_activity_at, (select max(fetched_at) from pages)) as last_activity_at
from (select sum(new)::bigint as new,
             sum(claimed)::bigint as claimed,
             sum(done)::bigint as done,
             sum(failed)::bigint as failed,
             sum(excluded)::bigint as excluded
      from (select new, claimed, done, failed, excluded from task_counts
            union all
            select new, claimed, done, failed, excluded from task_count_changes) s) c
cross join (select min(started_at) as first_activity_at, max(started_at) as last_activity_at from workers) w
cross join (select sum(p.visits_last_minute) as visits,
                   sum(p.in_flight) filter (where w.stopped_at is null) as in_flight,
                   count(*) filter (where w.stopped_at is null) as workers
            from worker_reports p
            join workers w on w.id = p.worker_id
            where p.reported_at > now() - interval '1 minute') r;

comment on view progress is 'One row: tasks by status, pages a second over the last minute, workers that said something in the last minute, first and last activity.';

create view host_progress as
select h.authority,
       case when h.given_up_at is not null then 'given up'
            when h.deferred_until = 'infinity' then 'parked'
            when h.deferred_until > now() then 'deferred'
            when not h.has_new then 'asleep'
            when h.held_by is not null and h.polite_at > now() then 'held'
            when h.ready_at > now() then 'resting'
            else 'ready' end as state,
       h.note,
       h.claimed as visits,
       n.new_tasks,
       coalesce(h.delay_ms, h.crawl_delay_ms) as delay_ms,
       h.failures,
       h.pauses,
       nullif(h.deferred_until, 'infinity') as deferred_until,
       h.given_up_at,
       r.http_status as robots_status,
       r.fetched_at as robots_fetched_at,
       h.id as host_id
from hosts h
left join robots r on r.host_id = h.id
left join lateral (
    select count(*) as new_tasks
    from (select from tasks t where t.host_id = h.id and t.status = 'new' limit 1000) t
) n on true;

comment on view host_progress is 'One row a host. Cheap with a condition on authority or host_id, or with a limit; new_tasks stops counting at 1,000.';

create view failures as
select reason,
       count(*) as tasks,
       count(available_at) as waiting,
       min(available_at) as next_try_at,
       min(url) as example
from tasks
where status = 'failed'
group by reason
order by count(*) desc;

comment on view failures is 'Failed tasks by class. waiting: how many of them will be tried again.';

create view recent_pages as
select p.fetched_at,
       p.http_status,
       p.error,
       t.url,
       p.title,
       p.fetch_ms,
       p.body_bytes,
       t.depth,
       p.task_id
from (select * from pages order by fetched_at desc limit 100) p
cross join lateral (select url, depth from tasks where id = p.task_id limit 1) t    -- a lookup a page, never a walk over both tables
order by p.fetched_at desc;

comment on view recent_pages is 'The last hundred visits, the youngest first.';

create view queue_health as
select o.oldest_new_task_at,
       o.longest_ready_since,
       (select min(claimed_at) from tasks where status = 'claimed') as oldest_claim_at,
       c.claim_p50_ms,
       c.claim_p99_ms,
       d.dead_tasks,
       d.dead_hosts,
       d.tasks_bytes,
       d.hosts_bytes,
       d.pages_bytes,
       pg_database_size(current_database()) as database_bytes,
       s.pid as oldest_snapshot_pid,
       s.started_at as oldest_snapshot_at,
       age(b.datfrozenxid) as xid_age,
       mxid_age(b.datminmxid) as multixact_age
from (select min(t.discovered_at) as oldest_new_task_at,
             min(h.ready_at) filter (where h.ready_at <= now()) as longest_ready_since
      from (select id, ready_at from hosts where has_new order by ready_at limit 100) h
      left join lateral (
          select discovered_at from tasks where host_id = h.id and status = 'new' order by priority, id limit 1
      ) t on true) o
cross join (select max(claim_p50_ms) as claim_p50_ms, max(claim_p99_ms) as claim_p99_ms
            from worker_reports
            where reported_at > now() - interval '1 minute') c
cross join (select max(n_dead_tup) filter (where relid = 'tasks'::regclass) as dead_tasks,
                   max(n_dead_tup) filter (where relid = 'hosts'::regclass) as dead_hosts,
                   pg_total_relation_size('tasks') as tasks_bytes,
                   pg_total_relation_size('hosts') as hosts_bytes,
                   pg_total_relation_size('pages') as pages_bytes
            from pg_stat_user_tables
            where relid in ('tasks'::regclass, 'hosts'::regclass)) d
cross join pg_database b
left join lateral (
    select a.pid, coalesce(a.xact_start, a.backend_start) as started_at
    from pg_stat_activity a
    where a.backend_xmin is not null
      and a.pid <> pg_backend_pid()
    order by age(a.backend_xmin) desc, a.xact_start
    limit 1
) s on true
where b.datname = current_database();

comment on view queue_health is
    'One row. oldest_new_task_at looks at the first new task of the hundred hosts that wait longest; claim times are those of the slowest worker in the last minute; an old snapshot keeps vacuum from removing dead rows.';

create view blocked as
select a.pid,
       a.application_name,
       now() - a.query_start as waiting,
       a.wait_event_type,
       a.wait_event,
       left(a.query, 200) as query,
       b.pid as blocked_by,
       b.application_name as blocker,
       b.state as blocker_state,
       left(b.query, 200) as blocker_query
from pg_stat_activity a
cross join lateral unnest(pg_blocking_pids(a.pid)) as p (pid)
join pg_stat_activity b on b.pid = p.pid
where a.datname = current_database();

comment on view blocked is 'Who waits for whom, now.';
