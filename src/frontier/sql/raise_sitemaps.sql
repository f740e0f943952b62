-- Tasks that were found as pages and are sitemaps, as is known now: those that are new are visited as such, and those that were visited and read as
-- pages once more. What is claimed is left alone. $1 hosts, $2 digests.
with known as materialized (
    select k.id
    from unnest($1::int[], $2::uuid[]) as l (host_id, url_digest)
    cross join lateral (
        select t.id
        from tasks t
        where t.host_id = l.host_id
          and t.url_digest = l.url_digest
          and t.kind = 'page'
          and t.status in ('new', 'done')
        limit 1
    ) k
),
mine as materialized (
    select t.id
    from tasks t
    where t.id = any (array(select id from known))
      and t.kind = 'page'
      and (t.status = 'new' or t.status = 'done' and not exists (select from sitemaps s where s.task_id = t.id))
    order by t.id
    for no key update of t
)
update tasks
set kind         = 'sitemap',
    status       = 'new',
    available_at = null,
    attempts     = case status when 'new' then attempts else 0 end,
    expiries     = case status when 'new' then expiries else 0 end,
    deferrals    = case status when 'new' then deferrals else 0 end,
    reason       = null,
    detail       = null
where id = any (array(select id from mine))
