-- Sitemaps are tasks like pages, so that they are claimed, retried, shared and kept polite like them; what they say of a URL is kept. So are assets,
-- which belong to the crawl by the page that has them.

create type task_kind as enum ('page', 'sitemap', 'asset');

-- A constant default: no row is written.
alter table tasks add column kind task_kind not null default 'page';

comment on column tasks.kind is 'sitemap: named as one by robots.txt, an index or the guess; asset: found first as a part of a page (a picture, a style), which no scope but the operator''s rules is asked about. What a seed or link leads to is a page, and read as a sitemap if it turns out to be one.';
comment on column tasks.hops is 'Redirects in a row that led here; of a sitemap the indexes as well.';
comment on column tasks.depth is 'Links followed from a seed. A redirect is not a link; a sitemap that robots.txt names counts as a seed.';
comment on column tasks.via is 'The task on whose page (or in which sitemap) it was found first; null = a seed, or a sitemap that robots.txt names. No foreign key: it would lock a row of another visit.';

create table sitemaps (
    task_id       bigint not null,
    claim_version int not null,
    read_at       timestamptz not null default now(),
    format        text not null,
    ending        text not null,
    urls          int not null,
    in_scope      int not null,
    foreign_urls  int not null,
    invalid       int not null,
    assets        int not null,
    constraint sitemaps_pkey primary key (task_id),
    constraint sitemaps_format_known check (format in ('urlset', 'index', 'text')),
    constraint sitemaps_ending_known check (ending in ('whole', 'cut', 'full', 'broken'))
);

-- Few: those that may be read again when a host names them.
create index sitemaps_foreign on sitemaps (task_id) where foreign_urls > 0;

comment on table  sitemaps is 'One row a sitemap that was read.';
comment on column sitemaps.claim_version is 'The visit that read it last.';
comment on column sitemaps.ending is 'whole; cut = the file breaks off, or was not read to its end; full = at the limit of URLs; broken = beyond repair. What was read before counts.';
comment on column sitemaps.urls is 'Entries that name a page or another sitemap.';
comment on column sitemaps.in_scope is 'Those, and alternates (hreflang), that belong to the crawl.';
comment on column sitemaps.foreign_urls is 'Entries on another host whose robots.txt was not known to name this sitemap (or the index above it): left out, whatever the scope says. No task is made of them, so a link may still lead there. When such a robots.txt names it for the first time, the sitemap is read again.';
comment on column sitemaps.invalid is 'Entries without a usable URL.';
comment on column sitemaps.assets is 'Pictures and films that it names beside pages.';

create table sitemap_entries (
    task_id       bigint not null,
    sitemap_id    bigint not null,
    claim_version int not null,
    lastmod       timestamptz,
    priority      real,
    changefreq    text,
    constraint sitemap_entries_pkey primary key (task_id, sitemap_id),
    constraint sitemap_entries_priority_range check (priority between 0 and 1)
);

-- What a sitemap names, and what it does not name any more.
create index sitemap_entries_sitemap on sitemap_entries (sitemap_id, claim_version);

comment on table  sitemap_entries is 'What sitemaps say of tasks: one row a task and a sitemap that names it.';
comment on column sitemap_entries.sitemap_id is 'The task of the sitemap.';
comment on column sitemap_entries.claim_version is 'The visit of the sitemap that found it there last. Rows of older ones go when it has been read whole.';
comment on column sitemap_entries.lastmod is 'When the page was changed, as the sitemap says; null = not said, or not to be read.';
comment on column sitemap_entries.priority is 'Its place among the URLs of its site, 0 to 1; null = not said (0.5 is meant).';
