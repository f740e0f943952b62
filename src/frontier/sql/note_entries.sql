-- What a sitemap says of tasks that are there by now. $1 the sitemap's task, $2 its claim version, $3 host ids, $4 digests, $5 dates, $6 priorities,
-- $7 change frequencies. Of a URL that is there twice the first counts.
insert into sitemap_entries (task_id, sitemap_id, claim_version, lastmod, priority, changefreq)
select distinct on (t.id) t.id, $1::bigint, $2::int, l.lastmod, l.priority, l.changefreq
from unnest($3::int[], $4::uuid[], $5::timestamptz[], $6::real[], $7::text[]) with ordinality
     as l (host_id, url_digest, lastmod, priority, changefreq, position)
-- One index lookup an entry, see finish.sql.
cross join lateral (
    select id
    from tasks
    where host_id = l.host_id
      and url_digest = l.url_digest
    limit 1
) t
order by t.id, l.position
on conflict (task_id, sitemap_id) do update
set claim_version = excluded.claim_version,
    lastmod       = excluded.lastmod,
    priority      = excluded.priority,
    changefreq    = excluded.changefreq
where sitemap_entries.claim_version < excluded.claim_version
