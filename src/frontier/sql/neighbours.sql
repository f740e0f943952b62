-- Workers of this machine that have not stopped, for a look whether their processes are still there. $1 machine, $2 this worker
select id, pid, process_started
from workers
where cleared_at is null
  and stopped_at is null
  and machine = $1
  and id <> $2
