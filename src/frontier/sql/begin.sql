-- Notes that the fetch of a task begins that lost a lease before: should it be lost again, that counts. No row: the lease is lost.
-- $1 worker, $2 task, $3 claim version
update tasks
set begun_version = claim_version
where id = $2
  and claimed_by = $1
  and claim_version = $3
returning id
