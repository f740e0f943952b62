-- What the crawl has used of its budgets, over all machines; no row where none was begun.
select (select coalesce(sum(done + failed + retried), 0) from worker_counts)::bigint as "visits!",
       (select count(*) from tasks where status = 'claimed') as "claimed!",
       (select coalesce(sum(bytes), 0) from worker_counts)::bigint as "bytes!",
       (extract(epoch from now() - created_at) * 1000)::bigint as "age_ms!",
       (select count(*) from workers where stopped_at is null and cleared_at is null) as "workers!"
from crawl
