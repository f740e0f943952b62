-- The frontier: hosts, tasks, and the workers that claim them.
-- The protocol that these tables carry is told in src/frontier/mod.rs. No schema is named: search_path decides,
-- and the functions remember the one they were created in.

create type task_status as enum ('new', 'claimed', 'done', 'failed', 'excluded');

create table hosts (
    id              int generated always as identity,
    authority       text not null,
    has_new         boolean not null default false,
    delay_ms        int,
    crawl_delay_ms  int,
    -- Two reasons to wait, kept apart so that neither writer can undo the other: a release must not end an operator's pause.
    polite_at       timestamptz not null default now(),
    deferred_until  timestamptz,
    ready_at        timestamptz not null generated always as (greatest(polite_at, deferred_until)) stored,
    held_by         int,
    hold_version    int not null default 0,
    robots_until    timestamptz,
    low_priority    smallint not null default '-32768',
    low_id          bigint not null default 0,
    low_since       timestamptz not null default '-infinity',
    failures        smallint not null default 0,
    pauses          smallint not null default 0,
    robots_failures smallint not null default 0,
    given_up_at     timestamptz,
    claimed         bigint not null default 0,
    note            text,
    constraint hosts_pkey primary key (id),
    constraint hosts_authority_key unique (authority),
    constraint hosts_authority_length check (length(authority) between 1 and 300),    -- a btree entry over 2,700 bytes errors
    constraint hosts_delay_not_negative check (delay_ms >= 0 and crawl_delay_ms >= 0),
    constraint hosts_failures_not_negative check (failures >= 0 and pauses >= 0 and robots_failures >= 0)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

create index hosts_ready on hosts (ready_at) where has_new;
create index hosts_held  on hosts (held_by)  where held_by is not null;

comment on table  hosts is 'One row a scheme + host + port. The gate of politeness: whoever fetches from a host with a delay holds this row''s hold.';
comment on column hosts.authority is 'scheme://host[:port], the port left out where it is the scheme''s own.';
comment on column hosts.has_new is 'True whenever some task of it is new. May be true for nothing (park_hosts corrects that), never false for something.';
comment on column hosts.delay_ms is 'An operator''s own delay for this host, from the end of a fetch to the start of the next; null = the greater of the crawl''s and crawl_delay_ms.';
comment on column hosts.crawl_delay_ms is 'Crawl-delay of its robots.txt; null = none.';
comment on column hosts.polite_at is 'While held: when the hold ends by itself (lease + delay). Else: end of the last fetch + delay.';
comment on column hosts.deferred_until is 'Retry-After, breaker, or an operator''s pause (''infinity''); null = none. Written by nobody but those.';
comment on column hosts.ready_at is 'No machine may claim from it before. Generated, so that it cannot be set past a hold by mistake.';
comment on column hosts.held_by is 'The worker whose claim holds it (with a delay, or while its robots.txt is due). May be stale once polite_at is over.';
comment on column hosts.hold_version is 'Counts holds; fences the release, since the same worker may hold it twice.';
comment on column hosts.robots_until is 'Until when its robots.txt in table robots counts; null = never fetched. Past it, the next claim holds the host and fetches it first.';
comment on column hosts.low_id is 'Low-water mark (low_priority, low_id): the claim looks behind it only. A hint: see park_hosts, wake_hosts, low_since.';
comment on column hosts.low_since is 'When the claim last started from the bottom. An old mark is ignored, so what slipped behind it is found.';
comment on column hosts.failures is 'Host-level failures in a row (DNS, refused, timeout, reset).';
comment on column hosts.pauses is 'Breaker pauses in a row; one more than there are pauses and the host is given up.';
comment on column hosts.robots_failures is 'Deferrals in a row because robots.txt could not be had.';
comment on column hosts.given_up_at is 'Since when its tasks are failed without a fetch; null = not given up.';
comment on column hosts.claimed is 'Tasks ever claimed of it. Written by the claim alone.';
comment on column hosts.note is 'Why it waits or was given up, in words.';

create table tasks (
    id            bigint generated always as identity,
    url_digest    uuid not null,
    claimed_at    timestamptz,
    available_at  timestamptz,
    discovered_at timestamptz not null default now(),
    via           bigint,
    host_id       int not null,
    claim_version int not null default 0,
    begun_version int,
    claimed_by    int,
    status        task_status not null default 'new',
    priority      smallint not null default 0,
    depth         smallint not null default 0,
    hops          smallint not null default 0,
    attempts      smallint not null default 0,
    expiries      smallint not null default 0,
    deferrals     smallint not null default 0,
    url           text not null,
    reason        text,
    detail        text,
    constraint tasks_pkey primary key (id),
    constraint tasks_host_id_fkey foreign key (host_id) references hosts (id),
    constraint tasks_url_given check (url <> ''),
    constraint tasks_claimed_whole check (
        (status = 'claimed') = (claimed_by is not null) and (status = 'claimed') = (claimed_at is not null)),
    constraint tasks_due_when_ended check (available_at is null or status in ('done', 'failed')),
    constraint tasks_counts_not_negative check (attempts >= 0 and expiries >= 0 and deferrals >= 0 and claim_version >= 0 and depth >= 0 and hops >= 0)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01);

create unique index tasks_url on tasks (host_id, url_digest);
create index tasks_new     on tasks (host_id, priority, id) where status = 'new';
create index tasks_claimed on tasks (claimed_at)            where status = 'claimed';
create index tasks_due     on tasks (available_at)          where available_at is not null;
create index tasks_failed  on tasks (reason)                where status = 'failed';

comment on table  tasks is 'One row a URL: what is to be, is being, and was visited.';
comment on column tasks.url is 'What is asked for: as linked, without fragment. Not the identity.';
comment on column tasks.url_digest is 'The identity within the host: the first 128 bits of SHA-256 of the canonical URL. pgcrawl explain URL shows it.';
comment on column tasks.discovered_at is 'When the URL was found first.';
comment on column tasks.via is 'The task on whose page it was found first; null = a seed. No foreign key: it would lock a row of another visit.';
comment on column tasks.priority is 'Lower first, within its host.';
comment on column tasks.depth is 'Links followed from a seed. A redirect is not a link.';
comment on column tasks.hops is 'Redirects in a row that led here.';
comment on column tasks.attempts is 'Claims that were not given back and not put off by the server; a revisit starts from 0.';
comment on column tasks.expiries is 'Leases lost in a row: the first whatever became of it, further ones only where the fetch had begun. An accepted finish sets it to 0. At the cap the task is failed with reason poison.';
comment on column tasks.begun_version is 'The claim of which the fetch was begun. Noted only for tasks that lost a lease before: they are the ones that may kill their worker.';
comment on column tasks.deferrals is 'Answers that asked for patience (429, 503 with Retry-After) and were not charged as attempts.';
comment on column tasks.claim_version is 'Counts claims; with claimed_by it fences the finish.';
comment on column tasks.available_at is 'When it becomes new again (retry of failed, revisit of done); null = never.';
comment on column tasks.reason is 'Why it is failed or excluded (a class of error, robots, poison, host_down …), or, done, why its redirect was not followed.';
comment on column tasks.detail is 'More of the reason: the line of robots.txt, the words of the error.';

create table workers (
    id              int generated always as identity,
    name            text not null,
    version         text not null,
    machine         text not null,
    host_name       text not null,
    pid             int not null,
    process_started text not null,
    started_at      timestamptz not null default now(),
    heartbeat       timestamptz not null default now(),
    stopped_at      timestamptz,
    cleared_at      timestamptz,
    constraint workers_pkey primary key (id),
    constraint workers_cleared_when_stopped check (cleared_at is null or stopped_at is not null)
) with (fillfactor = 50);

create index workers_uncleared on workers (id) where cleared_at is null;

create table worker_counts (
    worker_id  int not null,
    seeded     bigint not null default 0,
    discovered bigint not null default 0,
    done       bigint not null default 0,
    failed     bigint not null default 0,
    retried    bigint not null default 0,
    excluded   bigint not null default 0,
    refused    bigint not null default 0,
    bytes      bigint not null default 0,
    constraint worker_counts_pkey primary key (worker_id)
) with (fillfactor = 50);

create table worker_reports (
    worker_id         int not null,
    reported_at       timestamptz not null default now(),
    in_flight         int not null default 0,
    visits_last_minute int not null default 0,
    claim_p50_ms      real,
    claim_p99_ms      real,
    constraint worker_reports_pkey primary key (worker_id)
) with (fillfactor = 50);

comment on table  workers is 'One row a process and start. An id is never used again.';
comment on column workers.machine is 'Names the boot of the machine and its process namespace: a worker of the same machine can see at once that a process is gone.';
comment on column workers.process_started is 'When the process began, as its system tells it: tells a pid from its next bearer.';
comment on column workers.stopped_at is 'It left, or was declared dead. Final: a process that finds it set registers anew.';
comment on column workers.cleared_at is 'Since then no task is claimed by it; before that the recycling looks for some.';
comment on table  worker_counts is 'What each process added, in the statement that it counts. Apart from workers: a finish that waits must not hold up the heartbeat.';
comment on column worker_counts.seeded is 'Tasks made from seeds.';
comment on column worker_counts.discovered is 'Tasks made from links and redirects.';
comment on column worker_counts.refused is 'Visits whose lease was lost. Exact for the database, not for the worker: a finish repeated after a lost answer is refused.';
comment on table  worker_reports is 'What each process says of its last minute, every few seconds. A help for the eye; nothing depends on it.';

-- Wakes hosts of new tasks, and lowers their low-water mark to just before the best of these. One element a host.
create function wake_hosts(host_ids int[], priorities smallint[], task_ids bigint[])
    returns void
    language plpgsql
    set search_path from current
    set enable_seqscan = off    -- plans cached in an empty table would read a full one
as $$
declare
    locked int[];
begin
    -- The check below must see what a park committed: only READ COMMITTED takes a new snapshot for it.
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'tasks can be written under READ COMMITTED only'
            using errcode = 'invalid_transaction_state', hint = 'set transaction isolation level read committed';
    end if;

    -- From here to the commit no park can lock these rows (key share against for update); it conflicts with nothing else.
    -- The foreign key takes the same lock on insert. It is taken here too, so that waking does not hang on a foreign key.
    perform 1
    from hosts
    where id = any (host_ids)
    order by id
    for key share;

    -- In id order, so that two that wake the same hosts cannot deadlock. Most hosts are awake: then nothing is locked.
    select array_agg(id)
    into locked
    from (select h.id
          from hosts h
          join unnest(host_ids, priorities, task_ids) as w (host_id, priority, task_id) on w.host_id = h.id
          where h.id = any (host_ids)
            and (not h.has_new or (w.priority, w.task_id) <= (h.low_priority, h.low_id))
          order by h.id
          for no key update of h) s;

    -- Those alone: while we waited, a claim may have moved the mark of another past our task, and to lock that one now would be out of order.
    -- Parking, or the age of the mark, finds what is behind it.
    if locked is not null then
        update hosts h
        set has_new      = true,
            polite_at    = case when h.has_new then h.polite_at else greatest(h.polite_at, now()) end,
            low_priority = case when (w.priority, w.task_id) <= (h.low_priority, h.low_id) then w.priority else h.low_priority end,
            low_id       = case when (w.priority, w.task_id) <= (h.low_priority, h.low_id) then w.task_id - 1 else h.low_id end
        from unnest(host_ids, priorities, task_ids) as w (host_id, priority, task_id)
        where h.id = any (locked)
          and h.id = w.host_id
          and (not h.has_new or (w.priority, w.task_id) <= (h.low_priority, h.low_id));
    end if;
end
$$;

-- One function for insert and update: both see their new rows as `changed`. An update is watched whole (a statement trigger) and not row by
-- row: hosts are locked in order, a host is woken once and not a thousand times, and a better priority or another host counts as well.
create function tasks_changed()
    returns trigger
    language plpgsql
    set search_path from current
as $$
declare
    host_ids   int[];
    priorities smallint[];
    task_ids   bigint[];
begin
    select array_agg(c.host_id), array_agg(c.priority), array_agg(c.id)
    into host_ids, priorities, task_ids
    from (select distinct on (host_id) host_id, priority, id
          from changed
          where status = 'new'
          order by host_id, priority, id) c;
    if host_ids is not null then    -- a claim and a finish leave none
        perform wake_hosts(host_ids, priorities, task_ids);
    end if;
    return null;
end
$$;

create trigger tasks_inserted
    after insert on tasks
    referencing new table as changed
    for each statement execute function tasks_changed();

create trigger tasks_updated
    after update on tasks
    referencing new table as changed
    for each statement execute function tasks_changed();

-- What an operator types sets the status alone. The columns that belong to the old status go with it. Never runs for the protocol's statements.
create function task_tidied()
    returns trigger
    language plpgsql
as $$
begin
    if new.status <> 'claimed' then
        new.claimed_by := null;
        new.claimed_at := null;
    end if;
    if new.status not in ('done', 'failed') then
        new.available_at := null;
    end if;
    return new;
end
$$;

create trigger task_tidied
    before update on tasks
    for each row
    when (new.status <> 'claimed' and (new.claimed_by is not null or new.claimed_at is not null)
          or new.status not in ('done', 'failed') and new.available_at is not null)
    execute function task_tidied();

-- Puts hosts that a claim reported empty to sleep. Never waits. Returns how many sleep now.
create function park_hosts(host_ids int[])
    returns int
    language plpgsql
    set search_path from current
    set enable_seqscan = off
as $$
declare
    locked int[];
    parked int;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'hosts can be parked under READ COMMITTED only' using errcode = 'invalid_transaction_state';
    end if;

    -- Something new lies behind the mark: look from the bottom next time. The weaker lock, so that it works while somebody inserts.
    update hosts h
    set low_priority = '-32768',
        low_id       = 0
    from (select id
          from hosts
          where id = any (host_ids)
            and has_new
            and (low_priority, low_id) > ('-32768'::smallint, 0)
            and exists (select from tasks t where t.host_id = hosts.id and t.status = 'new' offset 0)    -- else a plan may read all new tasks
          order by id
          for no key update skip locked) s
    where h.id = any (host_ids)
      and h.id = s.id;

    -- First the lock, which nobody gets who has new tasks uncommitted …
    select array_agg(id)
    into locked
    from (select id
          from hosts
          where id = any (host_ids)
            and has_new
          order by id
          for update skip locked) s;

    -- … then the look, in a statement of its own: its snapshot is younger than the lock.
    update hosts h
    set has_new      = false,
        low_priority = '-32768',
        low_id       = 0
    where h.id = any (locked)
      and not exists (select from tasks t where t.host_id = h.id and t.status = 'new' offset 0);
    get diagnostics parked = row_count;
    return parked;
end
$$;
