-- Hosts by name. $1 authorities, $2 beginnings of authorities. Reads hosts whole, for an operator.
select h.id,
       h.authority,
       (h.parked_at is not null or coalesce(h.deferred_until = 'infinity', false)) as "parked!",
       h.given_up_at is not null as "given_up!",
       h.has_new,
       h.priority,
       h.delay_ms,
       h.crawl_delay_ms
from hosts h
where h.authority = any ($1::text[])
   or exists (select from unnest($2::text[]) as b (beginning) where starts_with(h.authority, b.beginning))
order by h.authority
