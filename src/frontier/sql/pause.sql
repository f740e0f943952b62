-- $1 whether to pause or to resume. Answers since when it was paused before; no row where no crawl was begun.
with changed as (
    update crawl
    set paused_at = case when $1::boolean then now() end
    where (paused_at is null) = $1::boolean
)
select paused_at
from crawl
