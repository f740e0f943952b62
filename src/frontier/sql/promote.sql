-- Retries and revisits that are due. $1 rows at most
with due as materialized (
    select id
    from tasks
    where available_at is not null
      and available_at <= now()
    order by available_at
    limit $1::int
    for no key update skip locked
)
update tasks
set status       = 'new',
    available_at = null,
    attempts     = case when status = 'done' then 0 else attempts end
where id = any (array(select id from due))
returning id
