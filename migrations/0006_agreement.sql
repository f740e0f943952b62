-- What all machines of a crawl agree on, key by key and versioned; the pause; classes of hosts; what their answers taught us about their pace.
--
-- A claim names the version of the settings that its process knows, and takes nothing under another one or in a pause: so nothing is claimed
-- under old values once a change is committed, whenever each machine hears of it. What was claimed before is finished under them.

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

-- An operator's park gets a column of its own: what a server asked for meanwhile (Retry-After, the breaker) is not lost by it. The expression of a
-- generated column cannot be changed; its index goes with it. The table is written anew, once, for all of this.
drop view queue_health;    -- comes back with what operators work with
drop view host_progress;

alter table hosts
    add column priority smallint not null default 1,
    add column pace_ms  int,
    add column unheld_until timestamptz,
    add column parked_at timestamptz,
    drop column ready_at,
    add column ready_at timestamptz not null
        generated always as (greatest(polite_at, deferred_until, case when parked_at is not null then timestamptz 'infinity' end)) stored,
    add constraint hosts_priority_class check (priority between 0 and 2),
    add constraint hosts_pace_positive check (pace_ms > 0);

comment on column hosts.ready_at is 'No machine may claim from it before; infinity = parked. Generated, so that it cannot be set past a hold by mistake.';
comment on column hosts.deferred_until is 'Retry-After or breaker; null = none. Written by nobody but those, or by hand: ''infinity'' parks it as well.';
comment on column hosts.parked_at is 'Since when an operator has it parked (pgcrawl park); null = not. Leaves the other reasons to wait alone.';
comment on column hosts.priority is 'Class: 0 before all others, 1 as usual, 2 when nothing else is ready. Orders hosts that are ready; tasks.priority orders within a host.';
comment on column hosts.unheld_until is 'Until when somebody may fetch from it without a hold (it had no delay when it was claimed): who keeps a delay comes after. null = nobody.';
comment on column hosts.pace_ms is 'A longer delay that its answers asked for (429, 503 with Retry-After); wears off with each hold that ends well. Not where its delay is 0.';

create index hosts_ready on hosts (priority, ready_at) where has_new;

create view host_progress as
select h.authority,
       case when h.given_up_at is not null then 'given up'
            when h.parked_at is not null or h.deferred_until = 'infinity' then 'parked'
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
       h.parked_at,
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
