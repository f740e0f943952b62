-- Wakes idle workers: a hint, in a statement of its own. A notification is delivered in order of commit, under a lock of the whole server: within
-- a claim or a finish it would make those stand in line.
select pg_notify('pgcrawl_tasks', '') is null as nudged
