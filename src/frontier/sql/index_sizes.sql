-- Indexes of the crawl's tables that are in use. $1 names (null = all)
select c.relname::text as "name!",
       pg_relation_size(c.oid) as "bytes!"
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_class t on t.oid = i.indrelid
where t.relnamespace = current_schema()::regnamespace
  and t.relkind = 'r'
  and t.relname !~ '^_'    -- the migrator's own
  and i.indisvalid
  and ($1::text[] is null or c.relname = any ($1::text[]))
order by c.relname
