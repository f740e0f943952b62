-- How many tasks stand at each status, without counting them.
--
-- The statement triggers note the net change of each statement as an appended row: no hot row, nobody waits. Upkeep folds them into one row
-- every few seconds. So the sums are exact in every snapshot, also after an UPDATE or DELETE typed in psql.

create table task_counts (
    id       boolean not null default true,
    new      bigint not null default 0,
    claimed  bigint not null default 0,
    done     bigint not null default 0,
    failed   bigint not null default 0,
    excluded bigint not null default 0,
    constraint task_counts_pkey primary key (id),
    constraint task_counts_is_one check (id)
) with (fillfactor = 50);

create table task_count_changes (
    new      int not null,
    claimed  int not null,
    done     int not null,
    failed   int not null,
    excluded int not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

comment on table task_counts is 'Tasks by status up to the last fold. Add task_count_changes, or ask the view progress.';
comment on table task_count_changes is 'Net changes since the last fold, one row a statement.';

insert into task_counts default values;

create function tasks_counted()
    returns trigger
    language plpgsql
    set search_path from current
as $$
begin
    if tg_op = 'INSERT' then
        insert into task_count_changes
        select count(*) filter (where status = 'new'),
               count(*) filter (where status = 'claimed'),
               count(*) filter (where status = 'done'),
               count(*) filter (where status = 'failed'),
               count(*) filter (where status = 'excluded')
        from came
        having count(*) > 0;
    elsif tg_op = 'DELETE' then
        insert into task_count_changes
        select -count(*) filter (where status = 'new'),
               -count(*) filter (where status = 'claimed'),
               -count(*) filter (where status = 'done'),
               -count(*) filter (where status = 'failed'),
               -count(*) filter (where status = 'excluded')
        from went
        having count(*) > 0;
    elsif tg_op = 'UPDATE' then
        insert into task_count_changes
        select sum(n) filter (where status = 'new'),
               sum(n) filter (where status = 'claimed'),
               sum(n) filter (where status = 'done'),
               sum(n) filter (where status = 'failed'),
               sum(n) filter (where status = 'excluded')
        from (select 0 as n, s as status from unnest(enum_range(null::task_status)) s    -- so that no sum is null
              union all
              select 1, status from came
              union all
              select -1, status from went) moved
        having count(*) filter (where n = 1) > 0;
    else    -- truncate
        delete from task_count_changes;
        update task_counts set new = 0, claimed = 0, done = 0, failed = 0, excluded = 0;
    end if;
    return null;
end
$$;

create trigger tasks_counted_insert
    after insert on tasks
    referencing new table as came
    for each statement execute function tasks_counted();

create trigger tasks_counted_update
    after update on tasks
    referencing old table as went new table as came
    for each statement execute function tasks_counted();

create trigger tasks_counted_delete
    after delete on tasks
    referencing old table as went
    for each statement execute function tasks_counted();

create trigger tasks_counted_truncate
    after truncate on tasks
    for each statement execute function tasks_counted();
