-- Rules of the key that a crawl may have beside those that always hold, and what must not be visited whatever the scope says.

-- A crawl that was begun without them has digests that were made without: it keeps to that.
insert into settings (key, value)
select n.key, n.value
from (values ('canon.strip_session_ids', '"off"'::jsonb),
             ('canon.strip_tracking', '"off"'),
             ('canon.ignore_params', '[]')) as n (key, value)
where exists (select from crawl)
on conflict do nothing;
