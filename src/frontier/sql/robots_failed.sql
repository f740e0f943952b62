-- robots.txt could not be had: the host waits, and after $3 such waits in a row it is given up. Answers whether it is given up now.
-- $1 host, $2 ms to wait, $3 waits at most, $4 http status, $5 class of the error, $6 note, $7 whether this repeats a try whose answer was
-- lost: then a host that waits, or was given up, shows that it was counted
with noted as (
    insert into robots (host_id, http_status, error)
    values ($1, $4, $5)
    on conflict (host_id) do update
    set http_status = excluded.http_status,
        error       = excluded.error,
        fetched_at  = now()
)
update hosts h
set robots_failures = least(h.robots_failures + n.more, 1000)::smallint,
    deferred_until  = case when n.more = 0 or h.robots_failures + 1 > $3::int then h.deferred_until
                           else greatest(h.deferred_until, now() + make_interval(secs => $2::bigint / 1000.0)) end,
    given_up_at     = case when n.more = 1 and h.robots_failures + 1 > $3::int then now() else h.given_up_at end,
    note            = $6
from (select id,
             case when $7::boolean and robots_failures > 0 and (deferred_until > now() or given_up_at is not null) then 0 else 1 end as more
      from hosts
      where id = $1
      for no key update) n
where h.id = $1
  and h.id = n.id
returning h.given_up_at is not null as "given_up!"
