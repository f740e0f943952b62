-- A host's own delay. Where it had none, several machines may be fetching without a hold: wait until their leases are over. A hold (for a
-- robots.txt that is due) ends, or its release would cut that wait.
-- $1 host, $2 ms (null = the crawl's), $3 the crawl's delay in ms, $4 lease in ms
update hosts
set delay_ms  = $2::int,
    polite_at = case when coalesce(delay_ms, greatest($3::int, crawl_delay_ms)) = 0 and coalesce($2::int, greatest($3::int, crawl_delay_ms)) > 0
                     then greatest(polite_at, now() + make_interval(secs => ($4::int + coalesce($2::int, greatest($3::int, crawl_delay_ms))) / 1000.0))
                     else polite_at end,
    held_by   = case when coalesce(delay_ms, greatest($3::int, crawl_delay_ms)) = 0 and coalesce($2::int, greatest($3::int, crawl_delay_ms)) > 0
                     then null
                     else held_by end
where id = $1
