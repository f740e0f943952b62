-- An operator wants a shape visited whatever its pages bring. $1 shape, $2 whether this repeats a try whose answer was lost. Answers its host
-- and what it is; no row where it is not parked.
with mine as (
    update shape_mark
    set version = version + 1
    where exists (select from url_shapes where id = $1 and parked_at is not null)
)
update url_shapes
set parked_at = null,
    kept_at   = coalesce(kept_at, now())
where id = $1
  and (parked_at is not null or $2::boolean and kept_at is not null)
returning host_id, shape
