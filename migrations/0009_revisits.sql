-- What a visit must know of the last one to ask "has it changed?" (RFC 9110 §13), and how the answer came.
--
-- A page that answers 304 keeps its row, but for the times and what the 304 says; without `reading` nobody could tell whether what the row holds is
-- what would be read from the page today. Old rows have none: they are fetched once in full. New columns without a default cost no rewrite.

alter table pages
    add column http_version text,
    add column body_at timestamptz,
    add column reading int;

comment on column pages.http_status is 'Of the stored answer; null = no answer, see error. A 304 leaves it as it was, see body_at.';
comment on column pages.fetched_at is 'When the fetch ended; of a page that answered 304 since, when it last did.';
comment on column pages.http_version is 'Version of HTTP of the last answer: 1.0, 1.1, 2.';
comment on column pages.body_at is 'When body, title and the rest were had, where 304 has confirmed them since; null = at fetched_at.';
comment on column pages.reading is 'Fingerprint of what the reading of the page depended on (program, settings, rules of the scope). A conditional request is made while it is the same.';
comment on column pages.etag is 'Sent back as If-None-Match when the page is visited again.';
comment on column pages.last_modified is 'Sent back as If-Modified-Since when the page is visited again.';
comment on column pages.truncated is 'Why the body is not whole: length, time, disconnect, partial (a range that nobody asked for), unwanted (its type was not asked for); null = whole.';
comment on column bodies.claim_version is 'The visit it comes from, or the last one that found it unchanged. Equals the page''s, unless that has no body.';
