-- What a running process must hear of.
select settings_version,
       paused_at is not null as "paused!"
from crawl
