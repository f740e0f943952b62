-- An operator wants a shape visited whatever its pages bring. $1 shape. Answers its host and what it is; no row where it was never parked.
-- Said again it is nothing new.
with mine as (
    update shape_mark
    set version = version + 1
    where exists (select from url_shapes where id = $1 and parked_at is not null)
)
update url_shapes
set parked_at = null,
    kept_at   = coalesce(kept_at, now())
where id = $1
  and (parked_at is not null or kept_at is not null)
returning host_id, shape
