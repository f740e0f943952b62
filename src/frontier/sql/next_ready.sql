-- In how many ms the next host may be claimed from or the next retry is due; null = none is waiting. An operator's pause counts as none.
select (extract(epoch from least(
           (select min(h.ready_at)
            from (values (0::smallint), (1::smallint), (2::smallint)) as c (priority)
            cross join lateral (
                select ready_at
                from hosts
                where has_new
                  and priority = c.priority
                  and ready_at > now()
                  and ready_at < 'infinity'
                order by ready_at
                limit 1
            ) h),
           (select available_at from tasks where available_at is not null order by available_at limit 1)) - now()) * 1000)::bigint as ms
