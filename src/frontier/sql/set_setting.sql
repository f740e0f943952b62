-- Changes a setting. The version is that of the values that the new one was judged by: no row if others have changed one meanwhile.
-- $1 key, $2 value, $3 version
with counted as (
    update crawl
    set settings_version = settings_version + 1
    where settings_version = $3
    returning settings_version
)
insert into settings (key, value, version)
select $1, $2, settings_version
from counted
on conflict (key) do update
set value      = excluded.value,
    version    = excluded.version,
    changed_at = now()
returning version
