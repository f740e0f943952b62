-- What a concurrent reindex leaves behind that was cut off.
select c.relname::text as "name!"
from pg_index i
join pg_class c on c.oid = i.indexrelid
where c.relnamespace = current_schema()::regnamespace
  and not i.indisvalid
  and c.relname ~ '_cc(new|old)\d*$'
order by c.relname
