-- Pages whose links were not all followed: a copy of such a page is followed all the same. And the fingerprints of texts are of version 2.

alter table pages
    add column links_withheld boolean;

-- Of a payload that thousands of pages have, the one that was followed is found at once.
drop index pages_digest;
create index pages_digest on pages (digest, duplicate_of, links_withheld) where digest is not null;

comment on column pages.simhash is 'Fingerprint of the visible text (simhash version 2, src/extract/simhash.rs): few bits differ where texts differ little; those of version 1, of pages not read since, are near to none. null = fewer than 32 words.';
comment on column pages.links_withheld is 'Its links were not all followed though they belong to the crawl, since it asked for that, is as deep as may be, or lies outside: a copy of it is no repetition. null = they were.';
