-- Ready from now on in their new class: claims do not look for hosts that come there in the past. $1 hosts, $2 class
update hosts
set priority  = $2::smallint,
    polite_at = greatest(polite_at, now())
where id = any (array(select id from hosts where id = any ($1::int[]) order by id for no key update))
  and priority <> $2::smallint
returning id
