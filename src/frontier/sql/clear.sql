-- Stopped workers without claims and holds need no more looking at. What one of them may claim yet, before it learns, ends with its lease.
-- In id order and past what others clear at this moment: two that clear the same workers must not wait for each other.
update workers w
set cleared_at = now()
from (select id
      from workers
      where stopped_at is not null
        and cleared_at is null
        and not exists (select from tasks t where t.status = 'claimed' and t.claimed_by = workers.id offset 0)
        and not exists (select from hosts h where h.held_by = workers.id offset 0)
      order by id
      for no key update skip locked) s
where w.id = s.id
