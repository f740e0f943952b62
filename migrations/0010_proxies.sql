-- How the proxies of each process stand: a proxy that fails rests and comes back, and whoever wonders why a crawl is slow should see it here.

create table proxies (
    worker_id   int not null,
    label       text not null,
    state       text not null,
    failures    int not null default 0,
    rests_until timestamptz,
    last_error  text,
    requests    bigint not null default 0,
    failed      bigint not null default 0,
    bytes       bigint not null default 0,
    reported_at timestamptz not null default now(),
    constraint proxies_pkey primary key (worker_id, label),
    constraint proxies_state check (state in ('healthy', 'resting', 'probing')),
    constraint proxies_rest check (rests_until is null or state = 'resting')
) with (fillfactor = 50);

comment on table  proxies is 'One row a process and proxy, written every few seconds while anything changes. A help for the eye; nothing depends on it. Of pages, pages.proxy tells.';
comment on column proxies.label is 'As pages.proxy has it.';
comment on column proxies.state is 'healthy: takes requests. resting: failed, and takes none until rests_until. probing: its rest is over, and the next request shows whether it works again.';
comment on column proxies.failures is 'In a row.';
comment on column proxies.last_error is 'Why it failed the last time; stays when it works again.';
comment on column proxies.requests is 'Sent through it since the worker began.';
comment on column proxies.failed is 'Those of them that failed by its own fault. They are neither charged to their pages nor to the hosts.';
comment on column proxies.bytes is 'Payload bytes that came through it, before content coding was undone.';

-- As workers: rewritten for as long as the process runs.
alter table proxies set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
