-- What a running process must hear of.
select settings_version,
       (select version from shape_mark) as "shapes_version!",
       paused_at is not null as "paused!",
       has_left_out,
       (select count(*) from workers where stopped_at is null and cleared_at is null) as "workers!"
from crawl
