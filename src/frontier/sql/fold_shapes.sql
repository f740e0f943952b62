-- Moves the watermark from where it was read, and writes what was read since: whoever comes second finds it moved, and writes nothing. $1 and $2
-- where it was, $3 and $4 where it goes; then one element a shape: $5 hosts, $6 shapes, $7 further pages, $8 digests of the last pages (of all
-- shapes, one after the other), $9 how many of these are its own, $10 examples, $11 whether it is to be parked; $12 shapes that are kept a host. Answers whether it was moved.
with moved as (
    update shape_mark
    set up_to_at = $3::timestamptz,
        up_to    = $4::bigint,
        version  = version + case when true = any ($11::boolean[]) then 1 else 0 end
    where up_to_at = $1::timestamptz
      and up_to = $2::bigint
    returning id
),
news as materialized (
    select n.*, sum(n.own) over (order by n.position)::int as last_own
    from unnest($5::int[], $6::text[], $7::int[], $9::int[], $10::text[], $11::boolean[]) with ordinality
         as n (host_id, shape, pages, own, example, parks, position)
),
written as (
    insert into url_shapes (host_id, shape, pages, recent, example, parked_at)
    select host_id, shape, pages, ($8::int[])[last_own - own + 1 : last_own], example, case when parks then now() end
    from news
    where exists (select from moved)
    order by host_id, shape
    on conflict (host_id, shape) do update
    set pages     = url_shapes.pages + excluded.pages,
        recent    = excluded.recent,
        last_at   = now(),
        parked_at = case when url_shapes.kept_at is null then coalesce(url_shapes.parked_at, excluded.parked_at) end
    returning id
),
old as materialized (
    select id
    from (select id, row_number() over (partition by host_id
                                        order by parked_at is not null or kept_at is not null desc, pages >= 5 desc, last_at desc) as place
          from url_shapes
          where host_id = any ($5::int[])) s
    where place > $12::int
),
forgotten as (
    delete from url_shapes
    where id = any (array(select id from old))
      and exists (select from moved)
)
select exists (select from moved) as "moved!"
