-- What a crawl came to: looks for one row of each kind.
select exists (select from pages where http_status < 400) as "any_page!",
       exists (select from tasks where status = 'failed') as "any_failed!",
       exists (select from tasks where status = 'excluded' and reason = 'robots') as "any_robots!"
