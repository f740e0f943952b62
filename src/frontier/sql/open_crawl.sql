-- Begins the crawl, where none was begun, with all that its machines agree on: in one statement, so that nobody joins between. The first start
-- decides; of the keys only those are written that are not there. $1 version of the canonicaliser, $2 keys, $3 values
with begun as (
    insert into crawl (canon_version)
    values ($1)
    on conflict do nothing
)
insert into settings (key, value, version)
select n.key, n.value, coalesce((select settings_version from crawl), 0)
from unnest($2::text[], $3::jsonb[]) as n (key, value)
order by n.key
on conflict do nothing
