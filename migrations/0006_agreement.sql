-- What all machines of a crawl agree on, key by key and versioned; the pause; classes of hosts; what their answers taught us about their pace.
--
-- A claim names the version of the settings that its process knows, and takes nothing under another one or in a pause: so a change is kept by
-- all machines from the moment it is committed, whenever each of them hears of it.

alter table crawl
    add column settings_version int not null default 0,
    add column paused_at        timestamptz;

create table settings (
    key        text not null,
    value      jsonb not null,
    changed_at timestamptz not null default now(),
    version    int not null default 0,
    constraint settings_pkey primary key (key)
);

-- As add_scope_rules, but only under the settings of this version: a rule that was made under another scope must not be read as one of the new.
-- Answers whether they were added.
create function add_scope_rules(rules text[], hosts text[], from_source text, known_version int)
    returns boolean
    language plpgsql
    set search_path from current
as $$
begin
    perform pg_advisory_xact_lock('scope_rules'::regclass::bigint);
    if exists (select from crawl where settings_version <> known_version) then
        return false;
    end if;
    perform add_scope_rules(rules, hosts, from_source);
    return true;
end
$$;

-- Changes a setting that was judged together with those of a version; null if another change came between. A scope comes with its rules, which
-- take the place of the old ones in the same transaction: rules of one kind must not be read as those of another. Null also if rules were added
-- after the last one that the new ones were made by.
create function set_setting(new_key text, new_value jsonb, judged_by int, last_rule int, rules text[], hosts text[], sources text[])
    returns int
    language plpgsql
    set search_path from current
as $$
declare
    new_version int;
begin
    if rules is not null then
        perform pg_advisory_xact_lock('scope_rules'::regclass::bigint);
        if coalesce((select max(id) from scope_rules), 0) <> last_rule then
            return null;
        end if;
    end if;
    update crawl
    set settings_version = settings_version + 1
    where settings_version = judged_by
    returning settings_version into new_version;
    if new_version is null then
        return null;
    end if;

    insert into settings (key, value, version)
    values (new_key, new_value, new_version)
    on conflict (key) do update
    set value      = excluded.value,
        version    = excluded.version,
        changed_at = now();

    if rules is not null then
        delete from scope_rules;
        insert into scope_rules (rule, host, source)
        select distinct on (n.rule, n.host) n.rule, n.host, n.source
        from unnest(rules, hosts, sources) as n (rule, host, source)
        order by n.rule, n.host, n.source desc;    -- seed before redirect
    end if;
    return new_version;
end
$$;

insert into settings (key, value)
select 'crawl.scope', to_jsonb(scope)
from crawl;

alter table crawl
    drop column scope;

comment on table  settings is 'One row a key that all machines must agree on, as config/default.toml marks it. The first start writes them; pgcrawl config set changes them.';
comment on column settings.version is 'crawl.settings_version at which it got this value.';
comment on column crawl.settings_version is 'Counts changes of the settings. Who knows another one claims nothing.';
comment on column crawl.paused_at is 'Since when nobody claims anything (pgcrawl pause); null = not paused.';

alter table hosts
    add column priority smallint not null default 1,
    add column pace_ms  int,
    add column unheld_until timestamptz,
    add constraint hosts_priority_class check (priority between 0 and 2),
    add constraint hosts_pace_positive check (pace_ms > 0);

comment on column hosts.priority is 'Class: 0 before all others, 1 as usual, 2 when nothing else is ready. Orders hosts that are ready; tasks.priority orders within a host.';
comment on column hosts.unheld_until is 'Until when somebody may fetch from it without a hold (it had no delay when it was claimed): who keeps a delay comes after. null = nobody.';
comment on column hosts.pace_ms is 'A longer delay that its answers asked for (429, 503 with Retry-After); wears off with each hold that ends well. Not where its delay is 0.';

drop index hosts_ready;
create index hosts_ready on hosts (priority, ready_at) where has_new;

-- As before, but class by class: else it would sort all hosts that have something.
create or replace view queue_health as
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
      from (values (0::smallint), (1::smallint), (2::smallint)) as c (priority)
      cross join lateral (select id, ready_at from hosts where has_new and priority = c.priority order by ready_at limit 100) h
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
    'One row. oldest_new_task_at looks at the first new task of the hundred hosts of each class that wait longest; claim times are those of the slowest worker in the last minute; an old snapshot keeps vacuum from removing dead rows.';

-- How long a worker counts as living after a heartbeat, and how long its claims last, is what it was told itself: a change of the setting must not bury one that does not know it yet.
alter table workers
    add column dead_after_ms int not null default 90000,
    add column lease_ms      int not null default 120000;

comment on column workers.lease_ms is 'How long its claims last: a shorter lease of others does not end them.';
comment on column workers.dead_after_ms is 'Silence after which it is declared dead; also how long it fetches after a heartbeat at most.';

-- The rate of the whole crawl: a process takes the next stretch of time for so many requests, and nobody else has it.
create table request_rate (
    id          boolean not null default true,
    taken_until timestamptz not null default now(),
    constraint request_rate_pkey primary key (id),
    constraint request_rate_is_one check (id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

insert into request_rate default values;

comment on table request_rate is 'One row: until when the requests of the whole crawl are handed out (politeness.rate). Untouched without a rate.';

-- The gate of addresses, where politeness.ip_delay is set: as hosts is for hosts.
create table addresses (
    ip           inet not null,
    polite_at    timestamptz not null,
    held_by      int,
    hold_version int not null default 0,
    constraint addresses_pkey primary key (ip)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

create index addresses_held on addresses (held_by) where held_by is not null;

comment on table addresses is 'One row an address that was asked while politeness.ip_delay was set. Nobody asks it before polite_at.';

create view worker_progress as
select w.id as worker_id,
       w.name,
       w.host_name,
       w.version,
       case when w.stopped_at is not null then 'stopped'
            when w.heartbeat < now() - make_interval(secs => w.dead_after_ms / 1000.0) then 'silent'
            else 'alive' end as state,
       w.started_at,
       w.heartbeat,
       w.stopped_at,
       case when w.stopped_at is null then r.in_flight else 0 end as in_flight,
       case when w.stopped_at is null and r.reported_at > now() - interval '1 minute' then round(r.visits_last_minute / 60.0, 1) else 0 end as pages_per_second,
       c.done,
       c.failed,
       c.retried,
       c.refused,
       c.bytes
from workers w
left join worker_reports r on r.worker_id = w.id
left join worker_counts c on c.worker_id = w.id;

comment on view worker_progress is 'One row a process and start: who it is, whether it lives, what it does and did.';
