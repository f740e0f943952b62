-- What operators work with: a view to choose tasks by, what vacuum is told of each table, and whether it gets through.

-- One name for each column that a condition may ask, so that the same words do in psql, and for retry, requeue, exclude and reprioritise.
create view visits as
select t.url,
       t.status,
       p.http_status,
       t.reason,
       t.detail,
       p.error,
       h.authority,
       t.depth,
       t.hops,
       t.priority,
       t.attempts,
       t.expiries,
       t.deferrals,
       t.discovered_at,
       t.available_at,
       p.fetched_at,
       p.fetch_ms,
       p.content_type,
       p.charset,
       p.lang,
       p.title,
       p.links,
       p.wire_bytes,
       p.body_bytes,
       p.truncated,
       p.final_url,
       p.redirect_to,
       p.canonical_url,
       t.via,
       t.claim_version,
       t.id as task_id,
       t.host_id
from tasks t
join hosts h on h.id = t.host_id
left join pages p on p.task_id = t.id;

comment on view visits is
    'One row a task, with its host and its last visit: what a condition of pgcrawl retry, requeue, exclude and reprioritise may ask. Try one first: select * from visits where …';
comment on column visits.authority is 'The host: scheme://host[:port].';
comment on column visits.http_status is 'Of the last visit; null = not visited, or no answer.';
comment on column visits.error is 'Class of the error of the last visit; null = an answer was had, or not visited.';
comment on column visits.via is 'The task on whose page it was found first; null = a seed.';

-- Vacuum by the part that is dead, and sooner than the 20 % of the default: a revisit rewrites rows of kilobytes, and a fifth of a large table is
-- more than the whole queue. Rows that are only inserted are frozen in steps as well.
alter table pages set (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.05,
    toast.autovacuum_vacuum_scale_factor = 0.05
);
alter table bodies set (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    toast.autovacuum_vacuum_scale_factor = 0.05
);
alter table robots set (
    autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_scale_factor = 0.05
);

-- A row a process, rewritten for as long as it runs: by each finish, each report, each heartbeat. The default (50 dead rows and a fifth of the
-- living) wakes a vacuum each time it looks; HOT updates prune themselves, and these tables stay in a few pages either way. But no share of the rows of
-- processes long gone.
alter table workers        set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
alter table worker_counts  set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table worker_reports set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
alter table task_counts    set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- All of it is dead every few seconds. To give the empty end of the file back takes a lock that every claim and finish would wait for, and the
-- file grows again at once.
alter table task_count_changes set (vacuum_truncate = false);

-- What keeps vacuum from removing dead rows of this database: whatever may still see them. Sessions of other databases do not.
create view snapshots as
select 'session'::text as kind,
       a.pid,
       a.application_name as name,
       coalesce(a.xact_start, a.backend_start) as since,
       greatest(age(a.backend_xmin), age(a.backend_xid)) as xids,
       a.state
from pg_stat_activity a
where a.datname = current_database()
  and (a.backend_xmin is not null or a.backend_xid is not null)
  and a.pid <> pg_backend_pid()
  and a.backend_type <> 'walsender'
  and not (a.backend_type = 'autovacuum worker' and a.query like 'autovacuum: VACUUM%')    -- holds back no other vacuum
union all
select 'standby', r.pid, r.application_name, r.backend_start, age(r.backend_xmin), r.state
from pg_stat_replication r
where r.backend_xmin is not null
union all
select 'replication slot', s.active_pid, s.slot_name, null, age(s.xmin), case when s.active then 'active' else 'inactive' end
from pg_replication_slots s
where s.xmin is not null
union all
select 'prepared transaction', null, x.gid, x.prepared, age(x.transaction), null
from pg_prepared_xacts x
where x.database = current_database();

comment on view snapshots is
    'One row for whatever keeps vacuum from removing dead rows, as far as the role may see it (pg_monitor sees all). The one with the most xids holds it back the most.';
comment on column snapshots.kind is 'session (end it: pg_terminate_backend), standby (hot_standby_feedback), replication slot (pg_drop_replication_slot), prepared transaction (commit or rollback prepared).';
comment on column snapshots.name is 'application_name, name of the slot, or gid.';
comment on column snapshots.since is 'When the transaction began, the standby connected, or the transaction was prepared; null = not known.';
comment on column snapshots.xids is 'Its age in transactions.';

-- Class by class: else it would sort all hosts that have something.
create view queue_health as
select o.oldest_new_task_at,
       o.longest_ready_since,
       (select min(claimed_at) from tasks where status = 'claimed') as oldest_claim_at,
       c.claim_p50_ms,
       c.claim_p99_ms,
       d.dead_tasks,
       d.dead_hosts,
       round(d.dead_tasks::numeric / greatest(d.live_tasks, 1), 3) as dead_tasks_ratio,
       round(d.dead_hosts::numeric / greatest(d.live_hosts, 1), 3) as dead_hosts_ratio,
       d.tasks_vacuumed_at,
       d.hosts_vacuumed_at,
       -- Far above where it should have begun, and it either did not run for long or something older does not let it remove anything.
       coalesce(
       (d.dead_tasks > 100000 and d.dead_tasks > 0.1 * d.live_tasks
            and (coalesce(d.tasks_vacuumed_at, w.began_at) < now() - interval '5 minutes' or s.since < now() - interval '5 minutes'))
       or (d.dead_hosts > 20000
            and (coalesce(d.hosts_vacuumed_at, w.began_at) < now() - interval '5 minutes' or s.since < now() - interval '5 minutes')), false) as vacuum_behind,
       s.kind as oldest_snapshot_kind,
       s.pid as oldest_snapshot_pid,
       s.name as oldest_snapshot_name,
       s.since as oldest_snapshot_at,
       now() - s.since as oldest_snapshot_age,
       s.xids as oldest_snapshot_xids,
       i.hosts_ready_bytes,
       i.tasks_new_bytes,
       d.tasks_bytes,
       d.hosts_bytes,
       d.pages_bytes,
       pg_database_size(current_database()) as database_bytes,
       age(b.datfrozenxid) as xid_age,
       mxid_age(b.datminmxid) as multixact_age
from (select min(t.discovered_at) as oldest_new_task_at,
             min(h.ready_at) filter (where h.ready_at <= now()) as longest_ready_since
      from (values (0::smallint), (1::smallint), (2::smallint)) as c (priority)    -- class by class: else it would sort all hosts that have something
      cross join lateral (select id, ready_at from hosts where has_new and priority = c.priority order by ready_at limit 100) h
      left join lateral (
          select discovered_at from tasks where host_id = h.id and status = 'new' order by priority, id limit 1
      ) t on true) o
cross join (select max(claim_p50_ms) as claim_p50_ms, max(claim_p99_ms) as claim_p99_ms
            from worker_reports
            where reported_at > now() - interval '1 minute') c
cross join (select max(n_dead_tup) filter (where relid = 'tasks'::regclass) as dead_tasks,
                   max(n_dead_tup) filter (where relid = 'hosts'::regclass) as dead_hosts,
                   max(n_live_tup) filter (where relid = 'tasks'::regclass) as live_tasks,
                   max(n_live_tup) filter (where relid = 'hosts'::regclass) as live_hosts,
                   max(greatest(last_autovacuum, last_vacuum)) filter (where relid = 'tasks'::regclass) as tasks_vacuumed_at,
                   max(greatest(last_autovacuum, last_vacuum)) filter (where relid = 'hosts'::regclass) as hosts_vacuumed_at,
                   pg_total_relation_size('tasks') as tasks_bytes,
                   pg_total_relation_size('hosts') as hosts_bytes,
                   pg_total_relation_size('pages') as pages_bytes
            from pg_stat_user_tables
            where relid in ('tasks'::regclass, 'hosts'::regclass)) d
cross join (select max(pg_relation_size(c.oid)) filter (where c.relname = 'hosts_ready') as hosts_ready_bytes,
                   max(pg_relation_size(c.oid)) filter (where c.relname = 'tasks_new') as tasks_new_bytes
            from pg_index x
            join pg_class c on c.oid = x.indexrelid    -- by name: a reindex makes another one
            where x.indrelid in ('tasks'::regclass, 'hosts'::regclass)) i
cross join (select coalesce(min(started_at), now()) as began_at from workers) w
cross join pg_database b
left join lateral (select * from snapshots order by xids desc, since limit 1) s on true
where b.datname = current_database();

comment on view queue_health is
    'One row. oldest_new_task_at looks at the first new task of the hundred hosts of each class that wait longest; claim times are those of the slowest worker in the last minute. vacuum_behind: dead rows pile up, and oldest_snapshot_* names what holds vacuum back, if anything does.';
comment on column queue_health.dead_tasks_ratio is 'Dead rows for each living one.';
comment on column queue_health.vacuum_behind is 'Dead rows are ten times what should start an autovacuum, and it did not run for five minutes or something older than that keeps it from removing them.';
comment on column queue_health.oldest_snapshot_kind is 'See view snapshots.';
comment on column queue_health.hosts_ready_bytes is 'The index that claims begin with; pgcrawl reindex makes it small again.';
