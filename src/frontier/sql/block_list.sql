-- The number of a block list, made where it is not there yet. $1 name
with made as (
    insert into block_lists (name)
    select $1
    where not exists (select from block_lists where name = $1)
    on conflict (name) do update    -- another process has made it since this statement began: to do nothing would answer nothing
    set name = excluded.name
    returning id
)
select coalesce((select id from made), (select id from block_lists where name = $1)) as "id!"
