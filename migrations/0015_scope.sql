-- Scope as rules, budgets, and shapes of URLs that bring nothing new: what of these has to outlive a process.

create table scope_rejections (
    worker_id int not null,
    reason    text not null,
    links     bigint not null,
    constraint scope_rejections_pkey primary key (worker_id, reason)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

comment on table scope_rejections is 'Links that each process left out, by reason, told every few seconds. See view rejections.';

create view rejections as
select reason,
       sum(links)::bigint as links
from scope_rejections
group by reason
order by 2 desc, 1;

comment on view rejections is 'Links that were left out, by reason, over all processes. Not URLs: a link on each page of a site counts for each page, and again when that is visited again.';

alter table crawl add column has_left_out boolean not null default false;

comment on column crawl.has_left_out is 'Tasks were left out by a scope that came after them: a link from elsewhere may take them in, so processes look.';

-- What pages of one shape brought, host by host. The watermark says up to which page they are folded in; who moves it writes them. A row of its
-- own, since every claim looks at crawl.
create table shape_mark (
    id       boolean not null default true,
    version  int not null default 0,
    up_to_at timestamptz not null default now(),
    up_to    bigint not null default 0,
    constraint shape_mark_pkey primary key (id),
    constraint shape_mark_is_one check (id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

insert into shape_mark default values;    -- what was fetched before is not looked at

comment on table  shape_mark is 'One row: how far pages are folded into url_shapes.';
comment on column shape_mark.version is 'Counts changes of which shapes are parked; processes read them anew then.';
comment on column shape_mark.up_to_at is 'Pages fetched up to then are folded in.';
comment on column shape_mark.up_to is 'The last task among them.';

create table url_shapes (
    id        int generated always as identity,
    host_id   int not null,
    pages     int not null,
    first_at  timestamptz not null default now(),
    last_at   timestamptz not null default now(),
    parked_at timestamptz,
    kept_at   timestamptz,
    shape     text not null,
    example   text not null,
    recent    int[] not null,
    constraint url_shapes_pkey primary key (id),
    constraint url_shapes_host_id_shape_key unique (host_id, shape),
    constraint url_shapes_shape_length check (length(shape) between 1 and 300),
    constraint url_shapes_parked_or_kept check (parked_at is null or kept_at is null)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

create index url_shapes_parked on url_shapes (id) where parked_at is not null;

comment on table  url_shapes is 'One row a host and shape of its URLs: their path and names of parameters with numbers, ids and values blanked. Of URLs of which something is blank, as they were visited first.';
comment on column url_shapes.pages is 'Pages with status 200 and a body that were folded in.';
comment on column url_shapes.recent is 'The first 32 bits of the digests of its last pages, 200 at most, the youngest last.';
comment on column url_shapes.example is 'A URL of it.';
comment on column url_shapes.parked_at is 'Since when its URLs are left out, reason trap_shape; null = not.';
comment on column url_shapes.kept_at is 'Since when an operator wants it visited whatever its pages bring (pgcrawl traps unpark); null = judged by them.';

create view trap_shapes as
select s.id as shape_id,
       h.authority,
       s.shape,
       s.pages,
       e.looked_at,
       e.different,
       e.most_frequent,
       round(e.different::numeric / greatest(e.looked_at, 1), 3) as share,
       s.parked_at,
       s.kept_at,
       s.first_at,
       s.last_at,
       s.example
from url_shapes s
join hosts h on h.id = s.host_id
cross join lateral (
    select coalesce(sum(n), 0)::int as looked_at,
           count(*)::int as different,
           coalesce(sum(n) filter (where rank <= 3), 0)::int as most_frequent
    from (select count(*) as n, row_number() over (order by count(*) desc) as rank
          from unnest(s.recent) as digest
          group by digest) d
) e
where s.parked_at is not null
   or s.kept_at is not null;

comment on view trap_shapes is 'Shapes of URLs that are parked, or were until an operator unparked them, with the evidence: of the last looked_at pages so many are different, and most_frequent share three digests.';
comment on column trap_shapes.share is 'different / looked_at; traps.shape_share is the limit.';
