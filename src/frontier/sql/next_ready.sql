-- In how many ms the next host may be claimed from or the next retry is due; null = none is waiting. An operator's pause counts as none.
select (extract(epoch from least(
           (select min(ready_at) from hosts where has_new and ready_at > now() and ready_at < 'infinity'),
           (select min(available_at) from tasks where available_at is not null)) - now()) * 1000)::bigint as ms
