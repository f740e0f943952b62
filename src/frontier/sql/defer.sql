-- Nobody claims from a host for a while (Retry-After). $1 host, $2 ms, $3 note (null = as before), $4 whether it asked us to be slower: then its pace doubles, from
-- the delay it has to a minute at most, above which its waits and the breaker decide; $5 the crawl's delay in ms, $6 whether this repeats a
-- try whose answer was lost: it does not double again what that has doubled
update hosts
set deferred_until = greatest(deferred_until, now() + make_interval(secs => $2::bigint / 1000.0)),
    pace_ms        = case when $4::boolean
                               and not ($6::boolean and coalesce(deferred_until > now(), false) and note is not distinct from $3)
                               and coalesce(delay_ms, greatest($5::int, crawl_delay_ms)) > 0
                          then greatest(pace_ms, least(60000, 2 * greatest(coalesce(delay_ms, greatest($5::int, crawl_delay_ms)), pace_ms)))
                          else pace_ms end,
    note           = coalesce($3, note)
where id = $1
