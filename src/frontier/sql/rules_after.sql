select id, rule, host
from scope_rules
where id > $1
order by id
limit 10000
