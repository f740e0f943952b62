-- What a visit must know of the last one to ask "has it changed?" (RFC 9110 §13), and how the answer came.
--
-- A page that answers 304 keeps its row, but for the times and what the 304 says; without `reading` nobody could tell whether what the row holds is
-- what would be read from the page today. Old rows have none: they are fetched once in full. New columns without a default cost no rewrite.

alter table pages
    add column http_version text,
    add column body_at timestamptz,
    add column reading int;

comment on column pages.fetched_at is 'When the fetch ended; of a page that answered 304 since, when it last did.';
comment on column pages.fetch_ms is 'Of the last fetch, from the request to the last byte; a 304 has no body to wait for.';
comment on column pages.wire_bytes is 'Payload bytes as received, before content coding was undone; where body_at is set, of that fetch: the last one brought none.';
comment on column pages.http_version is 'Version of HTTP of the last answer, a 304 too: 1.0, 1.1, 2.';
comment on column pages.body_at is 'When body, title and the rest were had, where 304 has confirmed them since; null = at fetched_at.';
comment on column pages.reading is 'Fingerprint of what the reading of the page depended on: program, settings that decide what is read and followed, rules of the scope, as whom the host saw us (headers, login, cookies; of these 16 bits of a hash). A conditional request is made while it is the same; null = the next one is none.';
comment on column pages.headers is 'All response headers but cookies, by lower-case name, values in order. A 304 replaces those that it names, but for the entity-tag and what tells how the body was read.';
comment on column pages.ip is 'The address that gave the stored answer; null behind a proxy. Stays at a 304.';
comment on column pages.proxy is 'Label of the proxy that the stored answer came through; null = none. Stays at a 304, which may have come another way.';
comment on column pages.etag is 'Sent back as If-None-Match when the page is visited again.';
comment on column pages.last_modified is 'Sent back as If-Modified-Since when the page is visited again.';
comment on column pages.truncated is 'Why the body is not whole: length, time, disconnect, partial (a range that nobody asked for), unwanted (its type was not asked for); null = whole.';
comment on column bodies.claim_version is 'The visit it comes from, or the last one that found it unchanged. Equals the page''s, unless that has no body.';
