-- What is known of shapes. $1 hosts, $2 shapes, one element each
select s.host_id, s.shape, s.recent, s.parked_at is not null as "is_parked!", s.kept_at is not null as "is_kept!"
from unnest($1::int[], $2::text[]) as n (host_id, shape)
cross join lateral (
    select *
    from url_shapes
    where host_id = n.host_id
      and shape = n.shape
    limit 1
) s
