-- Rules that are not there yet. $1 rules, $2 host names, $3 source
insert into scope_rules (rule, host, source)
select distinct n.rule collate "C", n.host collate "C", $3
from unnest($1::text[], $2::text[]) as n (rule, host)
where not exists (select from scope_rules r where r.rule = n.rule and r.host = n.host)
order by 1, 2
on conflict do nothing
