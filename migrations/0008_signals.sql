-- What pages say about their use, and which of their links were not followed for it: a crawl that is read by others must be able to say what
-- it was asked.

-- One column for all of it: most pages say nothing.
alter table pages add column signals jsonb;

comment on column pages.signals is 'What page, header and robots.txt say about its use, and links that were not followed; only what is said; null = nothing. See view page_signals.';

create view page_signals as
select t.url,
       p.signals ? 'noindex' as noindex,
       p.signals ? 'noarchive' as noarchive,
       p.signals ? 'nofollow' as nofollow,
       p.signals ? 'noai' as noai,
       p.signals ? 'noimageai' as noimageai,
       p.signals ->> 'content_usage' as content_usage,
       p.signals ->> 'robots_content_usage' as robots_content_usage,
       p.signals ->> 'tdm_reservation' as tdm_reservation,
       p.signals ->> 'tdm_policy' as tdm_policy,
       coalesce((p.signals ->> 'withheld')::int, 0) as links_withheld,
       coalesce((p.signals ->> 'ugc')::int, 0) as links_ugc,
       coalesce((p.signals ->> 'sponsored')::int, 0) as links_sponsored,
       p.robots as directives,
       p.task_id
from pages p
join tasks t on t.id = p.task_id
where p.signals is not null;

comment on view page_signals is 'One row a page that says something about its use.';
comment on column page_signals.noindex is 'noindex (or none) in meta robots or X-Robots-Tag, for all or for us. Recorded only, like noarchive, noai and noimageai.';
comment on column page_signals.nofollow is 'nofollow (or none), likewise: no link of the page was followed.';
comment on column page_signals.content_usage is 'Header field Content-Usage, as sent.';
comment on column page_signals.robots_content_usage is 'The Content-Usage line of robots.txt that counts for its path.';
comment on column page_signals.tdm_reservation is 'tdm-reservation of header or meta; 1 = the rights of text and data mining are reserved.';
comment on column page_signals.links_withheld is 'Links that were not followed: the page said nofollow, or each link to that URL did in its rel.';
comment on column page_signals.links_ugc is 'Links with rel=ugc; they are followed. So are those with rel=sponsored.';
comment on column page_signals.directives is 'pages.robots.';

comment on column robots.crawl_delay_ms is 'Its Crawl-delay as it asks; null = none. What is kept of it, 300 s at most, stands in hosts.crawl_delay_ms.';
comment on column hosts.crawl_delay_ms is 'Crawl-delay of its robots.txt, at most 300 s; null = none.';
