-- Takes the next stretch of time of the whole crawl, for $1 requests at $2 ms each; nobody else has it. Where it would begin later than $3 ms from
-- now nothing is taken. Answers whether it was, and in how many ms it begins. By the wall clock, not the statement's: it may have waited its turn.
with taken as (
    update request_rate
    set taken_until = greatest(taken_until, clock_timestamp()) + make_interval(secs => $1::int * $2::float8 / 1000)
    where taken_until <= clock_timestamp() + make_interval(secs => $3::float8 / 1000)
    returning taken_until - make_interval(secs => $1::int * $2::float8 / 1000) as begins_at
)
select t.begins_at is not null as "taken!",
       greatest(0, extract(epoch from coalesce(t.begins_at, r.taken_until) - clock_timestamp()) * 1000)::float8 as "begins_in_ms!"
from request_rate r
left join taken t on true
