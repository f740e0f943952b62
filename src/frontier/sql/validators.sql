-- Validators for conditional requests. $1 tasks, claimed by the caller, so that nobody changes their pages; $2 the fingerprint under which the page of
-- each is read now, $3 whether bodies are kept. A row only where a 304 would leave nothing to be wished for: a whole page, read as it would be read now,
-- its body at hand if it is to be. Vary: * says that the answer depends on more than any request tells (RFC 9110 §12.5.5).
select p.task_id, p.final_url, p.etag, p.last_modified
from unnest($1::bigint[], $2::int[]) as t (task_id, reading)
join pages p on p.task_id = t.task_id
where p.task_id = any ($1::bigint[])
  and p.http_status = 200
  and p.reading = t.reading
  and p.truncated is null
  and (p.etag is not null or p.last_modified is not null)
  and coalesce(p.headers ->> 'vary', '') not like '%*%'
  and (not $3::boolean or exists (select from bodies b where b.task_id = p.task_id and b.claim_version = p.claim_version))
