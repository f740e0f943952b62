-- A robots.txt answer that settles what may be fetched. $1 host, $2 http status, $3 hops, $4 Crawl-delay that is kept, in ms, $5 class of the error,
-- $6 final url, $7 sitemaps, $8 body, $9 ms for which it counts, $10 the crawl's delay in ms, $11 Crawl-delay as asked, in ms.
--
-- A delay that appears on a host from which somebody may be fetching without a hold (unheld_until) first waits until that is over, and the hold
-- ends: its holder would fetch beside them. Answers the delay from now on; null where nobody holds the host.
with stored as (
    insert into robots (host_id, http_status, hops, crawl_delay_ms, error, final_url, sitemaps, body)
    values ($1, $2, $3, $11, $5, $6, $7, $8)
    on conflict (host_id) do update
    set fetched_at     = now(),
        http_status    = excluded.http_status,
        hops           = excluded.hops,
        crawl_delay_ms = excluded.crawl_delay_ms,
        error          = excluded.error,
        final_url      = excluded.final_url,
        sitemaps       = excluded.sitemaps,
        body           = excluded.body
)
update hosts
set crawl_delay_ms  = $4,
    robots_failures = 0,
    polite_at       = case when unheld_until > now() and coalesce(delay_ms, greatest($10::int, $4)) > 0
                           then greatest(polite_at, unheld_until + make_interval(secs => coalesce(delay_ms, greatest($10::int, $4)) / 1000.0))
                           else polite_at end,
    held_by         = case when unheld_until > now() and coalesce(delay_ms, greatest($10::int, $4)) > 0
                           then null
                           else held_by end,
    -- It must outlast the rest before the first page, or a host with a very long delay would be asked for nothing but this file.
    robots_until    = now() + make_interval(secs => greatest($9::bigint, 3 * coalesce(delay_ms, greatest($10::int, $4))::bigint) / 1000.0)
where id = $1
returning case when held_by is null then null
               when coalesce(delay_ms, greatest($10::int, crawl_delay_ms)) = 0 then 0
               else greatest(coalesce(delay_ms, greatest($10::int, crawl_delay_ms)), pace_ms) end as "delay?"
