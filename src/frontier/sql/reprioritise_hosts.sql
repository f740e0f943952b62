-- $1 hosts, $2 class
update hosts
set priority = $2::smallint
where id = any (array(select id from hosts where id = any ($1::int[]) order by id for no key update))
  and priority <> $2::smallint
returning id
