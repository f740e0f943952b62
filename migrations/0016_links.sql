-- Who links to whom, and which pages are the same.
--
-- An edge is a row of its own, which the finish writes with its page: links say what pages says, of the same visit. No foreign keys: each row would
-- lock two tasks, one of them another visit's. Kinds are words: a code would save three bytes a row, and need a migration for each new one.

create table links (
    from_task bigint not null,
    to_task   bigint,
    place     smallint not null,
    nofollow  boolean not null,
    kind      text not null,
    rel       text,
    anchor    text,
    to_url    text,
    constraint links_pkey primary key (from_task, place),
    constraint links_lead_somewhere check ((to_task is null) <> (to_url is null))
);

-- Many links to one page are one entry of a deduplicated index.
create index links_to on links (to_task) where to_task is not null;

comment on table  links is 'One row a link of a page, as its last accepted visit read it (crawl.links); a visit that answered 304 leaves them. Each target once, with the kind and the first text under which it was found.';
comment on column links.from_task is 'The page that links.';
comment on column links.to_task is 'The page it leads to, a task of any status; null = none of this crawl when the page was read, see to_url.';
comment on column links.to_url is 'Where it leads, at most 4,000 characters, if that is no task (crawl.links = all).';
comment on column links.place is 'Its place among the links of the page that are kept, from 1.';
comment on column links.nofollow is 'Whether each link to this target, or the whole page, asked not to be followed. It was not; its target is a task all the same if another link led there.';
comment on column links.kind is 'What makes it: a, area, link, canonical, redirect, refresh, header …';
comment on column links.rel is 'Tokens of its rel, at most 200 characters; null = none.';
comment on column links.anchor is 'Its text, at most 200 characters; null = none.';

-- The ids of tasks by host and digest, in this order; 0 where there is none, or the host is 0. Volatile and a statement of its own, so it sees what its
-- caller has just inserted, and what others have that its caller waited for.
create function task_ids(host_ids int[], digests uuid[])
    returns bigint[]
    language plpgsql
    volatile
    set search_path from current
    set enable_seqscan = off    -- plans cached in an empty table would read a full one
as $$
begin
    return array(
        select coalesce(k.id, 0)
        from unnest(host_ids, digests) with ordinality as u (host_id, digest, n)
        left join lateral (
            select t.id
            from tasks t
            where t.host_id = u.host_id
              and t.url_digest = u.digest
            limit 1
        ) k on u.host_id <> 0
        order by u.n);
end
$$;

alter table pages
    add column simhash bigint,
    add column duplicate_of bigint;

-- Of a payload that thousands of pages have, the one that was followed is found at once.
create index pages_digest on pages (digest, duplicate_of) where digest is not null;

comment on column pages.simhash is 'Fingerprint of the visible text (simhash version 1, src/extract/simhash.rs): few bits differ where texts differ little. null = fewer than 32 words.';
comment on column pages.duplicate_of is 'The task whose page has the same payload, for which reason the links of this one were not followed (crawl.skip_duplicate_links); null = they were.';

create view duplicate_groups as
select g.digest,
       g.pages,
       r.task_id,
       r.url,
       g.body_bytes
from (select digest, count(*) as pages, min(body_bytes) as body_bytes
      from pages
      where digest is not null
        and http_status between 200 and 299
      group by digest
      having count(*) > 1) g
cross join lateral (
    select t.id as task_id, t.url
    from pages p
    cross join lateral (select id, url, depth from tasks where id = p.task_id limit 1) t
    where p.digest = g.digest
      and p.http_status between 200 and 299
    order by t.depth, t.id
    limit 1
) r;

comment on view duplicate_groups is 'Pages with the same payload, byte for byte: how many there are, and the one nearest to a seed. The others: select * from pages where digest = …';

-- Pairs of fingerprints that differ in a few bits. Of four bands of 16 bits, one at least is the same where no more than three bits differ: so only
-- those with a band in common are compared, each fingerprint once however many pages have it.
create function near_duplicates(most_bits int default 3)
    returns table (one bigint, other bigint, bits int, pages bigint)
    language plpgsql
    stable
    set search_path from current
    set enable_nestloop = off    -- never all with all, whatever the statistics say
as $$
#variable_conflict use_column
begin
    if most_bits not between 0 and 3 then
        raise exception 'near_duplicates looks for 0 to 3 different bits, not %', most_bits
            using errcode = 'invalid_parameter_value', hint = 'beyond three bits no band need be the same';
    end if;
    return query
        with prints as materialized (
            select p.simhash, min(p.task_id) as task_id, count(*) as pages
            from pages p
            where p.simhash is not null
              and p.http_status between 200 and 299
            group by p.simhash
        ),
        bands as materialized (
            select s.simhash, s.task_id, s.pages, b.band, (s.simhash >> (16 * b.band)) & 65535 as bits
            from prints s
            cross join generate_series(0, 3) as b (band)
        ),
        pairs as (
            select distinct a.task_id as one, b.task_id as other, bit_count((a.simhash # b.simhash)::bit(64))::int as bits, a.pages + b.pages as pages
            from bands a
            join bands b on b.band = a.band and b.bits = a.bits and b.simhash > a.simhash
            where bit_count((a.simhash # b.simhash)::bit(64)) <= most_bits
        )
        select least(p.one, p.other), greatest(p.one, p.other), p.bits, p.pages
        from pairs p
        union all
        select s.task_id, null::bigint, 0, s.pages
        from prints s
        where s.pages > 1;
end
$$;

comment on function near_duplicates is 'Pages whose texts are nearly the same: two fingerprints that differ in so many bits, each by the first task that has it, and how many pages have either. other null: pages that share one fingerprint. Reads all pages.';

-- A breadth-first walk, which a recursive query cannot make: it would reach a page once for each number of clicks. Layer by layer, with what was
-- reached in an array and hashed.
create function click_depths(most_clicks int default 1000)
    returns table (task_id bigint, clicks int, via bigint)
    language plpgsql
    stable
    set search_path from current
    set enable_nestloop = off
    set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    ids     bigint[] := array(select id from tasks where via is null);
    vias    bigint[] := array_fill(null::bigint, array[cardinality(ids)]);
    front   bigint[] := '{}';
    reached bigint[] := '{}';
    depth   int := 0;
begin
    while ids is not null loop
        front := ids;
        -- Who is reached over redirects is as near.
        while ids is not null loop
            reached := reached || ids;
            return query
                select u.id, depth, u.via
                from unnest(ids, vias) as u (id, via);
            select array_agg(s.to_task), array_agg(s.from_task)
            into ids, vias
            from (select l.to_task, min(l.from_task) as from_task
                  from links l
                  where l.from_task = any (ids)
                    and l.to_task is not null
                    and l.kind = 'redirect'
                    and not exists (select from unnest(reached) as r (id) where r.id = l.to_task)
                  group by l.to_task) s;
            front := front || ids;
        end loop;
        exit when depth >= most_clicks;
        depth := depth + 1;
        select array_agg(s.to_task), array_agg(s.from_task)
        into ids, vias
        from (select l.to_task, min(l.from_task) as from_task
              from links l
              where l.from_task = any (front)
                and l.to_task is not null
                and l.kind <> 'redirect'
                and not l.nofollow
                and not exists (select from unnest(reached) as r (id) where r.id = l.to_task)
              group by l.to_task) s;
    end loop;
end
$$;

comment on function click_depths is 'How many clicks each page is from the nearest seed, by links that ask nobody not to follow them; a redirect is no click. via: the page before it on a shortest way. Reads the links of all pages that it reaches.';
