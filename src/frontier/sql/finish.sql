-- Finishes visits: pages, bodies, status, new tasks and counts in one statement, so all of a visit is there or none of it, and a client that
-- is stopped half way holds no lock. $1 worker. Answers one row a visit, in order: accepted or not. One that is not accepted left no trace.
-- With the first row come the tasks of the edges, see there.
--
-- Visits, one element each:  $2 tasks, $3 claim versions, $4 statuses (done, failed, excluded), $5 reasons, $6 details, $7 ms until it is due
-- again (null = never), $8 whether the attempt is charged; then the page: $9 visited (has a page row), $10 … $37 its columns, $38 bodies.
-- Links: $39 the position of their visit in $2 (from 1; not the task: a worker may finish a task it lost and the same task claimed anew in
-- one batch), $40 host ids, $41 digests, $42 urls, $43 depths, $44 hops, $45 and $46 reason and detail of those that are excluded from the start.
-- More of the page: $47 HTTP version, $48 fingerprint of its reading, $49 signals. More of the links: $50 priorities, $51 labels. Status 304 means: as it was; the row of the last visit stays but for
-- what is new.
-- The link graph, in the order of the visits and in each of its page: $52 the position of the visit, $53 the task that the edge leads to (0 = to be
-- looked up), $54 host id (0 = not to be looked up) and $55 digest to look it up by, $56 its URL where the edge is kept without a task, $57 kinds,
-- $58 nofollow, $59 rels, $60 texts. $61 fingerprints of texts, of the pages; $62 whether links of a page that repeats another are not followed;
-- $63 kinds of the links' tasks; $64 whether a page's links are withheld whatever its payload, so that its copies have to be followed.
with visits as materialized (
    select *
    from unnest($2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::boolean[], $9::boolean[],
                $10::smallint[], $11::smallint[], $12::int[], $13::bigint[], $14::bigint[], $15::int[], $16::text[], $17::text[], $18::text[],
                $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[], $26::text[], $27::text[],
                $28::text[], $29::text[], $30::text[], $31::text[], $32::text[], $33::text[], $34::bytea[], $35::text[], $36::bigint[],
                $37::boolean[], $47::text[], $48::int[], $49::text[], $61::bigint[], $64::boolean[]) with ordinality
         as v (task_id, claim_version, status, reason, detail, due_ms, charged, visited,
               http_status, page_hops, fetch_ms, wire_bytes, body_bytes, links, truncated, error, error_detail,
               final_url, redirect_to, content_type, charset, charset_from, lang, title, description, h1,
               canonical_url, robots, etag, last_modified, ip, proxy, digest, headers, ended_ago_ms,
               keep_body, http_version, reading, signals, simhash, withheld, position)
),
-- Locked, and not yet changed: whoever finds our row by its URL waits for a change of it, not for a lock. All that may wait for other finishes (new
-- keys) comes before all that makes them wait, or two visits deadlock that link to each other and whose rows came between.
-- One lookup a visit, in the order of the tasks. Nothing is known of arrays when this is planned, so a join of what came out of them would compare
-- each visit with each: all that follows takes the visits from here.
mine as materialized (
    select t.id, v.*
    from (select * from visits order by task_id offset 0) v
    cross join lateral (
        select id
        from tasks
        where id = v.task_id
          and claimed_by = $1::int    -- so it is claimed; to say so would invite a walk over all of tasks_claimed
          and claim_version = v.claim_version
        for no key update
    ) t
),
-- Pages whose payload another task's page has that was followed. Exact for what is committed and for this batch: two finishes at the same time do not see
-- each other's pages, and both are followed.
repeats as materialized (
    select position,
           coalesce(original, nullif(first_value(id) over (partition by digest, original is null order by withheld, position), id)) as original
    from (select m.id, m.position, m.digest, m.withheld, p.task_id as original
          from mine m
          left join lateral (
              select task_id
              from pages
              where digest = m.digest
                and duplicate_of is null    -- its links were followed; else two might wait for each other
                and links_withheld is null
                and task_id <> m.id
              limit 1
          ) p on true
          where $62::boolean
            and m.visited
            and m.http_status between 200 and 299
            and m.truncated is null
            and m.digest is not null) s
),
repeated as materialized (
    select coalesce(array_agg(position), '{}') as positions, array_agg(original) as originals
    from repeats
    where original is not null
),
found as materialized (
    select distinct on (l.host_id, l.url_digest) l.*, m.id as via
    from unnest($39::int[], $40::int[], $41::uuid[], $42::text[], $43::smallint[], $44::smallint[], $45::text[], $46::text[],
                $50::smallint[], $51::text[], $63::text[]) with ordinality
         as l (position, host_id, url_digest, url, depth, hops, reason, detail, priority, label, kind, n)
    join mine m on m.position = l.position
    where l.position <> all ((select positions from repeated)::bigint[])
    order by l.host_id, l.url_digest, l.depth, l.hops, l.priority, l.n
),
unknown as materialized (
    select f.*
    from found f
    -- Not left to `on conflict`, which waits for whoever *updates* the row of a known URL: two visits that link to each other would deadlock.
    -- Lateral with a limit: one index lookup a link, whatever the statistics say.
    left join lateral (
        select 1 as known
        from tasks t
        where t.host_id = f.host_id
          and t.url_digest = f.url_digest
        limit 1
    ) k on true
    where k.known is null
    order by f.n
),
numbered as materialized (
    select nextval((select pg_get_serial_sequence('tasks', 'id')::regclass)) as id, u.*    -- in the order in which they were found
    from unknown u
),
fresh as (
    insert into tasks (id, host_id, url_digest, url, depth, hops, via, status, reason, detail, priority, label, kind)
    overriding system value
    select n.id, n.host_id, n.url_digest, n.url, n.depth, n.hops, n.via,
           case when n.reason is null then 'new' else 'excluded' end::task_status, n.reason, n.detail, n.priority, n.label,
           n.kind::task_kind
    from numbered n
    order by n.host_id, n.url_digest    -- all insert in one order, whatever the ids
    on conflict do nothing
    returning id
),
inserted as materialized (
    select count(*) as n
    from fresh
),
-- Afterwards: it sees what was just inserted, and what others had inserted that we waited for.
resolved as materialized (
    select task_ids($54::int[], $55::uuid[]) as ids
    from inserted
),
-- By position: arrays, since a join of thousands of edges with hundreds of visits must not depend on what the planner thinks of arrays.
pages_read as materialized (
    select array_agg(coalesce(m.id, 0) order by v.position) as ids
    from visits v
    left join mine m on m.position = v.position
),
edges as materialized (
    select e.position, e.from_task, e.to_task, e.nofollow, e.kind, e.rel, e.anchor,
           case when e.to_task is null then e.to_url end as to_url,
           row_number() over (partition by e.position order by e.n)::smallint as place
    from (select e.*,
                 (select ids from pages_read)[e.position] as from_task,
                 nullif(case when e.known <> 0 then e.known else (select ids from resolved)[e.n] end, 0) as to_task
          from unnest($52::int[], $53::bigint[], $56::text[], $57::text[], $58::boolean[], $59::text[], $60::text[]) with ordinality
               as e (position, known, to_url, kind, nofollow, rel, anchor, n)) e
    where e.from_task <> 0
      and (e.to_task is not null or e.to_url is not null)
),
accepted as (
    update tasks t
    set status       = v.status::task_status,
        claimed_by   = null,
        claimed_at   = null,
        expiries     = 0,
        attempts     = case when v.charged then t.attempts else greatest(t.attempts - 1, 0) end,
        deferrals    = case when v.charged then t.deferrals else least(t.deferrals + 1, 30000) end,
        available_at = now() + make_interval(secs => v.due_ms / 1000.0),
        reason       = v.reason,
        detail       = v.detail
    from mine v
    where (select n from inserted) >= 0    -- afterwards
      and t.id = any (array(select id from mine))
      and t.id = v.id
    returning t.status as new_status, t.available_at, v.*
),
-- The links of a page are those of its row: a visit without one, and a 304, leave them as they are. Only whoever holds the task's row writes them, so
-- nobody is waited for; what has not changed is not written.
linked as (
    insert into links (from_task, place, to_task, nofollow, kind, rel, anchor, to_url)
    select from_task, place, to_task, nofollow, kind, rel, anchor, to_url
    from edges
    order by from_task, place
    on conflict (from_task, place) do update
    set to_task  = excluded.to_task,
        nofollow = excluded.nofollow,
        kind     = excluded.kind,
        rel      = excluded.rel,
        anchor   = excluded.anchor,
        to_url   = excluded.to_url
    where (links.to_task, links.nofollow, links.kind, links.rel, links.anchor, links.to_url)
          is distinct from (excluded.to_task, excluded.nofollow, excluded.kind, excluded.rel, excluded.anchor, excluded.to_url)
),
unlinked as (
    delete from links
    where ctid = any (array(
        select l.row
        from accepted a
        left join (select position, max(place) as place from edges group by position) e on e.position = a.position
        cross join lateral (
            select links.ctid as row
            from links
            where links.from_task = a.id
              and links.place > coalesce(e.place, 0)
            offset 0
        ) l
        where a.visited
          and a.http_status is distinct from 304))
),
written as (
    insert into pages (task_id, claim_version, http_status, hops, fetch_ms, fetched_at, wire_bytes, body_bytes, links, truncated, error, error_detail,
                       final_url, redirect_to, content_type, charset, charset_from, lang, title, description, h1, canonical_url, robots,
                       etag, last_modified, ip, proxy, digest, headers, http_version, reading, signals, simhash, duplicate_of, links_withheld)
    select id, claim_version, http_status, page_hops, fetch_ms, now() - make_interval(secs => ended_ago_ms / 1000.0), wire_bytes, body_bytes, links,
           truncated, error, error_detail, final_url, redirect_to, content_type, charset, charset_from, lang, title, description, h1,
           canonical_url, robots, etag, last_modified, ip::inet, proxy, digest, headers::jsonb, http_version, reading, signals::jsonb, simhash,
           (select originals[array_position(positions, accepted.position)] from repeated), nullif(withheld, false)
    from accepted
    where visited    -- a failed visit says why in its row; http_status null = no answer
      and (http_status is distinct from 304 or not exists (select from pages p where p.task_id = accepted.id))    -- somebody deleted it meanwhile
    on conflict (task_id) do update
    set claim_version = excluded.claim_version,
        http_status   = excluded.http_status,
        hops          = excluded.hops,
        fetch_ms      = excluded.fetch_ms,
        fetched_at    = excluded.fetched_at,
        wire_bytes    = excluded.wire_bytes,
        body_bytes    = excluded.body_bytes,
        links         = excluded.links,
        truncated     = excluded.truncated,
        error         = excluded.error,
        error_detail  = excluded.error_detail,
        final_url     = excluded.final_url,
        redirect_to   = excluded.redirect_to,
        content_type  = excluded.content_type,
        charset       = excluded.charset,
        charset_from  = excluded.charset_from,
        lang          = excluded.lang,
        title         = excluded.title,
        description   = excluded.description,
        h1            = excluded.h1,
        canonical_url = excluded.canonical_url,
        robots        = excluded.robots,
        etag          = excluded.etag,
        last_modified = excluded.last_modified,
        ip            = excluded.ip,
        proxy         = excluded.proxy,
        digest        = excluded.digest,
        headers       = excluded.headers,
        http_version  = excluded.http_version,
        reading       = excluded.reading,
        signals       = excluded.signals,
        simhash       = excluded.simhash,
        duplicate_of  = excluded.duplicate_of,
        links_withheld = excluded.links_withheld,
        body_at       = null
),
unmodified as (
    update pages p
    set claim_version = a.claim_version,
        body_at       = coalesce(p.body_at, p.fetched_at),
        fetched_at    = now() - make_interval(secs => a.ended_ago_ms / 1000.0),
        fetch_ms      = a.fetch_ms,
        http_version  = a.http_version,
        etag          = coalesce(p.etag, a.etag),    -- ours did it: a server that compresses names another one with a 304
        last_modified = coalesce(a.last_modified, p.last_modified),
        headers       = p.headers || (a.headers::jsonb - 'etag'),
        -- New words on the use of the page: what the row says of it was read off the old ones, so the next visit is a full one.
        reading       = case
                            when exists (select
                                         from unnest(array['x-robots-tag', 'content-usage', 'tdm-reservation', 'tdm-policy']) as s (name)
                                         where a.headers::jsonb ? s.name
                                           and a.headers::jsonb -> s.name is distinct from p.headers -> s.name)
                            then null
                            else p.reading
                        end,
        -- What robots.txt says of its use is known without the page.
        signals       = nullif((coalesce(p.signals, '{}') - 'robots_content_usage') || coalesce(a.signals::jsonb, '{}'), '{}')
    from accepted a
    where p.task_id = any (array(select id from accepted where visited and http_status = 304))
      and p.task_id = a.id
      and a.visited
      and a.http_status = 304
    returning p.task_id, p.claim_version
),
-- The body goes along if it is the page's: not if it is older, from before bodies were not kept for a while. The page as it was before this statement.
carried as (
    update bodies b
    set claim_version = u.claim_version
    from unmodified u
    join pages before on before.task_id = u.task_id
    where b.task_id = any (array(select task_id from unmodified))
      and before.task_id = any (array(select task_id from unmodified))
      and b.task_id = u.task_id
      and b.claim_version = before.claim_version
),
-- By position, and 0 for all but those whose body is to be kept.
keepers as materialized (
    select array_agg(coalesce(k.id, 0) order by v.position) as ids
    from visits v
    left join (select id, position from accepted where keep_body) k on k.position = v.position
),
-- Bodies are the bulk of a batch: they are in none of the rows above, each step of which would copy them, or write them to a file. Side by side in
-- a select list, arrays are walked once and nothing of them is kept.
kept as (
    insert into bodies (task_id, claim_version, body)
    select task_id, claim_version, body
    from (select unnest((select ids from keepers)) as task_id, unnest($3::int[]) as claim_version, unnest($38::bytea[]) as body
          offset 0) b
    where task_id <> 0
    on conflict (task_id) do update
    set claim_version = excluded.claim_version,
        body          = excluded.body
),
counted as (
    update worker_counts c
    set done       = c.done       + s.done,
        failed     = c.failed     + s.failed,
        retried    = c.retried    + s.retried,
        excluded   = c.excluded   + s.excluded,
        bytes      = c.bytes      + s.bytes,
        discovered = c.discovered + (select n from inserted),
        refused    = c.refused    + cardinality($2::bigint[]) - s.accepted
    from (select count(*) as accepted,
                 count(*) filter (where new_status = 'done') as done,
                 count(*) filter (where new_status = 'failed' and available_at is null) as failed,
                 count(*) filter (where new_status = 'failed' and available_at is not null) as retried,
                 count(*) filter (where new_status = 'excluded') as excluded,
                 coalesce(sum(wire_bytes), 0) as bytes
          from accepted) s
    where worker_id = $1::int
)
select a.id is not null as "accepted!",
       v.position = any ((select positions from repeated)::bigint[]) as "repeats!",
       case when v.position = 1 then (select ids from resolved) end as ids
from visits v
left join accepted a on a.position = v.position
order by v.position
