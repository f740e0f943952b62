-- Rules of the key that a crawl may have beside those that always hold, and what must not be visited whatever the scope says.

-- A crawl that was begun without them has digests that were made without: it keeps to that.
insert into settings (key, value)
select n.key, n.value
from (values ('canon.strip_session_ids', '"off"'::jsonb),
             ('canon.strip_tracking', '"off"'),
             ('canon.ignore_params', '[]')) as n (key, value)
where exists (select from crawl)
on conflict do nothing;

-- Block and opt-out lists are files of some machine; what they say holds for all, so it is here.
create table block_lists (
    id      int generated always as identity,
    name    text not null,
    read_at timestamptz not null default now(),
    constraint block_lists_pkey primary key (id),
    constraint block_lists_name_key unique (name)
);

create sequence block_changes;

create table block_entries (
    entry    text not null,
    list_id  int not null,
    line     int not null,
    change   bigint not null,
    added_at timestamptz not null default now(),
    gone_at  timestamptz,
    constraint block_entries_pkey primary key (entry, list_id),
    constraint block_entries_list_fkey foreign key (list_id) references block_lists (id) on delete cascade,
    constraint block_entries_length check (length(entry) between 1 and 2100)    -- a btree entry over 2,700 bytes errors
);

create index block_entries_change on block_entries (change);

comment on table  block_lists is 'Files of hosts and URLs that must not be visited: one row a file and machine that reads it.';
comment on column block_lists.name is 'Machine and path. Entries count until the file has them no more, also when that machine is gone: see docs/OPERATING.md.';
comment on column block_lists.read_at is 'When its last change was taken over.';
comment on table  block_entries is 'What must not be visited: a row an entry and list. An entry counts as long as one list has it.';
comment on column block_entries.entry is 'A host, with or without a port; *.name; or host and path, as example.org/private.';
comment on column block_entries.line is 'Where it stands in the file, counted from 1, when it was added.';
comment on column block_entries.change is 'Number of its last change, in the order of the commits: who knows all up to one asks for those above.';
comment on column block_entries.gone_at is 'When the list had it no more; null = it has it.';

-- One writer at a time, so that numbers become visible in their order.
create function block(list int, entries text[], lines int[])
    returns void
    language plpgsql
    set search_path from current
as $$
begin
    perform pg_advisory_xact_lock('block_entries'::regclass::bigint);
    insert into block_entries as e (entry, list_id, line, change)
    select n.entry, list, n.line, nextval('block_changes')
    from unnest(entries, lines) as n (entry, line)
    order by n.entry
    on conflict (entry, list_id) do update
    set line     = excluded.line,
        change   = excluded.change,
        added_at = now(),
        gone_at  = null
    where e.gone_at is not null;
    update block_lists set read_at = now() where id = list;
end
$$;

create function unblock(list int, entries text[])
    returns void
    language plpgsql
    set search_path from current
as $$
begin
    perform pg_advisory_xact_lock('block_entries'::regclass::bigint);
    update block_entries
    set gone_at = now(),
        change  = nextval('block_changes')
    where list_id = list
      and entry = any (entries)
      and gone_at is null;
    update block_lists set read_at = now() where id = list;
end
$$;
