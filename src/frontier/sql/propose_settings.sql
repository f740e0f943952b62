-- The first start decides; what is there stays. $1 keys, $2 values
insert into settings (key, value, version)
select n.key, n.value, c.settings_version
from unnest($1::text[], $2::jsonb[]) as n (key, value)
cross join crawl c
order by n.key
on conflict do nothing
