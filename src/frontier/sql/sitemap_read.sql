-- What came of a sitemap. $1 its task, $2 claim version, $3 format, $4 ending, $5 urls, $6 in scope, $7 foreign, $8 invalid, $9 assets. Where it was read
-- whole, what it names no more is forgotten.
with gone as (
    delete from sitemap_entries
    where sitemap_id = $1::bigint
      and claim_version < $2::int
      and $4::text = 'whole'
)
insert into sitemaps (task_id, claim_version, format, ending, urls, in_scope, foreign_urls, invalid, assets)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (task_id) do update
set claim_version = excluded.claim_version,
    read_at       = excluded.read_at,
    format        = excluded.format,
    ending        = excluded.ending,
    urls          = excluded.urls,
    in_scope      = excluded.in_scope,
    foreign_urls  = excluded.foreign_urls,
    invalid       = excluded.invalid,
    assets        = excluded.assets
where sitemaps.claim_version <= excluded.claim_version
