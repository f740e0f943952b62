-- The settings and their version, in one snapshot; no row where no crawl was begun.
select c.canon_version,
       c.settings_version,
       coalesce(s.keys, '{}') as "keys!",
       coalesce(s.values, '{}') as "values!",
       coalesce((select max(id) from scope_rules), 0) as "last_rule!"
from crawl c
cross join (select array_agg(key) as keys, array_agg(value) as values from settings) s
