-- What a crawl came to. Whether something failed or was forbidden is asked only where no page was had: it may take a look at all tasks, which
-- are few then.
with had as materialized (
    select exists (select from pages where http_status < 300) as any_page
)
select any_page as "any_page!",
       case when any_page then false else exists (select from tasks where status = 'failed') end as "any_failed!",
       case when any_page then false else exists (select from tasks where status = 'excluded' and reason = 'robots') end as "any_robots!"
from had
