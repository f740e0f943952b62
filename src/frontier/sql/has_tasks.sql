-- Whether anything was ever to be visited.
select exists (select from tasks) as "has_tasks!"
