-- $1 host, $2 and $3 priority and id of the last of its tasks that was looked at
select id, url, priority
from tasks
where host_id = $1
  and status = 'new'
  and (priority, id) > ($2, $3)
order by priority, id
limit 5000
