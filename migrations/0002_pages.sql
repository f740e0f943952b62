-- What visits leave behind: pages, bodies, robots.txt.

create table pages (
    task_id       bigint not null,
    claim_version int not null,
    http_status   smallint,
    hops          smallint not null default 0,
    fetch_ms      int,
    fetched_at    timestamptz not null default now(),
    wire_bytes    bigint not null default 0,
    body_bytes    bigint not null default 0,
    links         int not null default 0,
    truncated     text,
    error         text,
    error_detail  text,
    final_url     text,
    redirect_to   text,
    content_type  text,
    charset       text,
    charset_from  text,
    lang          text,
    title         text,
    description   text,
    h1            text,
    canonical_url text,
    robots        text,
    etag          text,
    last_modified text,
    ip            inet,
    proxy         text,
    digest        bytea,
    headers       jsonb,
    constraint pages_pkey primary key (task_id)
) with (fillfactor = 90);

create index pages_fetched on pages (fetched_at);

comment on table  pages is 'One row a task that was visited, done or failed: its last accepted visit.';
comment on column pages.task_id is 'The task. No foreign key: the finish writes it with the status in one statement, and the check would cost a lookup a page.';
comment on column pages.claim_version is 'The visit it comes from. Equals the task''s while that is done.';
comment on column pages.http_status is 'Null = no answer, see error.';
comment on column pages.hops is 'Redirects to the page''s own key that were followed inside the visit.';
comment on column pages.fetch_ms is 'From the request to the last byte.';
comment on column pages.wire_bytes is 'Payload bytes as received, before content coding was undone.';
comment on column pages.body_bytes is 'Payload bytes after content coding.';
comment on column pages.links is 'Links found on it that a crawler may follow, before scope and duplicates.';
comment on column pages.truncated is 'Why the body is not whole: length, time, disconnect, unwanted (its type was not asked for); null = whole.';
comment on column pages.error is 'Class of the error: dns, refused, connect_timeout, tls …; null = an answer was had.';
comment on column pages.final_url is 'What was asked for last, where that differs from the task''s url; null = the same.';
comment on column pages.redirect_to is 'Target of a redirect. It is a task of its own, where it belongs to the crawl.';
comment on column pages.charset_from is 'What decided the charset: bom, header, meta, detected, default.';
comment on column pages.canonical_url is 'Declared canonical (rel=canonical).';
comment on column pages.robots is 'Meta robots and X-Robots-Tag that apply.';
comment on column pages.proxy is 'Label of the proxy that fetched it; null = none.';
comment on column pages.digest is 'SHA-256 of the payload, after content coding and before charset decoding; null = no body.';
comment on column pages.headers is 'All response headers but cookies, by lower-case name, values in order.';

create table bodies (
    task_id       bigint not null,
    claim_version int not null,
    body          bytea not null,
    constraint bodies_pkey primary key (task_id)
);

comment on table  bodies is 'Decoded text of pages, where the crawl keeps it (crawl.store_bodies). Read it with convert_from(body, ''UTF8'').';
comment on column bodies.body is 'UTF-8 text as bytes, so that a NUL loses nothing.';
comment on column bodies.claim_version is 'The visit it comes from.';

-- lz4 costs 0.09 ms a page where pglz costs 0.40 (28 KB pages); not every server is built with it.
do $$
begin
    alter table bodies alter column body set compression lz4;
exception when feature_not_supported or invalid_parameter_value or syntax_error then
    raise notice 'this server has no lz4: bodies are compressed with pglz';
end
$$;

create table robots (
    host_id        int not null,
    fetched_at     timestamptz not null default now(),
    http_status    smallint,
    hops           smallint not null default 0,
    crawl_delay_ms int,
    error          text,
    final_url      text,
    sitemaps       text[] not null default '{}',
    body           bytea,
    constraint robots_pkey primary key (host_id)
);

comment on table  robots is 'The last robots.txt of each host, for all machines. How long it counts stands in hosts.robots_until.';
comment on column robots.http_status is 'Of the last hop; null = no answer, see error.';
comment on column robots.body is 'At most 512 KiB, content coding undone; null = none, everything is allowed.';
comment on column robots.sitemaps is 'What its Sitemap lines name.';
