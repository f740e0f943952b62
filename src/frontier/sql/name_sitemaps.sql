-- What a host's robots.txt names as sitemaps, ahead of the rest of it: a sitemap is read as soon as its task is there, and then its entries on this
-- host must count. Those that were read before this host named them, or what led to them, and had entries on other hosts to leave out, are read
-- again: once, since the next time they are no news. $1 host, $2 the lines, $3 hosts, $4 digests and $5 lines of those that lie elsewhere, $6 how
-- deep sitemaps nest.
with recursive old as materialized (
    select sitemaps
    from robots
    where host_id = $1
),
noted as (
    insert into robots (host_id, sitemaps)
    values ($1, $2)
    on conflict (host_id) do update
    set sitemaps = excluded.sitemaps
),
news as materialized (
    select k.id
    from unnest($3::int[], $4::uuid[], $5::text[]) as l (host_id, url_digest, line)
    cross join lateral (
        select t.id
        from tasks t
        where t.host_id = l.host_id
          and t.url_digest = l.url_digest
          and t.status = 'done'
        limit 1
    ) k
    where not exists (select from old where l.line = any (old.sitemaps))
),
chain as (
    select s.task_id as sitemap_id, s.task_id as id, 1 as n
    from sitemaps s
    where s.foreign_urls > 0
      and exists (select from news)
    union all
    select c.sitemap_id, k.via, c.n + 1
    from chain c
    cross join lateral (
        select t.via
        from tasks t
        where t.id = c.id
        limit 1
    ) k
    where c.n < $6::int
      and k.via is not null
),
again as materialized (
    select t.id
    from tasks t
    where t.id = any (array(select c.sitemap_id from chain c join news on news.id = c.id))
      and t.status = 'done'
    order by t.id
    for no key update of t
)
update tasks
set status       = 'new',
    available_at = null,
    attempts     = 0,
    expiries     = 0,
    deferrals    = 0,
    reason       = null,
    detail       = null
where id = any (array(select id from again))
