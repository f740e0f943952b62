-- Tasks that rules and budgets have decided on or may: $1 tasks above this id, $2 rows to look at, $3 reasons that these have. Answers them, with
-- the last row looked at (null at the end). Seeds belong to the crawl, and so do sitemaps wherever they lie: of these only what a budget has
-- left out, and no rule is asked.
with looked as materialized (
    select id, host_id, url, kind, via, depth, status, reason, available_at
    from tasks
    where id > $1::bigint
    order by id
    limit $2::int
),
chosen as (
    select *, via is not null and kind <> 'sitemap' as is_judged
    from looked
    where (via is not null and kind <> 'sitemap' or reason = 'host_pages')
      and (status in ('new', 'claimed')
           or status = 'failed' and available_at is not null
           or status = 'excluded' and reason = any ($3::text[]))
)
select (select max(id) from looked) as last,
       coalesce(array_agg(id order by id), '{}') as "tasks!",
       coalesce(array_agg(host_id order by id), '{}') as "hosts!",
       coalesce(array_agg(url order by id), '{}') as "urls!",
       coalesce(array_agg(depth order by id), '{}') as "depths!",
       coalesce(array_agg(is_judged order by id), '{}') as "are_judged!",
       coalesce(array_agg(kind = 'asset' order by id), '{}') as "assets!",
       coalesce(array_agg(case when status = 'excluded' then reason else '' end order by id), '{}') as "reasons!"
from chosen
