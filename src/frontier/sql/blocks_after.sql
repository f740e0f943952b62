-- What changed in the block lists since a change. $1 its number
select e.change,
       e.list_id as list,
       e.entry,
       e.gone_at is null as "is_listed!",
       exists (select from block_entries o where o.entry = e.entry and o.gone_at is null) as "counts!"
from block_entries e
where e.change > $1
order by e.change
limit 10000
