-- Hosts that are not there yet. Then read the ids with host_ids: a row that another committed meanwhile is in no `returning`. $1 authorities
insert into hosts (authority)
select distinct n.authority collate "C"
from unnest($1::text[]) as n (authority)
where not exists (select from hosts h where h.authority = n.authority)
order by 1
on conflict do nothing
