-- Validators for conditional requests. $1 tasks, claimed by the caller, so that nobody changes their pages; $2 the fingerprint under which pages are
-- read now, $3 whether bodies are kept. A row only where a 304 would leave nothing to be wished for: a whole page, read as it would be read now, its
-- body at hand if it is to be.
select p.task_id, p.final_url, p.etag, p.last_modified
from pages p
where p.task_id = any ($1::bigint[])
  and p.http_status = 200
  and p.reading = $2::int
  and p.truncated is null
  and (p.etag is not null or p.last_modified is not null)
  and (not $3::boolean or exists (select from bodies b where b.task_id = p.task_id and b.claim_version = p.claim_version))
